"""What the offline scorer reads in a text: words, values, negators and names; and how it cuts a premise."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from verifier.fusion import numeric_atoms, tokenize
from verifier.text.segments import segment_spans

_SEGMENT_CHARACTERS = 500  # longer segments are cut, so that the embedder reads them whole (256 word pieces)
_MARKER = re.compile(r"^\[E[0-9]+\] ", re.MULTILINE)
_CLAUSE = re.compile(r"[,:](?=\s)|\s[-–—]\s|—")  # not the marks inside 1,000 and 10:30
_NEGATORS = frozenset(
    (
        *("not", "no", "never", "none", "nobody", "nothing", "nowhere", "neither", "nor", "cannot", "without"),
        *("false", "untrue", "incorrect"),
    )
)
_ASSERTING_AFTER_NOT = frozenset(("only", "just", "merely"))
_WEEKDAYS = frozenset(f"{day}day" for day in ("mon", "tues", "wednes", "thurs", "fri", "satur", "sun"))
_MAY = re.compile(r"(?<=[a-z0-9,] )May\b|\bMay(?= [0-9])")  # the month, not the verb
_NUMBER_NAMES = (
    *("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("twenty", "thirty", "forty", "fifty"),
)
_NUMBER_WORDS = dict(zip(_NUMBER_NAMES, map(str, (*range(2, 13), 20, 30, 40, 50)), strict=True))
_DATE = re.compile(
    r"(?<![0-9/-])(?:[0-9]{4}([-/])[0-9]{1,2}(?:\1[0-9]{1,2})?|[0-9]{1,2}([-/])[0-9]{1,2}\2[0-9]{2,4})(?![0-9/-])"
)
_NUMBER_ENDING = re.compile(r"(?<=[0-9])(?:st|nd|rd|th|am|pm)$")
_SUFFIXES = ("ing", "ies", "ed", "es", "s", "d", "e", "y")


@dataclass(frozen=True, slots=True)
class TextFeatures:
    """What the formula needs of one claim or segment.

    Attributes:
        vector: unit vector, float32 of shape (dimension,).
        words: stem to word and position of its first occurrence; values and negators left out.
        stems: the keys of ``words``.
        numbers, months, weekdays: the values of each kind; a month is its number.
        dated: those of the numbers that stand in a date of digits, one of which is a month.
        negators: positions of negators.
        clauses: a clause number for each position.
        names: stems of words that are capitalized inside the text, or hold a digit and are no number.
    """

    vector: NDArray[np.float32]
    words: Mapping[str, tuple[str, int]]
    stems: frozenset[str]
    numbers: frozenset[str]
    months: frozenset[str]
    weekdays: frozenset[str]
    dated: frozenset[str]
    negators: tuple[int, ...]
    clauses: tuple[int, ...]
    names: frozenset[str]


def premise_segments(premise: str) -> list[str]:
    """The segments of a premise, evidence markers removed, cut further at semicolons and every 500 characters."""
    text = _MARKER.sub("", premise)
    pieces = (piece for start, end in segment_spans(text) for piece in text[start:end].split("; "))
    return [part for piece in pieces for part in _windows(piece)]


def _windows(text: str) -> list[str]:
    """Runs of whole words of at most 500 characters; only a longer word is cut."""
    if len(text) <= _SEGMENT_CHARACTERS:
        return [text] if text.strip() else []
    step = _SEGMENT_CHARACTERS
    words = [word[start : start + step] for word in text.split() for start in range(0, len(word), step)]
    windows: list[list[str]] = []
    room = -1
    for word in words:
        if len(word) > room:
            windows.append([])
            room = step
        windows[-1].append(word)
        room -= len(word) + 1
    return [" ".join(window) for window in windows]


def word_weight(word: str, ranks: Mapping[str, int]) -> float:
    """How much a word tells, in [0, 1]: ln(rank) / ln(28,528) by its place in a BERT vocabulary.

    The vocabulary lists 28,528 words and pieces from id 1,996 ("the") on, roughly by falling frequency; a word
    outside it weighs 1. Before them stand single characters: letters of other scripts weigh 1, too.
    """
    rank = ranks.get(word, len(ranks)) - 1995
    if rank < 1:
        return 0.0 if word == "a" else 1.0
    return min(1.0, math.log(rank) / math.log(28_528))


def features(text: str, vector: NDArray[np.float32]) -> TextFeatures:
    """The features of one claim or segment; ``vector`` is its embedding."""
    words: dict[str, tuple[str, int]] = {}
    values: dict[str, set[str]] = {"number": set(), "month": set(), "weekday": set()}
    negators: list[int] = []
    clauses: list[int] = []
    for clause, part in enumerate(_CLAUSE.split(text)):
        for token in tokenize(part.replace("’", "'")):
            position = len(clauses)
            clauses.append(clause)
            kind, found = _values(token, text)
            if kind:
                values[kind].update(found)
            elif token in _NEGATORS or token.endswith("n't"):
                negators.append(position)
            else:
                if token in _ASSERTING_AFTER_NOT and negators and negators[-1] == position - 1:
                    negators.pop()
                words.setdefault(stem(token), (token, position))
    names = {stem(token) for token in _capitalized(text)}
    names.update(key for key, (token, _) in words.items() if any(map(str.isdigit, token)))
    return TextFeatures(
        vector=vector,
        words=words,
        stems=frozenset(words),
        numbers=frozenset(values["number"]),
        months=frozenset(values["month"]),
        weekdays=frozenset(values["weekday"]),
        dated=frozenset(numeric_atoms(date[0] for date in _DATE.finditer(text))),
        negators=tuple(negators),
        clauses=tuple(clauses),
        names=frozenset(names & words.keys()),
    )


def _values(token: str, text: str) -> tuple[str, list[str]]:
    """The kind of value that a token of ``text`` is, or an empty string, and its canonical forms."""
    if token in _WEEKDAYS:
        return "weekday", [token]
    if token in _NUMBER_WORDS:
        return "number", [_NUMBER_WORDS[token]]
    if token == "may" and not _MAY.search(text):
        return "", []
    atoms = numeric_atoms([_NUMBER_ENDING.sub("", token)])
    if not atoms:
        return "", []
    return ("month" if token.isalpha() else "number"), atoms


def _capitalized(text: str) -> list[str]:
    """The words, lower-cased, that start with a capital, the first word of the text left out."""
    bare = [word.lstrip("\"'([{“‘«") for word in text.split()[1:]]
    return [token for word in bare if word[:1].isupper() for token in tokenize(word.replace("’", "'"))]


def stem(word: str) -> str:
    """A word without its English ending, crudely: a form of both sides that lets inflections meet.

    >>> stem("stopped") == stem("stops") == stem("stop"), stem("studies") == stem("study")
    (True, True)
    """
    word = word.removesuffix("'s")
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 3 and not word.endswith("ss"):
            word = word.removesuffix(suffix)
            break
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word
