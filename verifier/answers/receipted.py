"""Answers checked against a corpus: evidence is retrieved for every claim, and the answer gets a receipt."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from verifier.answers.fused import decomposed
from verifier.answers.records import Answer, CheckedAnswer, CheckedClaim, Cited, unavailable
from verifier.decompose.decomposition import Decomposer, Decomposition
from verifier.digests import canonical_json
from verifier.errors import ConfigurationError
from verifier.factuality.check import MIN_SCORE, K, RetrievedAnswer, check_limits, retrieved_claim
from verifier.factuality.corpus import Hit
from verifier.factuality.receipts import ClaimVerdict, Entry, FactualityReceipt
from verifier.factuality.scored import ReceiptOutcome, ScoreRule, plan_receipts
from verifier.protocol import run_plan
from verifier.scorers.base import score_round, support_round

_MOST_PASSAGES = 1000  # of a claim: their scores are held for a whole batch of claims


class Searcher(Protocol):
    """Finds evidence for many queries at once, as ``verifier.factuality.corpus.Corpus`` does."""

    def search_many(self, queries: Sequence[str], k: int, scopes: Sequence[str | None]) -> list[list[Hit]]:
        """The k best passages for each query, in the scope of the same position."""
        ...

    def cuts(self, queries: Sequence[str]) -> list[bool]:
        """Whether only the beginning of each query is read."""
        ...


@dataclass(frozen=True)
class ReceiptConfig:
    """What a receipt asks of the evidence.

    Attributes:
        k: passages retrieved a claim.
        min_score: cosine in [-1, 1] from which a passage counts.
        entailment_threshold, contradiction_threshold: see ``ScoreRule``; used where a scorer corroborates.
        grounded_at: grounded fraction in [0, 1] from which an answer counts as grounded.
    """

    k: int = K
    min_score: float = MIN_SCORE
    entailment_threshold: float = 0.8
    contradiction_threshold: float = 0.8
    grounded_at: float = 1.0

    def __post_init__(self) -> None:
        check_limits(self.k, self.min_score)
        if self.k > _MOST_PASSAGES or not -1 <= self.min_score <= 1:
            raise ConfigurationError(
                f"k is {self.k} and min_score {self.min_score}: at most {_MOST_PASSAGES} passages a claim, and a cosine"
                " from -1 to 1 expected"
            )
        self.rule()
        if not 0 <= self.grounded_at <= 1:
            raise ConfigurationError(f"grounded_at is {self.grounded_at}: a fraction from 0 to 1 expected")

    def rule(self) -> ScoreRule:
        """How a scorer's answer becomes a corroboration."""
        return ScoreRule(self.entailment_threshold, self.contradiction_threshold)


class ReceiptedAnswers:
    """Checks answers against a corpus.

    Args:
        decomposer: finds the claims of answers that come without.
        searcher: where evidence is searched.
        config: see ``ReceiptConfig``.
        scorer: corroborates, of three labels or of support; ``WordsScorer`` is the seed's heuristic.
    """

    def __init__(self, decomposer: Decomposer, searcher: Searcher, config: ReceiptConfig, scorer: Any) -> None:
        self._decomposer = decomposer
        self._searcher = searcher
        self._config = config
        self._scorer = scorer

    def check(self, answers: Sequence[Answer]) -> list[CheckedAnswer]:
        """What became of each answer, in order; all claims are searched together, all pairs asked together."""
        found = decomposed(answers, self._decomposer)
        retrieved = self._retrieved(answers, found)
        outcomes = self._outcomes(retrieved)
        return [self._checked(*parts) for parts in zip(answers, found, retrieved, outcomes, strict=True)]

    def _retrieved(self, answers: Sequence[Answer], found: Sequence[Decomposition]) -> list[RetrievedAnswer]:
        asked = [(claim.text, answer.scope) for answer, of in zip(answers, found, strict=True) for claim in of.claims]
        hits = iter(
            self._searcher.search_many([text for text, _ in asked], self._config.k, [scope for _, scope in asked])
        )
        return [
            RetrievedAnswer(
                answer.answer,
                tuple(retrieved_claim(claim.text, next(hits), self._config.min_score) for claim in of.claims),
            )
            for answer, of in zip(answers, found, strict=True)
        ]

    def _outcomes(self, retrieved: Sequence[RetrievedAnswer]) -> list[ReceiptOutcome]:
        ask = support_round if hasattr(self._scorer, "score_pairs") else score_round
        return run_plan(plan_receipts(retrieved, self._config.rule()), lambda pairs: ask(self._scorer, pairs))

    def _checked(
        self, answer: Answer, found: Decomposition, retrieved: RetrievedAnswer, outcome: ReceiptOutcome
    ) -> CheckedAnswer:
        error = unavailable(found.unavailable) if found.unavailable else outcome.error
        if error is not None or outcome.receipt is None:
            reason = error.message if error else "there is no receipt"
            return CheckedAnswer(f"unavailable: {reason}", answer.answer, pairs=outcome.pairs, error=error)
        made = outcome.receipt
        texts = {item.id: item.text for claim in retrieved.claims for item, _ in claim.evidence}
        claims = tuple(
            _claim(verdict, claim.draft_span, claim.cited_markers, texts)
            for verdict, claim in zip(made.verdicts, found.claims, strict=True)
        )
        return CheckedAnswer(
            "verified" if claims else "unknown: the answer has no claims",
            answer.answer,
            claims,
            sum(self._searcher.cuts([claim.text for claim in claims])),
            grounded_fraction=made.grounded_fraction,
            receipt=self._receipt(answer, made),
            pairs=outcome.pairs,
        )

    def _receipt(self, answer: Answer, made: FactualityReceipt) -> str:
        grounded = made.is_grounded(self._config.grounded_at)
        return canonical_json({"answer_id": answer.answer_id, "is_grounded": grounded, **made.as_dict()})


def _claim(
    verdict: ClaimVerdict, draft_span: tuple[int, int], markers: tuple[str, ...], texts: dict[str, str]
) -> CheckedClaim:
    roles: tuple[tuple[Literal["supports", "contradicts"], list[Entry]], ...] = (
        ("supports", verdict.citations),
        ("contradicts", verdict.contradictions),
    )
    names = {
        (True, True): "conflicting",
        (True, False): "supported",
        (False, True): "contradicted",
        (False, False): "unverified",
    }
    return CheckedClaim(
        verdict.claim,
        *draft_span,
        names[verdict.supported, verdict.contradicted],
        verdict.score,
        cited_markers=markers,
        evidence=tuple(
            Cited(entry["id"], role, entry["score"], texts[entry["id"]]) for role, entries in roles for entry in entries
        ),
    )
