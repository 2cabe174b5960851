"""The method ``grounding`` as array work: what each hypothesis reads is scored once a kind of premise."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from verifier.grounding.policy import GroundingPolicy
from verifier.grounding.strategies import STRATEGIES, Ask, Found, Rounds
from verifier.protocol import Pair
from verifier.records import Basis, Claim
from verifier.sweep.decisions import NO_BASIS, Bools, ClaimKinds, Decisions, Floats, Ints, basis_codes
from verifier.sweep.scores import RunSupport, known

_READINGS_KEPT = 4
_BATCH = 4096
# What decides alone what is read and how it is put together; the other fields only compare.
_READING = ("premise", "joint", "max_group_size", "group_candidate_limit", "lattice", "atomic")

Ids = tuple[str, ...]


@dataclass(frozen=True)
class _Level:
    """What a hypothesis has after one more round: support and ids of its best premise, or how many pairs lack."""

    support: float
    ids: Ids
    missing: int


@dataclass(frozen=True)
class _Reading:
    """Hypotheses, by claim, with their levels: arrays of shape (hypotheses,) or (hypotheses, levels).

    ``exists`` is False where a hypothesis has no such level; ``support`` is NaN where pairs are ``missing``.
    """

    claim: Ints
    support: Floats
    missing: Ints
    exists: Bools
    ids: Sequence[Sequence[Ids]]


class GroundingTable:
    """Claims with the recorded support of what is read for them; ``decide`` equals the method on the same scores.

    Args:
        claims: in the order of the arrays.
        pairs: see ``verifier.sweep.scores.run_pairs``.
    """

    def __init__(self, claims: Sequence[Claim], pairs: pl.DataFrame) -> None:
        self.claims = claims
        self.kinds = ClaimKinds.of(claims)
        self._scorer = lru_cache(_READINGS_KEPT)(lambda choices: RunSupport(pairs, dict(choices)))
        self._read = lru_cache(_READINGS_KEPT)(self._reading)

    def decide(self, policy: GroundingPolicy, choices: Mapping[str, Any] | None = None) -> Decisions:
        """The decisions under a policy; ``choices`` put windows and members together, see ``RunSupport``."""
        reading = self._read(
            tuple(getattr(policy, name) for name in _READING),
            tuple((choices or {}).items()),
            policy.model,
            policy.revision,
        )
        chosen, missing_at = _chosen(reading, policy)
        missing = _first_round_missing(reading, missing_at, len(self.claims))
        support = np.full(len(self.claims), np.inf)
        used = np.maximum(chosen, 0)
        found = reading.support[np.arange(len(used)), used] if len(used) else np.zeros(0)
        np.minimum.at(support, reading.claim[chosen >= 0], found[chosen >= 0])
        answered = np.isfinite(support) & (missing == 0)
        support = np.where(answered, support, 0.0)
        supported = answered & _passes(support, policy)
        rejected = self.kinds.evidence > policy.max_evidence
        none = np.zeros(len(self.claims), np.bool_)
        return Decisions(
            outcome=self.kinds.outcome(supported, none, missing > 0, policy.max_evidence),
            supporting_basis=basis_codes(supported, Basis.MODEL_ENTAILMENT),
            refuting_basis=np.full(len(self.claims), NO_BASIS, np.int8),
            limitations=self.kinds.limited(),
            score=np.where((missing > 0) | rejected, np.nan, support),
            missing=np.where(rejected, 0, missing),
            groups=lambda index: (self._ids(index, reading, chosen) if supported[index] else (), ()),
        )

    def _ids(self, index: int, reading: _Reading, chosen: Ints) -> Ids:
        hypotheses = range(*np.searchsorted(reading.claim, [index, index + 1]).tolist())
        used = {memory_id for one in hypotheses for memory_id in reading.ids[one][int(chosen[one])]}
        return tuple(str(item.memory_id) for item in self.claims[index].evidence if str(item.memory_id) in used)

    def _reading(self, fields: tuple[Any, ...], choices: tuple[Any, ...], model: str, revision: str) -> _Reading:
        # A threshold that nothing passes makes every round be asked.
        policy = GroundingPolicy(
            model=model, revision=revision, threshold=1, comparison=">", **dict(zip(_READING, fields, strict=True))
        )
        scorer = self._scorer(choices)
        hypotheses = [
            (index, text)
            for index, claim in enumerate(self.claims)
            if self.kinds.asked[index]
            for text in dict.fromkeys((policy.atomic and claim.subclaims) or (claim.claim,))
        ]
        levels = [
            found
            for start in range(0, len(hypotheses), _BATCH)
            for found in _levels(self.claims, hypotheses[start : start + _BATCH], policy, scorer)
        ]
        width = max((len(found) for found in levels), default=1)
        return _Reading(
            np.array([index for index, _ in hypotheses], np.int64),
            _padded(levels, width, lambda level: level.support, np.nan),
            _padded(levels, width, lambda level: level.missing, 0).astype(np.int64),
            _padded(levels, width, lambda level: 1, 0).astype(np.bool_),
            [[level.ids for level in found] for found in levels],
        )


class _Asking:
    """One hypothesis on its way through the rounds of its strategy."""

    def __init__(self, row: int, claim: Claim, text: str, policy: GroundingPolicy) -> None:
        self.row, self.text = row, text
        self.by_level = policy.premise == "groups"
        self.ids = {item.reference: str(item.memory_id) for item in claim.evidence}
        self.rounds: Rounds = STRATEGIES[policy.premise](claim, policy)
        self.asked: list[Ask] = next(self.rounds)
        self.levels: list[_Level] = []
        self.open = True

    def take(self, values: Floats) -> None:
        """Take the support of what was asked, NaN where none was recorded, and go on."""
        lacking = {ask.premise for ask, value in zip(self.asked, values.tolist(), strict=True) if np.isnan(value)}
        if lacking:
            self.levels.append(_Level(np.nan, (), len(lacking)))
            self.open = False
            return
        if self.by_level:
            self.levels.append(self._best(values.tolist()))
        try:
            self.asked = self.rounds.send(values.tolist())
        except StopIteration as stop:
            found: Found = stop.value
            self.levels += [] if self.by_level else [_Level(found.support, found.memory_ids, 0)]
            self.open = False

    def _best(self, values: Sequence[float]) -> _Level:
        """The group of this round with most support, then the smallest ids."""
        groups = [
            (-value, tuple(self.ids[name] for name in ask.references))
            for ask, value in zip(self.asked, values, strict=True)
        ]
        support, ids = min(groups)
        return _Level(-support, ids, 0)


def _levels(
    claims: Sequence[Claim], hypotheses: Sequence[tuple[int, str]], policy: GroundingPolicy, scorer: RunSupport
) -> Iterator[list[_Level]]:
    """The levels of each hypothesis, round by round over all of them."""
    asking = [_Asking(row, claims[row], text, policy) for row, text in hypotheses]
    while waiting := [one for one in asking if one.open]:
        values = known(scorer.round([Pair(one.row, *ask, one.text) for one in waiting for ask in one.asked]))
        start = 0
        for one in waiting:
            end = start + len(one.asked)
            one.take(values[start:end])
            start = end
    return iter([one.levels for one in asking])


def _padded(
    levels: Sequence[Sequence[_Level]], width: int, value: Callable[[_Level], float], empty: float
) -> NDArray[np.float64]:
    rows = [[value(level) for level in found] + [empty] * (width - len(found)) for found in levels]
    return np.array(rows, np.float64).reshape(len(levels), width)


def _passes(support: Floats, policy: GroundingPolicy) -> Bools:
    passes: Bools = support > policy.threshold if policy.comparison == ">" else support >= policy.threshold
    return passes


def _chosen(reading: _Reading, policy: GroundingPolicy) -> tuple[Ints, Ints]:
    """The level that each hypothesis ends with, and the one at which pairs lack; -1 for none."""
    n, width = reading.support.shape
    chosen, missing_at, best = np.full(n, -1), np.full(n, -1), np.full(n, -np.inf)
    searching = np.ones(n, np.bool_)
    for level in range(width):
        searching &= reading.exists[:, level]
        lacking = searching & (reading.missing[:, level] > 0)
        missing_at[lacking] = level
        searching &= ~lacking
        support = reading.support[:, level]
        passing = searching & _passes(support, policy)
        better = searching & (support > best)
        chosen[passing | better] = level
        best[better] = support[better]
        searching &= ~passing
    return chosen, missing_at


def _first_round_missing(reading: _Reading, missing_at: Ints, claims: int) -> Ints:
    """The pairs that each claim lacks in the first round in which one of its hypotheses lacks any."""
    never = reading.support.shape[1]
    at = np.where(missing_at >= 0, missing_at, never)
    first = np.full(claims, never)
    np.minimum.at(first, reading.claim, at)
    counted = np.flatnonzero((at < never) & (at == first[reading.claim]))
    missing = np.zeros(claims, np.int64)
    np.add.at(missing, reading.claim[counted], reading.missing[counted, at[counted]])
    return missing
