"""The method ``fusion``: every passage of a claim scored by cosine, words and numbers; the best one decides."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Literal

import numpy as np

from verifier.fusion.features import TextFeatures
from verifier.fusion.policy import FusionPolicy
from verifier.fusion.scoring import Matched, Texts, score_pairs
from verifier.fusion.verdicts import Verdict
from verifier.grounding.record import support_record
from verifier.protocol import Outcome, Pair, PairError, Plan, ScoredPair, Scores, scored_rows
from verifier.records import Claim, Evidence, check_evidence


class Fusion:
    """The method ``fusion``; ``revision`` is the scorer's resolved one, which the records carry.

    A claim's evidence is its plan: all passages are of the truth class and none is cited. The scorer answers with the
    cosine of each passage and the claim (any scorer of support can stand in its place). A claim is supported when its
    best passage is; a partial one is insufficient. The best passage's score stands beside the record as support, from
    which ``band`` tells partial from unsupported. A pair's ``cosine`` and ``support`` are what the scorer said, so
    that a recorded run can be replayed; its score follows from ``cosine``, ``lexical`` and ``gate_tripped``.
    """

    name = "fusion"
    asks: Literal["labels", "support"] = "support"
    policy_type = FusionPolicy

    def __init__(self, policy: FusionPolicy, revision: str) -> None:
        self.policy = policy
        self.revision = revision
        self._configuration_sha256 = policy.digest()

    def plan(self, claims: Sequence[Claim]) -> Plan:
        """Yield every passage with its claim once, receive their support, return one outcome a claim."""
        for claim in claims:
            check_evidence(claim, self.policy.max_evidence)
        pairs = [
            Pair(row, "single", (item.reference,), item.text, claim.claim)
            for row, claim in enumerate(claims)
            if not claim.requires_complete_set
            for item in claim.evidence
        ]
        if not pairs:
            return [self._outcome(claim) for claim in claims]
        scores = yield pairs
        matched = self._matched(pairs, scores)
        best, bounds = matched.best(len(claims)).tolist(), matched.bounds(len(claims)).tolist()
        found = []
        for row, (claim, (start, end)) in enumerate(zip(claims, pairwise(bounds), strict=True)):
            asked = range(start, end)
            scored = [one for index in asked for one in _scored(pairs[index], scores, matched, index)]
            error = next((scores.errors[index] for index in asked if index in scores.errors), None)
            decided = error is None and bool(asked)
            support = float(matched.score[best[row]]) if decided else None
            item = claim.evidence[best[row] - start] if decided else None
            found.append(self._outcome(claim, bool(asked), tuple(scored), error, support, item))
        return found

    def _matched(self, pairs: Sequence[Pair], scores: Scores) -> Matched:
        """The pairs by row; a pair that is no candidate, or has no cosine, has the score -1."""
        features = TextFeatures.of([text for pair in pairs for text in (pair.premise, pair.hypothesis)])
        rows = np.array([pair.row for pair in pairs])
        plans, first, of_pair = np.unique(rows, return_index=True, return_inverse=True)
        claims = Texts(features.rows([pairs[index].hypothesis for index in first.tolist()]), np.arange(len(plans)))
        spans = Texts(features.rows([pair.premise for pair in pairs]), of_pair)
        positions, cosine = np.arange(len(pairs)), np.nan_to_num(scores.values)
        scored = score_pairs(features, claims, spans, of_pair, positions, cosine, self.policy)
        order = np.lexsort((positions, -cosine, of_pair))
        rank = np.empty(len(pairs), np.int64)
        rank[order] = positions - first[of_pair]
        score = np.where((rank < self.policy.candidates_m) & np.isfinite(scores.values), scored.score, -1)
        return replace(scored, claims=rows, score=score)

    def _outcome(
        self,
        claim: Claim,
        model_called: bool = False,
        pairs: tuple[ScoredPair, ...] = (),
        error: PairError | None = None,
        support: float | None = None,
        best: Evidence | None = None,
    ) -> Outcome:
        if error is not None and error.outcome == "rejected":
            return Outcome(None, pairs, error)
        supported = support is not None and self.policy.band(support) == Verdict.SUPPORTED
        group = (str(best.memory_id),) if best is not None else ()
        revision = self.revision if model_called else None
        record = support_record(claim, self.policy, self._configuration_sha256, revision, supported, group)
        return Outcome(record, pairs, error, support)


def _scored(pair: Pair, scores: Scores, matched: Matched, index: int) -> list[ScoredPair]:
    """The pair's row and, where its cosine was aggregated, a row for each one behind it; none without a cosine."""
    if index in scores.errors:
        return []
    cosine = float(scores.values[index])
    values = {
        "cosine": cosine,
        "lexical": float(matched.lexical[index]),
        "gate_tripped": bool(matched.gate_tripped[index]),
        "support": cosine,
    }
    return scored_rows(pair, values, scores, index)
