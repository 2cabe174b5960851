"""The method ``grounding``: one support score a claim, compared with a threshold."""

from collections.abc import Sequence
from typing import Literal

from verifier.grounding.policy import GroundingPolicy
from verifier.grounding.record import support_record
from verifier.grounding.strategies import STRATEGIES, Ask, Found
from verifier.protocol import Outcome, Pair, PairError, Plan, ScoredPair, Scores, scored_rows
from verifier.records import Claim, check_evidence


class _Hypothesis:
    """One text to be supported: the claim itself, or one of its subclaims."""

    def __init__(self, row: int, claim: Claim, text: str, policy: GroundingPolicy) -> None:
        self.row = row
        self.text = text
        self.rounds = STRATEGIES[policy.premise](claim, policy)
        self.asked: list[Ask] = next(self.rounds)
        self.found: Found | None = None
        self.error: PairError | None = None
        self.pairs: list[ScoredPair] = []

    @property
    def open(self) -> bool:
        """Whether it waits for scores."""
        return self.found is None and self.error is None

    def take(self, scores: Scores, start: int) -> None:
        """Take the scores of what was asked, which stand from ``start`` on, and go on to the next round or the end."""
        positions = range(start, start + len(self.asked))
        self.error = next((scores.errors[index] for index in positions if index in scores.errors), None)
        for ask, index in zip(self.asked, positions, strict=True):
            if index not in scores.errors:
                pair = Pair(self.row, *ask, self.text)
                self.pairs += scored_rows(pair, {"support": float(scores.values[index])}, scores, index)
        if self.error is None:
            try:
                self.asked = self.rounds.send(scores.values[start : start + len(self.asked)].tolist())
            except StopIteration as stop:
                self.found = stop.value


class Grounding:
    """The method ``grounding``; ``revision`` is the scorer's resolved one, which the records carry."""

    name = "grounding"
    asks: Literal["labels", "support"] = "support"
    policy_type = GroundingPolicy

    def __init__(self, policy: GroundingPolicy, revision: str) -> None:
        self.policy = policy
        self.revision = revision
        self._configuration_sha256 = policy.digest()

    def plan(self, claims: Sequence[Claim]) -> Plan:
        """Yield the pairs of each round, receive their support, return one outcome a claim."""
        for claim in claims:
            check_evidence(claim, self.policy.max_evidence)
        hypotheses = [
            _Hypothesis(row, claim, text, self.policy)
            for row, claim in enumerate(claims)
            if claim.evidence and not claim.requires_complete_set
            for text in (self.policy.atomic and claim.subclaims) or (claim.claim,)
        ]
        while waiting := [hypothesis for hypothesis in hypotheses if hypothesis.open]:
            scores = yield [Pair(one.row, *ask, one.text) for one in waiting for ask in one.asked]
            start = 0
            for one in waiting:
                asked = len(one.asked)
                one.take(scores, start)
                start += asked
        by_row: dict[int, list[_Hypothesis]] = {}
        for hypothesis in hypotheses:
            by_row.setdefault(hypothesis.row, []).append(hypothesis)
        return [self._outcome(claim, by_row.get(row, [])) for row, claim in enumerate(claims)]

    def _outcome(self, claim: Claim, hypotheses: Sequence[_Hypothesis]) -> Outcome:
        pairs = tuple(pair for hypothesis in hypotheses for pair in hypothesis.pairs)
        error = next((one.error for one in hypotheses if one.error is not None), None)
        if error is not None and error.outcome == "rejected":
            return Outcome(None, pairs, error)
        found = [one.found for one in hypotheses if one.found is not None]
        support = min(one.support for one in found) if found and error is None else None
        supported = support is not None and self.policy.passes(support)
        used = {memory_id for one in found for memory_id in one.memory_ids}
        group = (str(item.memory_id) for item in claim.evidence if str(item.memory_id) in used)
        revision = self.revision if hypotheses else None
        record = support_record(claim, self.policy, self._configuration_sha256, revision, supported, group)
        return Outcome(record, pairs, error, support)
