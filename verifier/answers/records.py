"""Generated answers, as they come in and as what was found out about them goes out."""

from dataclasses import dataclass, field
from typing import Literal

from verifier.fusion.records import Draft, DraftClaim, PlanSpan, check_draft
from verifier.fusion.trace import Generation, GenerationTrace
from verifier.protocol import PairError, ScoredPair


@dataclass(frozen=True, slots=True)
class Answer:
    """One generated answer, a draft until it is delivered.

    Attributes:
        answer_id: unique in the input.
        answer: the text as generated; draft spans count its code points.
        spans: the evidence plan that it was generated from, in canonical order; none for receipts.
        claims: its claims where they are known; None where they are to be found.
        scope: only evidence of this team or access scope is retrieved for it; None: all.
        category: any name, for tables.
        generation: what is known of how it was made.
    """

    answer_id: str
    answer: str
    spans: tuple[PlanSpan, ...] = ()
    claims: tuple[DraftClaim, ...] | None = None
    scope: str | None = None
    category: str | None = None
    generation: Generation = field(default_factory=lambda: Generation(""))

    def draft(self, claims: tuple[DraftClaim, ...] = ()) -> Draft:
        """The answer as decomposers and the matcher take it."""
        return Draft(self.answer_id, self.answer, claims, self.spans)


def check_answer(answer: Answer) -> None:
    """Raise InputError, with the codes of ``check_draft``, where its claims or spans cannot be matched."""
    check_draft(answer.draft(answer.claims or ()))


@dataclass(frozen=True, slots=True)
class Cited:
    """Evidence beside a claim.

    Attributes:
        evidence_id: of a span of the plan, or of a passage of the corpus.
        role: ``best`` (the span whose score is the claim's), ``supports`` or ``contradicts``.
        score: the fused score, or the cosine that it was retrieved with.
        text: what it says.
    """

    evidence_id: str
    role: Literal["best", "supports", "contradicts"]
    score: float
    text: str


@dataclass(frozen=True, slots=True)
class CheckedClaim:
    """A claim of an answer and what the evidence says of it.

    Attributes:
        text: the claim.
        start, end: its draft span, half-open, in code points.
        verdict: of fusion: supported, partial, unsupported, evidence_redacted; of a receipt: supported, contradicted,
            conflicting (some evidence supports it and some contradicts it) or unverified.
        score: the largest fused score, or the best cosine that was retrieved.
        numeric_gated: whether the best span lacks a number of the claim.
        cited_markers, unresolved_markers: markers that it cites, and those of them that name no span.
        evidence: what the verdict rests on.
    """

    text: str
    start: int
    end: int
    verdict: str
    score: float
    numeric_gated: bool = False
    cited_markers: tuple[str, ...] = ()
    unresolved_markers: tuple[str, ...] = ()
    evidence: tuple[Cited, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckedAnswer:
    """What became of one answer.

    Attributes:
        verification: ``verified``, ``unknown: <reason>`` (a receipt without claims) or ``unavailable: <reason>``.
        delivered: what may go out under the policy; None where the policy cuts claims out and none is known.
        claims: in the order in which they were found.
        truncated: its claims and evidence texts that the embedder cut.
        trace: of a fused answer.
        grounded_fraction: of a receipt, the share of its claims that are supported; None: unknown.
        receipt: a receipt's JSON form, as text.
        pairs: every pair that a scorer was asked.
        error: why there is no verification.
    """

    verification: str
    delivered: str | None
    claims: tuple[CheckedClaim, ...] = ()
    truncated: int = 0
    trace: GenerationTrace | None = None
    grounded_fraction: float | None = None
    receipt: str | None = None
    pairs: tuple[ScoredPair, ...] = ()
    error: PairError | None = None


def unavailable(reason: str) -> PairError:
    """Why an answer is not verified; the next run asks for it again."""
    return PairError("unscored", "unavailable", reason.removeprefix("unavailable: "))
