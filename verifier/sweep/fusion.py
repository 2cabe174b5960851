"""The methods ``fusion`` and ``fusion+nli`` as array work: cosines, words and gates are worked out once."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from verifier.digests import sha256_text
from verifier.fusion.confirmed import FusionNliPolicy
from verifier.fusion.features import TextFeatures
from verifier.fusion.policy import FusionPolicy
from verifier.fusion.scoring import Matched, PlanUnits, Texts, fused
from verifier.protocol import Pair
from verifier.records import Basis, Claim
from verifier.sweep.decisions import Bools, ClaimKinds, Decisions, Floats, Ints, basis_codes
from verifier.sweep.scores import Labels, RunSupport, known

_COSINES_KEPT = 4
_BATCH = 1024


class FusionTable:
    """Claims with their passages' cosines, coverages and gates; ``decide`` equals the method on the same scores.

    Args:
        claims: in the order of the arrays.
        pairs: see ``verifier.sweep.scores.run_pairs``.
        labels: the confirmations of ``fusion+nli``.
    """

    def __init__(self, claims: Sequence[Claim], pairs: pl.DataFrame, labels: Labels) -> None:
        self.claims = claims
        self.kinds = ClaimKinds.of(claims)
        self._asked = [
            Pair(row, "single", (item.reference,), item.text, claim.claim)
            for row, claim in enumerate(claims)
            if not claim.requires_complete_set
            for item in claim.evidence
        ]
        self._claim = np.array([pair.row for pair in self._asked], np.int64)
        self._first = np.searchsorted(self._claim, np.arange(len(claims)))
        self._lexical, self._tripped = _words(self._asked, self._claim)
        keys = [(sha256_text(pair.premise), sha256_text(pair.hypothesis)) for pair in self._asked]
        unknown = (np.nan, np.nan)
        self._labels = np.array([labels.get(key, unknown) for key in keys], np.float64).reshape(len(keys), 2)
        self._text = np.unique([key[0] for key in keys], return_inverse=True)[1] if keys else np.zeros(0, np.int64)
        self._cosine = lru_cache(_COSINES_KEPT)(
            lambda choices: known(RunSupport(pairs, dict(choices)).round(self._asked)) if keys else np.zeros(0)
        )

    def decide(self, policy: FusionPolicy, choices: Mapping[str, Any] | None = None) -> Decisions:
        """The decisions under a policy, confirmed where it is one of ``fusion+nli``; for ``choices`` see RunSupport."""
        n = len(self.claims)
        cosine: Floats = self._cosine(tuple((choices or {}).items()))
        missing = self._missing(np.isnan(cosine))
        best, score = self._best(cosine, policy)
        found = (best >= 0) & (missing == 0)
        supported, refuted = found & (score >= policy.supported), np.zeros(n, np.bool_)
        if isinstance(policy, FusionNliPolicy):
            partial = found & (score >= policy.partial)
            entailment, contradiction = self._confirmations(best)
            lacking = partial & np.isnan(entailment)
            missing[lacking] = 1
            refuted = partial & ~lacking & (contradiction >= policy.contradiction_threshold)
            supported &= ~lacking & ~refuted & (entailment >= policy.entailment_threshold)
        rejected = self.kinds.evidence > policy.max_evidence
        return Decisions(
            outcome=self.kinds.outcome(supported, refuted, missing > 0, policy.max_evidence),
            supporting_basis=basis_codes(supported, Basis.MODEL_ENTAILMENT),
            refuting_basis=basis_codes(refuted, Basis.MODEL_CONTRADICTION),
            limitations=self.kinds.limited(),
            score=np.where((missing > 0) | rejected, np.nan, np.where(found, score, 0.0)),
            missing=np.where(rejected, 0, missing),
            groups=lambda index: (self._ids(index, best, supported), self._ids(index, best, refuted)),
        )

    def _best(self, cosine: Floats, policy: FusionPolicy) -> tuple[Ints, Floats]:
        """The best passage of each claim (-1: none), as a position among all pairs, and its score."""
        near, positions = np.nan_to_num(cosine), np.arange(len(cosine))
        score = fused(near, self._lexical, self._tripped, policy)
        rank = np.empty(len(near), np.int64)
        rank[np.lexsort((positions, -near, self._claim))] = positions - self._first[self._claim]
        score = np.where((rank < policy.candidates_m) & ~np.isnan(cosine), score, -1)
        matched = Matched(self._claim, positions, near, self._lexical, self._tripped, score)
        best = matched.best(len(self.claims))
        return best, score[best] if len(score) else np.zeros(len(self.claims))

    def _missing(self, lacking: Bools) -> Ints:
        """How many distinct passages of each claim have no cosine."""
        rows = np.flatnonzero(lacking)
        pairs = np.unique(np.stack([self._claim[rows], self._text[rows]]), axis=1)
        return np.bincount(pairs[0], minlength=len(self.claims))

    def _confirmations(self, best: Ints) -> tuple[Floats, Floats]:
        """Entailment and contradiction of each claim's best passage, NaN where it has none or no labels."""
        labels = self._labels[best] if len(self._labels) else np.full((len(best), 2), np.nan)
        return labels[:, 0], labels[:, 1]

    def _ids(self, index: int, best: Ints, decided: Bools) -> tuple[str, ...]:
        if not decided[index]:
            return ()
        item = self.claims[index].evidence[int(best[index] - self._first[index])]
        return (str(item.memory_id),)


def _words(asked: Sequence[Pair], of_claim: Ints) -> tuple[Floats, Bools]:
    """The coverage of each pair, and whether its numeric gate trips; a claim's passages are its plan."""
    lexical, tripped = np.zeros(len(asked)), np.zeros(len(asked), np.bool_)
    for part in _claim_batches(of_claim):
        pairs = asked[part]
        features = TextFeatures.of([text for pair in pairs for text in (pair.premise, pair.hypothesis)])
        plans, first, of_pair = np.unique(of_claim[part], return_index=True, return_inverse=True)
        claims = Texts(features.rows([pairs[place].hypothesis for place in first.tolist()]), np.arange(len(plans)))
        spans = Texts(features.rows([pair.premise for pair in pairs]), of_pair)
        lexical[part], tripped[part] = PlanUnits.of(features, claims, spans).evidence(of_pair, np.arange(len(pairs)))
    return lexical, tripped


def _claim_batches(of_claim: Ints) -> Iterator[slice]:
    """Slices of whole claims."""
    _, starts = np.unique(of_claim, return_index=True)
    bounds = [*starts[::_BATCH].tolist(), len(of_claim)]
    return (slice(start, end) for start, end in pairwise(bounds) if end > start)
