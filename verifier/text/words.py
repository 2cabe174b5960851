"""Cue tables: finding the words and phrases that speech acts, negation and values are recognized by.

A search goes from cheap to certain: one pass over a whole batch of texts tells which literal strings each text
holds (``literals``); only where a cue's own literal is there are its word borders looked at. Every step is
linear in the text.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

import polars as pl

_WORD = re.compile(r"\w+")
# What re.IGNORECASE takes for an ASCII letter and str.lower leaves alone or lengthens.
_LOOKALIKES = (("İ", "i"), ("ı", "i"), ("ſ", "s"))
_LITERALS: set[str] = set()

Occurrence = tuple[int, int, int]  # start, end, flags


def fold(text: str) -> str:
    """``text`` in lower case and of the same length; a plain search in it is a case-insensitive ASCII search."""
    if not text.isascii():
        for lookalike, letter in _LOOKALIKES:
            text = text.replace(lookalike, letter)
    return text.lower()


def is_word_character(character: str) -> bool:
    r"""Whether ``\\w`` matches this character."""
    return character.isalnum() or character == "_"


def literals(folded: Sequence[str]) -> list[frozenset[str]]:
    """Which of the literals of all cue tables each folded text holds, anywhere."""
    if not folded:
        return []
    found = pl.Series(folded, dtype=pl.String).str.extract_many(sorted(_LITERALS), overlapping=True)
    return [frozenset(hits) for hits in found.to_list()]


class CueTable:
    """Cues found at word borders of a folded text, each with the flags (a bit set) it stands for.

    ``cues`` maps flags to cue names separated by a comma and a space. ``aim+`` is the stem ``aim`` with any
    ending; a space inside a cue stands for any white space; other characters stand for themselves.
    """

    def __init__(self, cues: Mapping[int, str]) -> None:
        self._words: dict[str, int] = {}
        self._stems: dict[str, int] = {}
        self._phrases: dict[str, list[tuple[str, re.Pattern[str], int]]] = {}
        for flags, names in cues.items():
            for name in names.split(", "):
                self._add(name, int(flags))  # plain integers: operations on enum flags are slow
        starts = [*self._words, *self._stems]
        self._roots = frozenset(
            start for start in starts if not any(start.startswith(other) for other in starts if other != start)
        )
        _LITERALS.update(self._roots, self._phrases)

    def _add(self, name: str, flags: int) -> None:
        if name.isalpha():
            self._words[name] = self._words.get(name, 0) | flags
        elif name.endswith("+"):
            self._stems[name[:-1]] = flags
        else:
            pattern = re.compile(rf"\b{re.escape(name)}\b".replace(r"\ ", r"\s+"))
            words = name.split()
            self._phrases.setdefault(max(words, key=len), []).append((words[0], pattern, flags))

    def occurrences(self, folded: str, present: frozenset[str]) -> Iterator[Occurrence]:
        """Each cue of a folded text that holds the literals ``present``, in no order."""
        for root in self._roots & present:
            yield from self._words_from(root, folded)
        for literal in present & self._phrases.keys():
            for head, pattern, flags in self._phrases[literal]:
                start = folded.find(head)
                while start >= 0:
                    match = pattern.match(folded, start)
                    if match:
                        yield start, match.end(), flags
                    start = folded.find(head, start + len(head))

    def _words_from(self, root: str, folded: str) -> Iterator[Occurrence]:
        stem_flags = self._stems.get(root, 0)
        start = folded.find(root)
        while start >= 0:
            end = start + len(root)
            if start == 0 or not is_word_character(folded[start - 1]):
                end = _WORD.match(folded, start).end()  # type: ignore[union-attr]  # a root is made of letters
                flags = stem_flags or self._words.get(folded[start:end], 0)
                if flags:
                    yield start, end, flags
            start = folded.find(root, end)
