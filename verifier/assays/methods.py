"""The methods that an assay can register, and deciding a cohort with one of them in this process."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from verifier.assays.cases import CaseResult, case_of
from verifier.errors import ConfigurationError, VerificationError
from verifier.fusion.confirmed import FusionNli
from verifier.fusion.method import Fusion
from verifier.grounding.method import Grounding
from verifier.protocol import run_plan
from verifier.records import Claim
from verifier.scorers.base import ask_round
from verifier.search.groups import EvidenceGroups
from verifier.validation import built

METHODS: dict[str, Any] = {method.name: method for method in (EvidenceGroups, Grounding, Fusion, FusionNli)}
"""By the name that results and registrations have."""

Execute = Callable[[str, Any, Sequence[Claim]], Sequence[CaseResult]]
"""Decides claims: given the method's name, its policy, and claims without labels, one case a claim in any order."""

_BATCH = 256  # claims whose pairs are scored together


def built_policy(method: str, fields: Mapping[str, Any]) -> Any:
    """The policy of a method from its fields; ConfigurationError for an unknown method, field or value."""
    if method not in METHODS:
        raise ConfigurationError(f"method is {method!r}: known are {', '.join(METHODS)}")
    return built(METHODS[method].policy_type, fields, "policy")


def in_process(scorer: Any) -> Execute:
    """Decides claims here and now with ``scorer``; what it cannot score is an unscored case."""

    def execute(method: str, policy: Any, claims: Sequence[Claim]) -> list[CaseResult]:
        if scorer.model != policy.model:
            raise VerificationError(f"the scorer's model is {scorer.model!r} but the policy's is {policy.model!r}")
        decides = METHODS[method](policy, scorer.revision)
        cases: list[CaseResult] = []
        for start in range(0, len(claims), _BATCH):
            batch = claims[start : start + _BATCH]
            outcomes = run_plan(decides.plan(batch), lambda pairs: ask_round(scorer, pairs, decides.asks))
            cases += [case_of(claim, outcome) for claim, outcome in zip(batch, outcomes, strict=True)]
        return cases

    return execute
