"""The fusion matcher: claims of many drafts against the evidence plans of their drafts, scored together."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from verifier.fusion.batch import Batch, bare, marked_spans
from verifier.fusion.candidates import Pairs
from verifier.fusion.config import Formula
from verifier.fusion.records import (
    Candidate,
    ClaimVerdict,
    Draft,
    DraftClaim,
    DraftVerdict,
    PlanSpan,
    SpanRef,
    check_draft,
)
from verifier.fusion.scoring import Matched
from verifier.fusion.verdicts import Verdict

VERIFIED = "verified"
_UNIT_TOLERANCE = 1e-3


class Embedder(Protocol):
    """``embed`` returns one unit vector a text, shape (n, dimension); see ``verifier.embedders``."""

    model: str
    revision: str

    def embed(self, texts: Sequence[str]) -> Any:
        """The vectors of ``texts``."""
        ...


class _Unavailable(Exception):
    """There are no vectors; the message is the reason."""


def match_drafts(drafts: Sequence[Draft], embedder: Embedder | None, formula: Formula) -> list[DraftVerdict]:
    """One verdict a draft, in order.

    A claim's candidates are the truth-class spans that it cites and those with the largest cosines; its verdict is
    the band of the best one's score, or ``evidence_redacted`` where an erasure masked a part of that span and the
    score is not 0, so that they have something in common. The IDF is that of all spans of the plan. Without a
    truth-class span every claim is unsupported and nothing is embedded; a draft without claims is verified. Every
    distinct text of all drafts is embedded once, claims and spans by the same embedder; where there is none (None), or
    it fails, what needed it is ``unavailable: <reason>``, never a verdict.

    Raises InputError for a draft that ``check_draft`` refuses.
    """
    for draft in drafts:
        check_draft(draft)
    asking = [draft for draft in drafts if draft.claims and _has_truth(draft.spans)]
    found: dict[int, DraftVerdict] = {}
    if asking:
        try:
            verdicts = _matched(asking, embedder, formula)
        except _Unavailable as reason:
            verdicts = [DraftVerdict(f"unavailable: {reason}")] * len(asking)
        found = {id(draft): verdict for draft, verdict in zip(asking, verdicts, strict=True)}
    return [found.get(id(draft)) or DraftVerdict(VERIFIED, _all_unsupported(draft)) for draft in drafts]


def _has_truth(spans: Sequence[PlanSpan]) -> bool:
    return any(span.span_class == "truth" for span in spans)


def _all_unsupported(draft: Draft) -> tuple[ClaimVerdict, ...]:
    marked = marked_spans(draft.spans)
    return tuple(
        ClaimVerdict(
            claim.text,
            claim.draft_span,
            Verdict.UNSUPPORTED,
            cited_markers=claim.cited_markers,
            unresolved_markers=_unresolved(claim, marked),
        )
        for claim in draft.claims
    )


def _unresolved(claim: DraftClaim, marked: dict[str, list[int]]) -> tuple[str, ...]:
    return tuple(marker for marker in claim.cited_markers if bare(marker) not in marked)


def _matched(drafts: Sequence[Draft], embedder: Embedder | None, formula: Formula) -> list[DraftVerdict]:
    """The verdicts of drafts that all have claims and truth-class spans."""
    if embedder is None:
        raise _Unavailable("no embedder is registered")
    batch = Batch.of(drafts)
    rows = batch.rows_to_embed()
    texts = list(batch.features.position)
    vectors = _embedded(embedder, [texts[row] for row in rows.tolist()])
    place = np.zeros(len(texts), np.int64)
    place[rows] = np.arange(len(rows))
    pairs = batch.candidates(vectors, place, formula.candidates_m)
    scored = batch.scored(pairs, formula)
    candidates, best = _candidates(batch, pairs, scored), scored.best(len(batch.claims)).tolist()
    bounds = scored.bounds(len(batch.claims)).tolist()
    of_claims = [
        _verdict(batch, index, candidates[start:end], candidates[best[index]], formula)
        for index, (start, end) in enumerate(pairwise(bounds))
    ]
    return [
        DraftVerdict(VERIFIED, tuple(of_claims[start:end]), str(embedder.model), str(embedder.revision))
        for start, end in pairwise(batch.claim_bounds.tolist())
    ]


def _embedded(embedder: Embedder, texts: Sequence[str]) -> NDArray[Any]:
    """Vectors of shape (texts, dimension)."""
    name = f"the embedder {getattr(embedder, 'model', type(embedder).__name__)}"
    try:
        vectors = np.asarray(embedder.embed(texts))
        lengths = np.linalg.norm(vectors, axis=-1)
    except Exception as error:  # whatever an embedder raises, it must not become a verdict
        raise _Unavailable(f"{name} failed: {str(error) or type(error).__name__}") from error
    if vectors.ndim != 2 or len(vectors) != len(texts):
        raise _Unavailable(f"{name} returned vectors of shape {vectors.shape} for {len(texts)} texts")
    if not (np.abs(lengths - 1) <= _UNIT_TOLERANCE).all():
        raise _Unavailable(f"{name} returned vectors that are not of unit length")
    return vectors


def _candidates(batch: Batch, pairs: Pairs, scored: Matched) -> list[Candidate]:
    """Every scored pair as a record, in order."""
    in_plan = (pairs.spans - batch.span_bounds[batch.claim_texts.plans[pairs.claims]]).tolist()
    names = [span.span_id for span in batch.spans]
    columns = (scored.cosine, scored.lexical, scored.gate_tripped, scored.score)
    return list(
        map(
            Candidate,
            in_plan,
            map(names.__getitem__, pairs.spans.tolist()),
            pairs.cited.tolist(),
            *(column.tolist() for column in columns),
        )
    )


def _verdict(
    batch: Batch, index: int, candidates: Sequence[Candidate], best: Candidate, formula: Formula
) -> ClaimVerdict:
    claim, plan = batch.claims[index], int(batch.claim_texts.plans[index])
    erased = batch.spans[batch.span_bounds[plan] + best.span].masked
    return ClaimVerdict(
        claim.text,
        claim.draft_span,
        Verdict.EVIDENCE_REDACTED if erased and best.score else formula.band(best.score),
        best.score,
        SpanRef(best.span, best.span_id),
        len(candidates),
        claim.cited_markers,
        best.gate_tripped,
        _unresolved(claim, batch.marked[plan]),
        tuple(candidates),
    )
