"""From an answer to its receipt: its claims, the evidence retrieved for each, and what that evidence says."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from verifier.errors import ConfigurationError, VerificationError
from verifier.factuality.corpus import Corpus, Item, check_k
from verifier.factuality.corroboration import Corroboration, corroborate, sentence_claims
from verifier.factuality.receipts import FactualityReceipt, claim_verdict

Extract = Callable[[str], list[str]]
Corroborates = Callable[[str, str], Corroboration | bool]
Retrieved = Sequence[tuple[Item, float]]

K = 4
MIN_SCORE = 0.2


class Substrate(Protocol):
    """Anything that finds evidence: a ``Corpus``, or an object of another system with this method."""

    def search(self, query: str, k: int, *, scope: str | None = None) -> Retrieved:
        """The k best pieces of evidence for a query with their cosines, best first, all of ``scope``."""
        ...


class RetrievedClaim(NamedTuple):
    """A claim with the evidence retrieved for it; ``evidence`` is what reached the score floor.

    ``score`` is the best cosine of all that was retrieved, 0 when nothing was.
    """

    claim: str
    score: float
    evidence: tuple[tuple[Item, float], ...]


class RetrievedAnswer(NamedTuple):
    """An answer with its claims and their evidence."""

    answer: str
    claims: tuple[RetrievedClaim, ...]


def check_factuality(
    substrate: Substrate,
    answer: str,
    *,
    extract: Extract | None = None,
    corroborates: Corroborates | None = None,
    min_score: float = MIN_SCORE,
    k: int = K,
    scope: str | None = None,
) -> FactualityReceipt:
    """Check each claim of ``answer`` against evidence and return the receipt.

    Args:
        substrate: where evidence is searched, for instance a ``Corpus``.
        answer: the text to check.
        extract: answer to its claims; None: its sentences. Blank claims are left out.
        corroborates: (evidence, claim) to a Corroboration; None: ``corroborate``, a heuristic. A plain True is
            supported, a plain False unverified. ``ScorerCorroborator`` makes one of any scorer.
        min_score: evidence with a smaller cosine does not count.
        k: pieces of evidence retrieved a claim.
        scope: only evidence of this team or access scope is searched; None: all.

    Raises ConfigurationError for a ``k`` below 1 or a ``min_score`` that is not finite, and VerificationError
    where the corroborator fails, or where it or the search or the extractor returns something else: neither ever
    becomes a verdict.
    """
    check_limits(k, min_score)
    claims = _claims(answer, extract)
    retrieved = [retrieved_claim(claim, substrate.search(claim, k, scope=scope), min_score) for claim in claims]
    return receipt(RetrievedAnswer(answer, tuple(retrieved)), corroborates)


def retrieve_answers(
    corpus: Corpus,
    answers: Sequence[str],
    *,
    extract: Extract | None = None,
    min_score: float = MIN_SCORE,
    k: int = K,
    scopes: Sequence[str | None] | None = None,
) -> list[RetrievedAnswer]:
    """The claims of many answers with their evidence, all searched at once; ``scopes`` has one scope an answer."""
    check_limits(k, min_score)
    claims = [_claims(answer, extract) for answer in answers]
    scopes = [None] * len(answers) if scopes is None else scopes
    asked = [(claim, scope) for of_answer, scope in zip(claims, scopes, strict=True) for claim in of_answer]
    found = iter(corpus.search_many([claim for claim, _ in asked], k, [scope for _, scope in asked]))
    return [
        RetrievedAnswer(answer, tuple(retrieved_claim(claim, next(found), min_score) for claim in of_answer))
        for answer, of_answer in zip(answers, claims, strict=True)
    ]


def retrieved_claim(claim: str, hits: Retrieved, min_score: float) -> RetrievedClaim:
    """A claim with those of its hits that reach ``min_score``; VerificationError where a score is not finite."""
    hits = list(hits)  # a substrate may return what can be read once
    if not all(math.isfinite(score) for _, score in hits):
        raise VerificationError(f"a retrieval score of the claim {claim!r} is not a finite number")
    best = max((score for _, score in hits), default=0.0)
    return RetrievedClaim(claim, best, tuple((item, score) for item, score in hits if score >= min_score))


def receipt(answer: RetrievedAnswer, corroborates: Corroborates | None = None) -> FactualityReceipt:
    """The receipt of an answer whose evidence is at hand; see ``check_factuality`` for ``corroborates``."""
    judge = corroborates or corroborate
    verdicts = [
        claim_verdict(claim, best, ((item, score, _judged(judge, item.text, claim)) for item, score in evidence))
        for claim, best, evidence in answer.claims
    ]
    return FactualityReceipt(answer.answer, verdicts)


def _claims(answer: str, extract: Extract | None) -> list[str]:
    found = (extract or sentence_claims)(answer)
    claims = list(found)
    if isinstance(found, str) or not all(isinstance(claim, str) for claim in claims):
        raise VerificationError("extract returned something other than texts")
    return [claim for claim in claims if claim.strip()]


def _judged(corroborates: Corroborates, evidence: str, claim: str) -> Corroboration:
    try:
        answer = corroborates(evidence, claim)
    except VerificationError:
        raise
    except Exception as error:
        raise VerificationError(f"the corroborator failed: {error}") from error
    if isinstance(answer, bool | np.bool_):
        return Corroboration.SUPPORTED if answer else Corroboration.UNVERIFIED
    if not isinstance(answer, Corroboration):
        raise VerificationError(f"the corroborator returned {answer!r}: a Corroboration or a bool expected")
    return answer


def check_limits(k: int, min_score: float) -> None:
    """Raise ConfigurationError for a ``k`` below 1 or a ``min_score`` that is not finite."""
    check_k(k)
    if not math.isfinite(min_score):
        raise ConfigurationError(f"min_score is {min_score}: a number on the cosine scale expected")
