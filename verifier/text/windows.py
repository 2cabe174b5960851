"""Cut a text that is too long for a model into windows that hold every word once, in order."""

import re
from bisect import bisect_right
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier.errors import PairTooLong

Offsets = Callable[[str], NDArray[np.int64]]

# Possessive quantifiers: no backtracking, so the search stays linear on runs of spaces or quotes.
_SENTENCE_BREAK = re.compile(r"(?:\r?\n)++|(?<=[.!?])\s++(?=[\"'(\[{]*+[A-Z0-9])")
_WORD = re.compile(r"\S*+")
_SPACE = re.compile(r"\s*+")


def sentence_ends(text: str) -> list[int]:
    """Code point positions, ascending, where a sentence ends before its separator; the last is ``len(text)``.

    Separators are runs of line ends, and white space that follows ``.``, ``!`` or ``?`` and precedes any
    number of opening quotes or brackets and then an ASCII capital or digit.
    """
    return [match.start() for match in _SENTENCE_BREAK.finditer(text)] + [len(text)]


def tokenizer_offsets(backend: Any) -> Offsets:
    """The ``offsets`` argument of ``split_windows`` for the ``backend_tokenizer`` of a fast tokenizer.

    The backend must neither truncate nor pad (``no_truncation()``, ``no_padding()``).
    """

    def offsets(text: str) -> NDArray[np.int64]:
        encoding = backend.encode(text, add_special_tokens=False)
        return np.asarray(encoding.offsets, dtype=np.int64).reshape(-1, 2)

    return offsets


def split_windows(
    text: str, offsets: Offsets, budget: int, count_tokens: Callable[[str], int] | None = None
) -> list[str]:
    """Cut ``text`` into windows of at most ``budget`` tokens each, slices of it that hold every word once.

    Windows are packed greedily and end where a sentence ends; inside a sentence only when it alone is too
    long, and inside a word only when the word alone is too long. White space at a cut is dropped. A text
    that fits comes back whole.

    Args:
        text: what to cut.
        offsets: text to the (start, end) code point positions of its tokens, int64 of shape (tokens, 2),
            in order, special tokens left out. The whole text is asked once and then each window about once.
        budget: the most tokens of one window, as ``count_tokens`` counts them.
        count_tokens: text to its number of tokens, where that is not simply how many offsets it has.

    Raises:
        PairTooLong: a single character has more than ``budget`` tokens.
    """
    spans = offsets(text)
    count = count_tokens or (lambda piece: len(offsets(piece)))
    if (count_tokens(text) if count_tokens else len(spans)) <= budget:
        return [text]
    planner = _Planner(text, spans)
    windows: list[str] = []
    position = _skip_space(text, 0)
    while position < len(text):
        end = _fitting_end(planner, position, count, budget)
        windows.append(text[position:end].rstrip())
        position = _skip_space(text, end)
    return windows or [""]


def _skip_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _fitting_end(planner: "_Planner", start: int, count: Callable[[str], int], budget: int) -> int:
    """The end of a window that starts at ``start``: planned from the offsets, then counted, then corrected."""
    text, planned = planner.text, max(budget, 1)
    end, step = planner.end(start, planned, len(text)), 1
    while (tokens := count(text[start:end].rstrip())) > budget:
        if end - start == 1:
            raise PairTooLong(f"the character {text[start]!r} alone has {tokens} tokens where {budget} fit")
        # Doubling keeps the number of tries logarithmic where the offsets mislead.
        planned = min(planned, planner.tokens(start, end)) - max(tokens - budget, step)
        step *= 2
        ceiling = end - 1 if planned >= 1 else start + max(1, (end - start) // 2)
        end = planner.end(start, max(planned, 1), ceiling)
    # A sentence or word that seemed too long inside the text may fit alone, where its tokens differ a little.
    for whole in planner.first_units(start, 2 * budget):
        if whole > end and count(text[start:whole].rstrip()) <= budget:
            return whole
    return end


class _Planner:
    """Where a window may end, from one tokenization of the whole text."""

    def __init__(self, text: str, spans: NDArray[np.int64]) -> None:
        self.text = text
        self._sentences = sentence_ends(text)
        # Normalizers may report offsets slightly out of order; a binary search needs them ascending.
        self._starts = np.maximum.accumulate(spans[:, 0]) if len(spans) else np.zeros(0, np.int64)
        self._ends = np.maximum.accumulate(spans[:, 1]) if len(spans) else np.zeros(0, np.int64)

    def tokens(self, start: int, end: int) -> int:
        """How many tokens of the whole text lie, at least in part, in ``[start, end)``."""
        first = int(np.searchsorted(self._ends, start, side="right"))
        return int(np.searchsorted(self._starts, end, side="left")) - first

    def _reach(self, start: int, tokens: int) -> int:
        """Where the first token begins that ``tokens`` tokens from ``start`` on leave out."""
        following = int(np.searchsorted(self._ends, start, side="right")) + tokens
        return int(self._starts[following]) if following < len(self._starts) else len(self.text)

    def end(self, start: int, tokens: int, ceiling: int) -> int:
        """The best end at or before ``ceiling`` of a window of about ``tokens`` tokens; above ``start``."""
        limit = max(min(self._reach(start, tokens), ceiling), start + 1)
        sentence = self._sentences[bisect_right(self._sentences, limit) - 1] if self._sentences[0] <= limit else 0
        return sentence if sentence > start else self._word_end(start, limit)

    def first_units(self, start: int, tokens: int) -> list[int]:
        """Where the sentence and the word at ``start`` end, if within about ``tokens`` tokens."""
        limit = self._reach(start, tokens)
        match = _WORD.match(self.text, start, max(limit, start))
        word = match.end() if match else start
        sentence = self._sentences[bisect_right(self._sentences, start)] if start < len(self.text) else start
        whole_word = word == len(self.text) or self.text[word].isspace()
        return [end for end, known in ((sentence, sentence <= limit), (word, whole_word)) if known]

    def _word_end(self, start: int, limit: int) -> int:
        text = self.text
        if limit == len(text) or text[limit].isspace():
            return limit
        piece = text[start:limit]
        if text[limit - 1].isspace():
            return start + len(piece.rstrip())
        # ``start`` is not white space, so what stands before the last white space is one stripped slice.
        head = piece.rsplit(maxsplit=1)
        return start + len(head[0]) if len(head) == 2 else limit
