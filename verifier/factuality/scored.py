"""Any scorer as a corroborator: one pair at a time, or the receipts of a batch of answers in one round."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from verifier.errors import ConfigurationError
from verifier.factuality.check import RetrievedAnswer, receipt
from verifier.factuality.corroboration import Corroboration
from verifier.factuality.receipts import FactualityReceipt
from verifier.protocol import LABELS, Pair, PairError, ScoredPair, Scores, scored_rows
from verifier.scorers.base import raise_first, score_round, support_round


@dataclass(frozen=True)
class ScoreRule:
    """How a scorer's answer becomes a corroboration; thresholds in [0.5, 1] compare with ``>=``.

    Three labels contradict by their contradiction and support by their entailment, in this order. One support
    score supports or leaves a claim unverified: low support is never a contradiction.
    """

    entailment_threshold: float = 0.80
    contradiction_threshold: float = 0.80

    def __post_init__(self) -> None:
        for name in ("entailment_threshold", "contradiction_threshold"):
            if not 0.5 <= getattr(self, name) <= 1:
                raise ConfigurationError(f"{name} is {getattr(self, name)}: a probability from 0.5 to 1 expected")

    def corroboration(self, values: Sequence[float]) -> Corroboration:
        """Of one pair: entailment, contradiction and neutral, or its support alone."""
        if len(values) == len(LABELS) and values[1] >= self.contradiction_threshold:
            return Corroboration.CONTRADICTED
        return Corroboration.SUPPORTED if values[0] >= self.entailment_threshold else Corroboration.UNVERIFIED


class ScorerCorroborator:
    """A corroborator that asks a scorer: the evidence is the premise, the claim is the hypothesis.

    Args:
        scorer: any scorer of this project, of three labels or of support.
        rule: how its answers are read.
    """

    def __init__(self, scorer: Any, rule: ScoreRule | None = None) -> None:
        self._scorer = scorer
        self._rule = rule or ScoreRule()

    def __call__(self, evidence: str, claim: str) -> Corroboration:
        """What the evidence does to the claim; VerificationError where the scorer has no score for the pair."""
        ask = support_round if hasattr(self._scorer, "score_pairs") else score_round
        scores = ask(self._scorer, [Pair(0, "single", (), evidence, claim)])
        raise_first(scores.errors)
        return self._rule.corroboration(scores.values.reshape(-1).tolist())


class ReceiptOutcome(NamedTuple):
    """What became of one answer: its receipt, or the error of a pair that has no score; and every scored pair."""

    receipt: FactualityReceipt | None
    pairs: tuple[ScoredPair, ...] = ()
    error: PairError | None = None


def plan_receipts(
    answers: Sequence[RetrievedAnswer], rule: ScoreRule
) -> Generator[list[Pair], Scores, list[ReceiptOutcome]]:
    """Yield the (evidence, claim) pairs of a batch of answers, receive their scores, return one outcome an answer.

    An answer with a pair that has no score gets no receipt: part of one would look like evidence that is missing.
    """
    pairs = [
        Pair(row, "single", (item.id,), item.text, claim.claim)
        for row, answer in enumerate(answers)
        for claim in answer.claims
        for item, _ in claim.evidence
    ]
    scores = yield pairs
    by_row: list[list[int]] = [[] for _ in answers]
    for index, pair in enumerate(pairs):
        by_row[pair.row].append(index)
    return [_outcome(answer, pairs, scores, of_row, rule) for answer, of_row in zip(answers, by_row, strict=True)]


def _outcome(
    answer: RetrievedAnswer, pairs: Sequence[Pair], scores: Scores, indices: Sequence[int], rule: ScoreRule
) -> ReceiptOutcome:
    scored = {index: _scored(pairs[index], scores, index) for index in indices if index not in scores.errors}
    rows = tuple(row for of_pair in scored.values() for row in of_pair)
    error = next((scores.errors[index] for index in indices if index in scores.errors), None)
    if error is not None:
        return ReceiptOutcome(None, rows, error)
    judged = {
        (whole.premise, whole.hypothesis): rule.corroboration(tuple(whole.values.values()))
        for whole, *_ in scored.values()
    }
    return ReceiptOutcome(receipt(answer, lambda evidence, claim: judged[evidence, claim]), rows)


def _scored(pair: Pair, scores: Scores, index: int) -> list[ScoredPair]:
    """The pair's row and, where its support was aggregated, a row for each score behind it."""
    values = scores.values[index].reshape(-1).tolist()
    names = LABELS if len(values) == len(LABELS) else ("support",)
    return scored_rows(pair, dict(zip(names, values, strict=True)), scores, index)
