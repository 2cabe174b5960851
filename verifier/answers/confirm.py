"""A scorer of three labels on top of the matcher: what fusion finds near a claim must not contradict it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from pydantic import Field

from verifier.fusion.config import FusionConfig
from verifier.fusion.confirmed import confirmed
from verifier.fusion.records import ClaimVerdict, Draft, DraftVerdict
from verifier.fusion.verdicts import Verdict
from verifier.protocol import CONFIRMATION, LABELS, Pair, PairError, ScoredPair, scored_rows
from verifier.scorers.base import score_round


class ConfirmedConfig(FusionConfig):
    """What the labels must reach, see ``verifier.fusion.confirmed``: probabilities in [0.5, 1]."""

    entailment_threshold: float = Field(0.80, ge=0.5, le=1)
    contradiction_threshold: float = Field(0.80, ge=0.5, le=1)


class Confirmed(NamedTuple):
    """A draft's verdicts, what the scorer was asked for them, and the error of a pair that has no score."""

    verdict: DraftVerdict
    pairs: tuple[ScoredPair, ...] = ()
    error: PairError | None = None


def confirm_drafts(
    drafts: Sequence[Draft], verdicts: Sequence[DraftVerdict], scorer: Any, config: ConfirmedConfig
) -> list[Confirmed]:
    """The verdicts that stand once the best span of every claim that is at least partial was read, in order.

    A draft with a pair that has no score is unavailable as a whole: no claim may pass unread.
    """
    asked = [
        (row, number, claim)
        for row, verdict in enumerate(verdicts)
        for number, claim in enumerate(verdict.claims)
        if claim.verdict in (Verdict.SUPPORTED, Verdict.PARTIAL)
    ]
    questions = [_question(row, drafts[row], claim) for row, _, claim in asked]
    scores = score_round(scorer, questions)
    claims = [list(verdict.claims) for verdict in verdicts]
    pairs: list[list[ScoredPair]] = [[] for _ in verdicts]
    errors: dict[int, PairError] = {}
    for index, (row, number, claim) in enumerate(asked):
        if index in scores.errors:
            errors.setdefault(row, scores.errors[index])
            continue
        values = dict(zip(LABELS, scores.values[index].tolist(), strict=True))
        pairs[row] += scored_rows(questions[index], values, scores, index)
        stands = confirmed(claim.verdict, values["entailment"], values["contradiction"], config)
        claims[row][number] = replace(claim, verdict=stands)
    return [
        Confirmed(_unavailable(verdict, errors[row]), tuple(pairs[row]), errors[row])
        if row in errors
        else Confirmed(replace(verdict, claims=tuple(claims[row])), tuple(pairs[row]))
        for row, verdict in enumerate(verdicts)
    ]


def _question(row: int, draft: Draft, claim: ClaimVerdict) -> Pair:
    assert claim.best_span is not None  # a claim without one is unsupported
    span = draft.spans[claim.best_span.index]
    return Pair(row, CONFIRMATION, (span.span_id,), span.text, claim.text)


def _unavailable(verdict: DraftVerdict, error: PairError) -> DraftVerdict:
    return replace(verdict, verification=f"unavailable: {error.message}", claims=())
