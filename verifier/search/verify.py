"""``verify_claims``: the whole search over claims in memory, with any three-label scorer."""

from collections.abc import Sequence

from verifier.errors import VerificationError
from verifier.garbage import rare_collection
from verifier.protocol import run_plan
from verifier.records import Claim, Verification, VerificationPolicy
from verifier.scorers.base import ThreeLabelScorer, error_kind, score_round
from verifier.search.groups import EvidenceGroups


def verify_claims(claims: Sequence[Claim], scorer: ThreeLabelScorer, policy: VerificationPolicy) -> list[Verification]:
    """Decide every claim from its evidence; one verification a claim, in order.

    ``scorer`` has ``model``, ``revision`` and ``score(pairs)``, see ``verifier.scorers.base``. Raises
    InputError (a ValueError) for a claim with repeated or too much evidence, before anything is scored, and
    VerificationError when the scorer is not the policy's model, fails, or returns no probabilities (MissingScore
    and PairTooLong are kinds of it).
    """
    if scorer.model != policy.model:
        raise VerificationError(
            f"the scorer's model is {scorer.model!r} but the policy's is {policy.model!r}: name the same one in both"
        )
    method = EvidenceGroups(policy, scorer.revision)
    with rare_collection():
        outcomes = run_plan(method.plan(claims), lambda pairs: score_round(scorer, pairs))
    verifications = []
    for claim, outcome in zip(claims, outcomes, strict=True):
        if outcome.error is not None:
            raise error_kind(outcome.error)(f"claim {claim.claim_id!r} was not scored: {outcome.error.message}")
        verifications += [outcome.verification] if outcome.verification else []
    return verifications
