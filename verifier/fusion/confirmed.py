"""The method ``fusion+nli``: what fusion finds near a claim is put to a three-label scorer, which can take it away.

Beyond the seed: no matcher of words and cosines can tell one name from another in a text that is otherwise the same.
"""

from collections.abc import Sequence
from typing import Protocol

from pydantic import Field

from verifier.fusion.method import Found, Fusion, best_passages
from verifier.fusion.policy import FusionPolicy
from verifier.fusion.verdicts import Verdict
from verifier.protocol import CONFIRMATION, LABELS, Asks, Pair, Plan, Scores, scored_rows
from verifier.records import Claim, GroupScore


class ConfirmationRule(Protocol):
    """From where on labels count: probabilities in [0.5, 1], compared with ``>=``."""

    @property
    def entailment_threshold(self) -> float:
        """Below it a claim is at most partial."""
        ...

    @property
    def contradiction_threshold(self) -> float:
        """From it on a claim is contradicted, whatever its entailment."""
        ...


class FusionNliPolicy(FusionPolicy):
    """The formula, and from where on labels count; every field is part of the configuration digest."""

    entailment_threshold: float = Field(0.80, ge=0.5, le=1)
    contradiction_threshold: float = Field(0.80, ge=0.5, le=1)


def confirmed(verdict: Verdict, entailment: float, contradiction: float, rule: ConfirmationRule) -> Verdict:
    """The verdict on a claim once its best passage was read: labels can take support away and never give it.

    A contradicted claim is unsupported; one that is not entailed is at most partial. ``evidence_redacted`` stays: the
    text that would be read is not the one that was written.

    >>> rule = FusionNliPolicy(model="m", revision="r")
    >>> [str(confirmed(Verdict.SUPPORTED, *labels, rule)) for labels in ((0.8, 0.1), (0.7, 0.1), (0.1, 0.8))]
    ['supported', 'partial', 'unsupported']
    >>> [str(confirmed(Verdict.PARTIAL, *labels, rule)) for labels in ((0.9, 0.1), (0.7, 0.1), (0.1, 0.8))]
    ['partial', 'partial', 'unsupported']
    >>> [str(confirmed(verdict, 1.0, 0.0, rule)) for verdict in (Verdict.UNSUPPORTED, Verdict.EVIDENCE_REDACTED)]
    ['unsupported', 'evidence_redacted']
    """
    if verdict == Verdict.EVIDENCE_REDACTED:
        return verdict
    if contradiction >= rule.contradiction_threshold:
        return Verdict.UNSUPPORTED
    if verdict == Verdict.SUPPORTED and entailment < rule.entailment_threshold:
        return Verdict.PARTIAL
    return verdict


class FusionNli(Fusion):
    """The method ``fusion+nli``: the first round is that of ``Fusion``.

    In the second the best passage of each claim that is at least partial is put to three labels, which ``confirmed``
    reads. A claim is supported when it still is then, refuted when the passage contradicts it, else insufficient.
    Support beside the record is the fused score, whatever the labels say; the labels are the record's only group
    score. A claim with a pair that has no score in either round is unscored.
    """

    name = "fusion+nli"
    asks: Asks = "support+labels"
    policy_type = FusionNliPolicy
    policy: FusionNliPolicy

    def plan(self, claims: Sequence[Claim]) -> Plan:
        """Yield all passages, then the confirmations; receive support, then labels; return one outcome a claim."""
        found = yield from best_passages(claims, self.policy)
        pairs = [
            Pair(row, CONFIRMATION, (one.best.reference,), one.best.text, claim.claim)
            for row, (claim, one) in enumerate(zip(claims, found, strict=True))
            if one.best is not None and self._verdict(one) != Verdict.UNSUPPORTED
        ]
        if pairs:
            scores = yield pairs
            for index, pair in enumerate(pairs):
                found[pair.row] = _labelled(found[pair.row], pair, scores, index)
        return [self._outcome(claim, one) for claim, one in zip(claims, found, strict=True)]

    def _verdict(self, found: Found) -> Verdict:
        verdict, labels = super()._verdict(found), found.labels
        return verdict if labels is None else confirmed(verdict, labels.entailment, labels.contradiction, self.policy)


def _labelled(found: Found, pair: Pair, scores: Scores, index: int) -> Found:
    """What was found, with the labels of its best passage; without them nothing is decided."""
    if index in scores.errors or found.best is None:
        return Found(True, found.pairs, scores.errors.get(index))
    values = dict(zip(LABELS, scores.values[index].tolist(), strict=True))
    labels = GroupScore(pair.references, (str(found.best.memory_id),), **values)
    return found._replace(pairs=(*found.pairs, *scored_rows(pair, values, scores, index)), labels=labels)
