"""The method ``groups`` as array work: a setting decides every claim from ``GroupFacts``."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from verifier.records import Basis, Claim, Limitation, VerificationPolicy
from verifier.sweep.decisions import (
    BASIS_CODE,
    LIMITATION_BIT,
    NO_BASIS,
    Bools,
    ClaimKinds,
    Decisions,
    Floats,
    Ints,
)
from verifier.sweep.group_facts import GroupFacts, Reach
from verifier.sweep.scores import Labels

# A side is asked for by many settings of a grid; each holds some bytes a claim.
_SIDES_KEPT = 32


@dataclass(frozen=True)
class _Support:
    """What one size's groups say for n claims at one entailment threshold; arrays of shape (n,).

    ``row`` is the best group that supports the claim (-1: none), ``limited`` whether the guard stands against one,
    ``missing`` the distinct rechecks without a score, ``score`` the largest entailment that may count.
    """

    row: Ints
    limited: Bools
    missing: Ints
    score: Floats


@dataclass(frozen=True)
class _Refutation:
    """What one size's groups say against n claims at one contradiction threshold; arrays as in ``_Support``."""

    row: Ints
    limited: Bools
    by_model: Bools


class GroupTable:
    """Claims with the facts of their groups; ``decide`` equals ``verify_claims`` on the same recorded scores.

    The support of a claim by its groups of one size depends on the entailment threshold alone and the refutation on
    the contradiction threshold alone, so a grid works out each side once and puts them together claim by claim.

    Args:
        claims: in the order of the arrays.
        labels: the recorded scores.
        policies: those that will be asked for; groups that none of them asks are left out.
    """

    def __init__(self, claims: Sequence[Claim], labels: Labels, policies: Iterable[VerificationPolicy]) -> None:
        self.claims = claims
        self.kinds = ClaimKinds.of(claims)
        asked = list(policies)
        sizes = [policy.max_group_size for policy in asked]
        limits = [policy.group_candidate_limit for policy in asked]
        self.reach = Reach(max(sizes, default=1), max(limits, default=2))
        self.facts = GroupFacts.of(claims, labels, self.reach)
        self._rows = lru_cache(_SIDES_KEPT)(self._rows_asked)
        self._missing = lru_cache(_SIDES_KEPT)(self._missing_groups)
        self._support = lru_cache(_SIDES_KEPT)(self._support_of)
        self._refutation = lru_cache(_SIDES_KEPT)(self._refutation_of)

    def decide(self, policy: VerificationPolicy) -> Decisions:
        """The decisions under a policy; ValueError for one beyond those that the table was made for."""
        if policy.max_group_size > self.reach.max_group_size or (
            policy.max_group_size > 1 and policy.group_candidate_limit > self.reach.group_candidate_limit
        ):
            raise ValueError(f"the table holds groups of {self.reach}, which is not enough for this policy")
        n = len(self.claims)
        searching = self.kinds.asked
        supporting, refuting = np.full(n, -1), np.full(n, -1)
        by_model, score, missing = np.zeros(n, np.bool_), np.zeros(n), np.zeros(n, np.int64)
        limitations = self.kinds.limited()
        guarded, explicit = policy.entailment_policy != "model_only", policy.refutation_policy != "model_only"
        for size in range(1, policy.max_group_size + 1):
            limit = policy.group_candidate_limit if size > 1 else 1
            support = self._support(size, limit, guarded, policy.entailment_threshold)
            refutation = self._refutation(size, limit, explicit, policy.contradiction_threshold)
            groups_missing = self._missing(size, limit)
            lacking = np.where(groups_missing > 0, groups_missing, support.missing)
            np.copyto(missing, lacking, where=searching)
            searching = searching & (lacking == 0)
            np.copyto(supporting, support.row, where=searching)
            np.copyto(refuting, refutation.row, where=searching)
            np.copyto(by_model, refutation.by_model, where=searching)
            limitations |= (searching & support.limited) * LIMITATION_BIT[Limitation.ENTAILMENT]
            limitations |= (searching & refutation.limited) * LIMITATION_BIT[Limitation.CONTRADICTION]
            np.maximum(score, support.score, out=score, where=searching)
            searching = searching & (supporting < 0) & (refuting < 0)
        score[missing > 0] = np.nan
        return self._decisions(policy, supporting, refuting, by_model, limitations, score, missing)

    def _decisions(
        self,
        policy: VerificationPolicy,
        supporting: Ints,
        refuting: Ints,
        by_model: Bools,
        limitations: NDArray[np.uint8],
        score: Floats,
        missing: Ints,
    ) -> Decisions:
        supported, refuted = supporting >= 0, refuting >= 0
        support_basis = np.where(
            self._is_admitted(supporting, policy.entailment_policy == "model_only"),
            BASIS_CODE[Basis.MODEL_ENTAILMENT],
            BASIS_CODE[Basis.LOCALIZED_MODEL_ENTAILMENT],
        )
        refuting_basis = np.where(
            by_model, BASIS_CODE[Basis.MODEL_CONTRADICTION], BASIS_CODE[Basis.EXPLICIT_NEGATION_OVERLAP]
        )
        outcome = self.kinds.outcome(supported, refuted, missing > 0, policy.max_evidence)
        undecided = (missing > 0) | (self.kinds.evidence > policy.max_evidence)
        return Decisions(
            outcome=outcome,
            supporting_basis=np.where(supported, support_basis, NO_BASIS).astype(np.int8),
            refuting_basis=np.where(refuted, refuting_basis, NO_BASIS).astype(np.int8),
            limitations=limitations,
            score=np.where(undecided, np.nan, score),
            missing=np.where(self.kinds.evidence > policy.max_evidence, 0, missing),
            groups=lambda index: (self._ids(int(supporting[index])), self._ids(int(refuting[index]))),
        )

    def _is_admitted(self, rows: Ints, all_are: bool) -> Bools:
        if all_are or not len(self.facts.claim):
            return np.ones(len(rows), np.bool_)
        return self.facts.admitted[rows]

    def _ids(self, row: int) -> tuple[str, ...]:
        if row < 0:
            return ()
        evidence = self.claims[int(self.facts.claim[row])].evidence
        return tuple(str(evidence[member].memory_id) for member in self.facts.members[row])

    def _rows_asked(self, size: int, limit: int) -> Ints:
        """The rows of one size that are asked under one candidate limit."""
        return np.flatnonzero((self.facts.size == size) & (self.facts.rank < limit))

    def _missing_groups(self, size: int, limit: int) -> Ints:
        rows = self._rows(size, limit)
        return self._distinct(rows[np.isnan(self.facts.entailment[rows])], self.facts.pair)

    def _distinct(self, rows: Ints, pair: Ints) -> Ints:
        """How many distinct pairs the rows have, claim by claim."""
        _, first = np.unique(pair[rows], return_index=True)
        return np.bincount(self.facts.claim[rows[first]], minlength=len(self.claims))

    def _support_of(self, size: int, limit: int, guarded: bool, threshold: float) -> _Support:
        facts, rows = self.facts, self._rows(size, limit)
        entailment, localized = facts.entailment[rows], facts.localized[rows]
        reached = entailment >= threshold
        admitted = facts.admitted[rows] if guarded else np.ones(len(rows), np.bool_)
        recheck = reached & ~admitted
        asked = recheck & facts.has_localized[rows]
        confirmed = asked & (localized >= threshold)
        value = np.where(admitted, entailment, localized)
        counting = np.where(admitted, entailment, np.where(asked, np.fmin(entailment, localized), 0))
        return _Support(
            row=self._best(rows, value, (reached & admitted) | confirmed),
            limited=self._any(rows[recheck & ~confirmed]),
            missing=self._distinct(rows[asked & np.isnan(localized)], facts.localized_pair),
            score=self._largest(rows, counting),
        )

    def _refutation_of(self, size: int, limit: int, explicit: bool, threshold: float) -> _Refutation:
        facts, rows = self.facts, self._rows(size, limit)
        contradiction = facts.contradiction[rows]
        reached = contradiction >= threshold
        by_model = reached & facts.corroborated[rows] if explicit else reached
        overlapping = facts.overlap[rows] & ~by_model & ~np.isnan(contradiction)
        best = self._best(rows, contradiction, by_model | overlapping)
        model_rows = np.zeros(len(facts.claim) + 1, np.bool_)  # the last one is that of no row
        model_rows[rows] = by_model
        return _Refutation(best, self._any(rows[reached & ~by_model]), model_rows[best])

    def _best(self, rows: Ints, value: Floats, passing: Bools) -> Ints:
        """The passing row of each claim with the largest value, on ties the smallest ids; -1 where none passes."""
        found = np.full(len(self.claims), -1)
        kept = np.flatnonzero(passing)
        rows, value = rows[kept], value[kept]
        order = np.lexsort((self.facts.order[rows], -value, self.facts.claim[rows]))
        rows = rows[order]
        claims = self.facts.claim[rows]
        first = np.ones(len(rows), np.bool_)
        first[1:] = claims[1:] != claims[:-1]
        found[claims[first]] = rows[first]
        return found

    def _any(self, rows: Ints) -> Bools:
        """Whether a claim has one of these rows."""
        found = np.zeros(len(self.claims), np.bool_)
        found[self.facts.claim[rows]] = True
        return found

    def _largest(self, rows: Ints, value: Floats) -> Floats:
        """The largest value of each claim's rows, which stand claim by claim; 0 where it has none."""
        largest = np.zeros(len(self.claims))
        if len(rows):
            claims = self.facts.claim[rows]
            starts = np.flatnonzero(np.r_[True, claims[1:] != claims[:-1]])
            largest[claims[starts]] = np.fmax.reduceat(value, starts)
        return largest
