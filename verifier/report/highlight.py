"""An answer cut into pieces, each coloured by the claims that were taken from it."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from verifier.report.answer_figures import WORST_FIRST

Marked = tuple[int, int, str]
"""A claim's half-open range in code points, and its verdict."""


class Piece(NamedTuple):
    """A run of text under the same claims.

    Attributes:
        numbers: of those claims, from 1 in the order in which they were found; none for text between claims.
        verdict: the worst of theirs.
    """

    text: str
    numbers: tuple[int, ...] = ()
    verdict: str | None = None


def pieces(text: str, claims: Sequence[Marked]) -> list[Piece]:
    """``text`` cut at every border of a claim; what of a range lies outside of it is left aside.

    >>> [(text, numbers) for text, numbers, _ in pieces("abcdef", [(0, 4, "supported"), (2, 4, "partial")])]
    [('ab', (1,)), ('cd', (1, 2)), ('ef', ())]
    """
    ranges = [(max(0, start), min(end, len(text))) for start, end, _ in claims]
    borders = sorted({0, len(text), *(border for start, end in ranges if start < end for border in (start, end))})
    found = []
    for start, end in pairwise(borders):
        over = [number for number, (first, last) in enumerate(ranges, 1) if first <= start and end <= last]
        worst = min((claims[number - 1][2] for number in over), key=_badness, default=None)
        found.append(Piece(text[start:end], tuple(over), worst))
    return found


def shown_length(text: str, claims: Iterable[Marked], limit: int) -> int:
    """How much of a text is shown: all, or up to the last border of a claim in the second half of ``limit``.

    >>> shown_length("x" * 30, [(0, 7, "supported"), (8, 15, "supported")], 10)
    8
    """
    if len(text) <= limit:
        return len(text)
    borders = (border for start, end, _ in claims for border in (start, end))
    return max((border for border in borders if limit // 2 <= border <= limit), default=limit)


def _badness(verdict: str) -> int:
    return WORST_FIRST.index(verdict) if verdict in WORST_FIRST else len(WORST_FIRST)
