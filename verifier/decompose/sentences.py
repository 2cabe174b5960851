"""Decomposition without a model: the sentences of a draft, with the citation markers that stand in and behind them."""

import re
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from importlib.metadata import version

from verifier.decompose.decomposition import Decomposition
from verifier.fusion.batch import bare, marked_spans
from verifier.fusion.records import Draft, DraftClaim, Range
from verifier.text.packing import sentences

_LINE = re.compile(r"[^\r\n]++")
_BRACKETS = re.compile(r"\[([^\[\]]*+)\]")
_MARKER = re.compile(r"S[0-9]++")
# The signs of list items and headings; a number among them would count as a number of the claim.
_ITEM = re.compile(r"\s*+(?:[-*+•–]|#{1,6}|[0-9]{1,3}[.)])\s++")
_FEWEST_WORDS = 2

Marked = tuple[int, int, list[str]]
"""Where one or more markers stand in a row, and their names."""


class SentenceDecomposer:
    """The embedded default: every sentence is a claim, see ``claims_of_sentences``. It needs no model."""

    model = "sentences"
    prompt_hash = ""

    def __init__(self) -> None:
        self.revision = self.identify()["revision"]

    @classmethod
    def identify(cls) -> dict[str, str]:
        """Its name, and the version of the package that finds sentences."""
        return {"model": cls.model, "revision": f"sentencex-{version('sentencex')}"}

    def decompose(self, drafts: Sequence[Draft]) -> list[Decomposition]:
        """One decomposition a draft, in order; never unavailable."""
        return [Decomposition(tuple(claims_of_sentences(draft.text, marked_spans(draft.spans)))) for draft in drafts]


def claims_of_sentences(draft: str, markers: Collection[str] = ()) -> Iterator[DraftClaim]:
    """The sentences of ``draft`` as claims, in order; their draft spans are disjoint.

    A line end ends a sentence; the sign of a list item or heading is no part of one. A marker is ``S`` and a number,
    or one of ``markers``, in square brackets, which may hold several, separated by commas or semicolons. It belongs
    to the sentence that it stands in or directly behind, at the start of a line to the one that follows, and is
    left out of the claim's text; whether it names a span is for the matcher to say. A draft span is half-open, in
    code points, and takes in the markers: without any, the claim's text is ``draft[start:end]``.

    Questions, and sentences of fewer than two words, state nothing and are left out.

    >>> for claim in claims_of_sentences("It opened in 1932 [S1]. It is 5 m wide. [S2, S3] Why?"):
    ...     print(claim.draft_span, claim.text, claim.cited_markers)
    (0, 23) It opened in 1932. ('S1',)
    (24, 48) It is 5 m wide. ('S2', 'S3')
    """
    for line in _LINE.finditer(draft):
        yield from _claims_of_line(draft, line.start(), line.end(), markers)


def _claims_of_line(draft: str, start: int, end: int, markers: Collection[str]) -> Iterator[DraftClaim]:
    marked = _marked(draft, start, end, markers)
    text, origin = _without(draft, start, end, marked)
    ranges = _sentence_ranges(text)
    begins = [origin[begin] for begin, _ in ranges]
    ends = [origin[stop - 1] + 1 for _, stop in ranges]
    cited: list[list[str]] = [[] for _ in ranges]
    for marker_start, marker_end, names in marked if ranges else ():
        owner = max(bisect_left(begins, marker_start) - 1, 0)
        cited[owner] += names
        ends[owner] = max(ends[owner], marker_end)
        if not draft[marker_end : begins[owner]].strip():
            begins[owner] = min(begins[owner], marker_start)
    for (begin, stop), span, names in zip(ranges, zip(begins, ends, strict=True), cited, strict=True):
        claim = text[begin:stop]
        if not claim.endswith("?") and _words(claim) >= _FEWEST_WORDS:
            yield DraftClaim(claim, span, tuple(dict.fromkeys(names)))


def _marked(draft: str, start: int, end: int, markers: Collection[str]) -> list[Marked]:
    """The markers of a line; those with nothing but white space between them are one."""
    marked: list[Marked] = []
    for brackets in _BRACKETS.finditer(draft, start, end):
        names = [bare(name) for name in re.split("[,;]", brackets[1])]
        if not all(_MARKER.fullmatch(name) or name in markers for name in names):
            continue
        begin = brackets.start()
        if marked and not draft[marked[-1][1] : begin].strip():
            begin, _, together = marked.pop()
            together += names  # in place: a copy for each marker of a long row would be quadratic
            names = together
        marked.append((begin, brackets.end(), names))
    return marked


def _without(draft: str, start: int, end: int, marked: Sequence[Marked]) -> tuple[str, list[int]]:
    """The line without its markers and the white space before them, and where in the draft each character stands."""
    pieces: list[str] = []
    origin: list[int] = []
    position = start
    for marker_start, marker_end, _ in marked:
        piece = draft[position:marker_start].rstrip()
        pieces.append(piece)
        origin += range(position, position + len(piece))
        position = marker_end
        if draft[marker_end : min(marker_end + 1, end)].isalnum():
            pieces.append(" ")  # a marker alone kept two words apart
            origin.append(marker_start)
    pieces.append(draft[position:end])
    origin += range(position, end)
    return "".join(pieces), origin


def _sentence_ranges(line: str) -> list[Range]:
    """The sentences of a line, stripped and not blank."""
    item = _ITEM.match(line)
    position = item.end() if item else 0
    ranges = []
    for sentence in sentences(line[position:]):
        begin = position + len(sentence) - len(sentence.lstrip())
        stop = position + len(sentence.rstrip())
        position += len(sentence)
        if begin < stop:
            ranges.append((begin, stop))
    return ranges


def _words(text: str) -> int:
    return sum(any(map(str.isalnum, word)) for word in text.split())
