"""What goes into the matcher and what comes out: drafts with their plan of evidence, and verdicts on their claims."""

from collections import Counter
from dataclasses import dataclass
from typing import Literal, get_args

from verifier.errors import InputError
from verifier.fusion.verdicts import Verdict

Range = tuple[int, int]
"""A half-open range of Unicode code points."""

SpanClass = Literal["truth", "cache"]

MARKER_SPANS = 256


@dataclass(frozen=True, slots=True)
class PlanSpan:
    """One passage of the evidence plan.

    Attributes:
        span_id: its name, unique in the plan.
        text: as it stands now, after any erasure.
        markers: what a draft cites it by; without any it is ``S`` and its number in the plan, from 1.
        span_class: ``truth``, or ``cache`` for a derived summary, which never supports a claim.
        masked: ranges of ``text`` that an erasure masked; an empty range says that text was cut out there.
    """

    span_id: str
    text: str
    markers: tuple[str, ...] = ()
    span_class: SpanClass = "truth"
    masked: tuple[Range, ...] = ()


@dataclass(frozen=True, slots=True)
class DraftClaim:
    """One atomic claim: its own words, the range of the draft that it was taken from, and the markers it cites.

    A marker is a hint and never proof; one that names no span of the plan is left aside.
    """

    text: str
    draft_span: Range
    cited_markers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Draft:
    """A generated text with its claims and the plan of evidence that it was generated from, in canonical order."""

    draft_id: str
    text: str
    claims: tuple[DraftClaim, ...] = ()
    spans: tuple[PlanSpan, ...] = ()


@dataclass(frozen=True, slots=True)
class Candidate:
    """A span that a claim was matched with.

    Attributes:
        span: index in the plan.
        cited: whether the claim cites it.
        cosine: raw, in [-1, 1].
        lexical: IDF coverage of the claim by the span, in [0, 1].
        gate_tripped: whether a number of the claim is missing in the span.
        score: fused and capped, in [0, 1].
    """

    span: int
    span_id: str
    cited: bool
    cosine: float
    lexical: float
    gate_tripped: bool
    score: float


@dataclass(frozen=True, slots=True)
class SpanRef:
    """A span of the plan: its index and its name."""

    index: int
    span_id: str


@dataclass(frozen=True, slots=True)
class ClaimVerdict:
    """The verdict on one claim of a draft.

    Attributes:
        text, draft_span, cited_markers: of the claim.
        score: the largest of all candidates' scores, in [0, 1]; 0 without candidates.
        best_span: the candidate with that score, the first of the plan on ties; None without candidates.
        candidates_considered: how many spans were scored.
        numeric_gated: whether the best span lacks a number of the claim.
        unresolved_markers: cited markers that name no span.
        candidates: every span that was scored, in plan order.
    """

    text: str
    draft_span: Range
    verdict: Verdict
    score: float = 0.0
    best_span: SpanRef | None = None
    candidates_considered: int = 0
    cited_markers: tuple[str, ...] = ()
    numeric_gated: bool = False
    unresolved_markers: tuple[str, ...] = ()
    candidates: tuple[Candidate, ...] = ()


@dataclass(frozen=True, slots=True)
class DraftVerdict:
    """What became of one draft.

    Attributes:
        verification: ``verified``, or ``unavailable: <reason>``; then nothing is known of any claim.
        claims: one verdict a claim, in order; none where verification is unavailable.
        embed_model, embed_revision: what the claims and spans were embedded with; empty where nothing was.
    """

    verification: str
    claims: tuple[ClaimVerdict, ...] = ()
    embed_model: str = ""
    embed_revision: str = ""


def check_draft(draft: Draft) -> None:
    """Raise InputError, which names the draft, for claims and spans that cannot be matched.

    Codes: ``draft_span_out_of_bounds``, ``empty_draft_span``, ``empty_claim``, ``repeated_span_id``,
    ``unknown_span_class``, ``masked_range_out_of_bounds``, ``crowded_marker`` (one that names more than
    ``MARKER_SPANS`` spans: each of its claims would be matched with all of them). Draft spans may overlap.
    """
    for number, claim in enumerate(draft.claims, 1):
        _check_claim(claim, f"claim {number} of draft {draft.draft_id!r}", len(draft.text))
    seen = set[str]()
    for span in draft.spans:
        where = f"the span {span.span_id!r} of draft {draft.draft_id!r}"
        if span.span_id in seen:
            raise InputError("repeated_span_id", f"{where} stands twice in the plan")
        seen.add(span.span_id)
        if span.span_class not in get_args(SpanClass):
            raise InputError("unknown_span_class", f"{where} has the class {span.span_class!r}: use truth or cache")
        for start, end in span.masked:
            if not 0 <= start <= end <= len(span.text):
                message = f"{where} has the masked range {start} to {end} in a text of {len(span.text)} characters"
                raise InputError("masked_range_out_of_bounds", message)

    crowded = Counter(marker for span in draft.spans for marker in set(span.markers)).most_common(1)
    if crowded and crowded[0][1] > MARKER_SPANS:
        message = f"the marker {crowded[0][0]!r} of draft {draft.draft_id!r} names {crowded[0][1]} spans"
        raise InputError("crowded_marker", f"{message}: at most {MARKER_SPANS} expected")


def _check_claim(claim: DraftClaim, where: str, length: int) -> None:
    check_range(claim.draft_span, where, length)
    if not claim.text.strip():
        raise InputError("empty_claim", f"{where} has no text")


def check_range(draft_span: Range, where: str, length: int) -> None:
    """Raise InputError for a draft span that is empty or does not lie in a draft of ``length`` characters."""
    start, end = draft_span
    if start < 0 or end > length:
        message = f"{where} has the draft span {start} to {end} in a draft of {length} characters"
        raise InputError("draft_span_out_of_bounds", message)
    if start >= end:
        raise InputError("empty_draft_span", f"{where} has the empty draft span {start} to {end}")
