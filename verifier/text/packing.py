"""The published rules by which grounding models cut a document into chunks before they read it.

Sentences come from the package sentencex, which ships its data. The published rules used nltk's splitter, so a chunk
can end elsewhere, for instance after an abbreviation that only one of them knows.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from verifier.text.windows import Offsets

Count = Callable[[str], int]
Unit = tuple[str, str, int]  # what joins a sentence to the one before, the sentence, its size

# sentencex is quadratic where quotes stay open, so it reads blocks of this many characters.
_BLOCK = 1 << 14


def sentences(text: str) -> Iterator[str]:
    """The sentences of ``text``, white space included: slices that make it up, in order.

    A sentence of more than 16,384 characters comes in pieces that end at white space where there is any.
    """
    import sentencex  # type: ignore[import-untyped]  # most scorers cut no document

    start = 0
    while start < len(text):
        end = _block_end(text, start)
        found = sentencex.get_sentence_boundaries("en", text[start:end])
        cuts = [start, *(start + sentence["start_index"] for sentence in found[1:]), end]
        if end < len(text) and len(cuts) > 2:
            cuts.pop()  # the last sentence of a block may go on behind it
        yield from (text[begin:stop] for begin, stop in pairwise(cuts))
        start = cuts[-1]


def pack_lines(text: str, limit: int, count: Count) -> list[str]:
    """MiniCheck's rule: the sentences of each line, packed into chunks of at most ``limit`` as ``count`` counts them.

    Sentences of a line are joined by a space, lines by their line ends. A sentence beyond the limit is a chunk.
    """

    def units() -> Iterator[Unit]:
        line_ends = ""
        for line in text.split("\n"):
            for joint, sentence, size in _units(line, " ", count):
                yield line_ends or joint, sentence, size
                line_ends = ""
            line_ends += "\n"

    return _packed(units(), limit)


def pack_sentences(text: str, limit: int) -> list[str]:
    """FactCG's rule: whole sentences joined by newlines, at most ``limit`` word tokens of nltk together.

    A sentence beyond the limit is a chunk.
    """
    words = _word_tokenizer()
    return _packed(_units(text, "\n", lambda sentence: len(words.tokenize(sentence))), limit)


def pack_words(text: str, offsets: Offsets, count: Count, budget: int) -> list[str]:
    """HHEM's rule: white space normalized, words packed greedily into the longest windows of at most ``budget`` tokens.

    A window ends where the next word no longer fits; a word beyond the budget is a window. Windows are planned from
    one tokenization of the text and then counted, each about twice.

    Args:
        text: what to cut.
        offsets: text to the code point positions of its tokens, see ``verifier.text.windows.split_windows``.
        count: window to its number of tokens.
        budget: the most tokens of one window.
    """
    words = text.split()
    normal = " ".join(words)
    ends = np.cumsum([len(word) + 1 for word in words]) - 1
    starts = np.concatenate([[0], ends[:-1] + 1]).astype(np.int64)
    # Tokens that begin before each word: how many a run of words has, as the whole text is tokenized.
    before = np.searchsorted(np.maximum.accumulate(offsets(normal)[:, 0]), [*starts, len(normal)])

    def window(first: int, last: int) -> str:
        return normal[starts[first] : ends[last]]

    windows, first = list[str](), 0
    while first < len(words):
        planned = int(np.searchsorted(before, before[first] + budget, side="right")) - 2

        def fits(last: int, first: int = first) -> bool:
            return count(window(first, last)) <= budget

        last = _last_fitting(fits, first, planned, len(words) - 1)
        windows.append(window(first, last))
        first = last + 1
    return windows


def _last_fitting(fits: Callable[[int], bool], low: int, guess: int, high: int) -> int:
    """The last number in ``[low, high]`` that fits, ``low`` unasked; searched from ``guess`` in growing steps."""
    good, bad, probe, step = low, high + 1, guess, 1
    while bad - good > 1:
        if not good < probe < bad:
            probe = (good + bad) // 2 if step > 1 else min(max(probe, good + 1), bad - 1)
        if fits(probe):
            good, probe = probe, probe + step
        else:
            bad, probe = probe, probe - step
        step *= 2
    return good


def _block_end(text: str, start: int) -> int:
    limit = start + _BLOCK
    if limit >= len(text):
        return len(text)
    return next((end for end in range(limit, start, -1) if text[end - 1].isspace()), limit)


def _units(text: str, joint: str, count: Count) -> Iterator[Unit]:
    """The stripped sentences of a text; ``joint`` goes where white space was."""
    spaced = True
    for piece in sentences(text):
        sentence = piece.strip()
        if sentence:
            yield joint if spaced or piece[0].isspace() else "", sentence, count(sentence)
        spaced = piece[-1].isspace()


def _packed(units: Iterable[Unit], limit: int) -> list[str]:
    chunks, held = list[list[str]](), 0
    for joint, sentence, size in units:
        if chunks and held + size <= limit:
            chunks[-1] += (joint, sentence)
            held += size
        else:
            chunks.append([sentence])
            held = size
    return ["".join(chunk) for chunk in chunks]


@cache
def _word_tokenizer() -> Any:
    # Imported late: nltk takes a second, and only this rule needs it.
    from nltk.tokenize import NLTKWordTokenizer  # type: ignore[import-untyped]

    return NLTKWordTokenizer()
