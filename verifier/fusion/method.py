"""The method ``fusion``: every passage of a claim scored by cosine, words and numbers; the best one decides."""

from collections.abc import Generator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from verifier.fusion.features import TextFeatures
from verifier.fusion.policy import FusionPolicy
from verifier.fusion.scoring import Matched, Texts, score_pairs
from verifier.fusion.verdicts import Verdict
from verifier.grounding.record import support_record
from verifier.protocol import Asks, Outcome, Pair, PairError, Plan, ScoredPair, Scores, scored_rows
from verifier.records import Claim, Evidence, GroupScore, check_evidence


class Found(NamedTuple):
    """What the passages of one claim gave.

    Attributes:
        asked: whether any was asked about.
        pairs: every scored pair.
        error: why one has no score; then there is no best one.
        best: the passage with the largest score, the first on ties.
        score: its score in [0, 1].
        labels: what a three-label scorer says of it, where one was asked.
    """

    asked: bool
    pairs: tuple[ScoredPair, ...] = ()
    error: PairError | None = None
    best: Evidence | None = None
    score: float | None = None
    labels: GroupScore | None = None


class Fusion:
    """The method ``fusion``; ``revision`` is the scorer's resolved one, which the records carry.

    A claim's evidence is its plan: all passages are of the truth class and none is cited. The scorer answers with the
    cosine of each passage and the claim (any scorer of support can stand in its place). A claim is supported when its
    best passage is; a partial one is insufficient. The best passage's score stands beside the record as support, from
    which ``band`` tells partial from unsupported. A pair's ``cosine`` and ``support`` are what the scorer said, so
    that a recorded run can be replayed; its score follows from ``cosine``, ``lexical`` and ``gate_tripped``.
    """

    name = "fusion"
    asks: Asks = "support"
    policy_type: type[FusionPolicy] = FusionPolicy

    def __init__(self, policy: FusionPolicy, revision: str) -> None:
        self.policy = policy
        self.revision = revision
        self._configuration_sha256 = policy.digest()

    def plan(self, claims: Sequence[Claim]) -> Plan:
        """Yield every passage with its claim once, receive their support, return one outcome a claim."""
        found = yield from best_passages(claims, self.policy)
        return [self._outcome(claim, one) for claim, one in zip(claims, found, strict=True)]

    def _verdict(self, found: Found) -> Verdict:
        """The band of the best passage; unsupported where there is none."""
        return Verdict.UNSUPPORTED if found.score is None else self.policy.band(found.score)

    def _outcome(self, claim: Claim, found: Found) -> Outcome:
        if found.error is not None and found.error.outcome == "rejected":
            return Outcome(None, found.pairs, found.error)
        verdict = self._verdict(found)
        record = support_record(
            claim,
            self.policy,
            self._configuration_sha256,
            self.revision if found.asked else None,
            supported=verdict == Verdict.SUPPORTED,
            # Labels are asked of claims that are at least partial: only a contradiction makes them unsupported.
            refuted=found.labels is not None and verdict == Verdict.UNSUPPORTED,
            group=(str(found.best.memory_id),) if found.best is not None else (),
            group_scores=(found.labels,) if found.labels is not None else (),
        )
        return Outcome(record, found.pairs, found.error, found.score)


def best_passages(claims: Sequence[Claim], policy: FusionPolicy) -> Generator[list[Pair], Scores, list[Found]]:
    """The round of a plan that finds the best passage of each claim: yields all pairs, is sent their support.

    No round where no claim has a passage to ask about. Raises InputError for evidence that cannot be used.
    """
    for claim in claims:
        check_evidence(claim, policy.max_evidence)
    pairs = [
        Pair(row, "single", (item.reference,), item.text, claim.claim)
        for row, claim in enumerate(claims)
        if not claim.requires_complete_set
        for item in claim.evidence
    ]
    if not pairs:
        return [Found(asked=False) for _ in claims]
    scores = yield pairs
    matched = _matched(pairs, scores, policy)
    best, bounds = matched.best(len(claims)).tolist(), matched.bounds(len(claims)).tolist()
    return [
        _found(claim, range(start, end), best[row], pairs, scores, matched)
        for row, (claim, (start, end)) in enumerate(zip(claims, pairwise(bounds), strict=True))
    ]


def _matched(pairs: Sequence[Pair], scores: Scores, policy: FusionPolicy) -> Matched:
    """The pairs by row; a pair that is no candidate, or has no cosine, has the score -1."""
    features = TextFeatures.of([text for pair in pairs for text in (pair.premise, pair.hypothesis)])
    rows = np.array([pair.row for pair in pairs])
    plans, first, of_pair = np.unique(rows, return_index=True, return_inverse=True)
    claims = Texts(features.rows([pairs[index].hypothesis for index in first.tolist()]), np.arange(len(plans)))
    spans = Texts(features.rows([pair.premise for pair in pairs]), of_pair)
    positions, cosine = np.arange(len(pairs)), np.nan_to_num(scores.values)
    scored = score_pairs(features, claims, spans, of_pair, positions, cosine, policy)
    order = np.lexsort((positions, -cosine, of_pair))
    rank = np.empty(len(pairs), np.int64)
    rank[order] = positions - first[of_pair]
    score = np.where((rank < policy.candidates_m) & np.isfinite(scores.values), scored.score, -1)
    return replace(scored, claims=rows, score=score)


def _found(claim: Claim, asked: range, best: int, pairs: Sequence[Pair], scores: Scores, matched: Matched) -> Found:
    """What became of the pairs ``asked`` of one claim, ``best`` among them."""
    scored = tuple(one for index in asked for one in _scored(pairs[index], scores, matched, index))
    error = next((scores.errors[index] for index in asked if index in scores.errors), None)
    if error is not None or not asked:
        return Found(bool(asked), scored, error)
    return Found(True, scored, None, claim.evidence[best - asked.start], float(matched.score[best]))


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
