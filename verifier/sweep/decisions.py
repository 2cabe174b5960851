"""What a setting makes of every claim of a table: arrays, and one claim's decision by name."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from verifier.records import Basis, Claim, Limitation, Status

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

OUTCOMES = (*(status.value for status in Status), "unscored", "rejected")
"""What a claim can become; ``Decisions.outcome`` holds positions in this list."""
CODE = {name: code for code, name in enumerate(OUTCOMES)}
UNSCORED, REJECTED = CODE["unscored"], CODE["rejected"]

_LIMITATIONS, _BASES = tuple(Limitation), tuple(Basis)
LIMITATION_BIT = {limitation: np.uint8(1 << place) for place, limitation in enumerate(_LIMITATIONS)}
BASIS_CODE = {basis: code for code, basis in enumerate(_BASES)}
NO_BASIS = -1


class Decision(NamedTuple):
    """One claim's decision; every field as in ``verifier.records.Verification``."""

    status: str
    supporting_group: tuple[str, ...] = ()
    refuting_group: tuple[str, ...] = ()
    supporting_basis: str | None = None
    refuting_basis: str | None = None
    limitations: tuple[str, ...] = ()


@dataclass(frozen=True)
class Decisions:
    """The decisions of n claims under one policy; every array has shape (n,).

    Attributes:
        outcome: positions in ``OUTCOMES``. ``unscored`` is a claim that needs a pair without a score, ``rejected``
            one that has more evidence than the policy allows.
        supporting_basis, refuting_basis: positions in ``Basis``, -1 for none.
        limitations: bits of ``LIMITATION_BIT``.
        score: in [0, 1], how far the evidence supports the claim, whatever the threshold; NaN where not decided.
        missing: how many distinct pairs of the claim have no score in the first round that needs one of them: what
            ``verify_claims`` would ask next and not be told. Rounds after that one are not known, so not counted.
        groups: the supporting and the refuting group of a claim, by its position.
    """

    outcome: NDArray[np.int8]
    supporting_basis: NDArray[np.int8]
    refuting_basis: NDArray[np.int8]
    limitations: NDArray[np.uint8]
    score: Floats
    missing: Ints
    groups: Callable[[int], tuple[tuple[str, ...], tuple[str, ...]]]

    def decision(self, index: int) -> Decision:
        """The decision on one claim; nothing but its outcome where it is unscored or rejected."""
        outcome = int(self.outcome[index])
        if outcome in (UNSCORED, REJECTED):
            return Decision(OUTCOMES[outcome])
        supporting, refuting = self.groups(index)
        bits = int(self.limitations[index])
        return Decision(
            OUTCOMES[outcome],
            supporting,
            refuting,
            _basis(int(self.supporting_basis[index])),
            _basis(int(self.refuting_basis[index])),
            tuple(one.value for one in _LIMITATIONS if bits & LIMITATION_BIT[one]),
        )


@dataclass(frozen=True)
class ClaimKinds:
    """What is known of n claims before any score: which are answered without one; arrays of shape (n,)."""

    complete_set: Bools
    evidence: Ints

    @classmethod
    def of(cls, claims: Sequence[Claim]) -> "ClaimKinds":
        """Of claims."""
        return cls(
            np.array([claim.requires_complete_set for claim in claims], np.bool_),
            np.array([len(claim.evidence) for claim in claims], np.int64),
        )

    @property
    def asked(self) -> Bools:
        """Claims that a scorer is asked about."""
        return ~self.complete_set & (self.evidence > 0)

    def outcome(self, supported: Bools, refuted: Bools, unscored: Bools, max_evidence: int) -> NDArray[np.int8]:
        """Positions in ``OUTCOMES``, the later rule over the earlier."""
        outcome = np.full(len(self.evidence), CODE["insufficient"], np.int8)
        outcome[refuted] = CODE["refuted"]
        outcome[supported] = CODE["supported"]
        outcome[supported & refuted] = CODE["contested"]
        outcome[self.complete_set] = CODE["incomplete"]
        outcome[unscored] = UNSCORED
        outcome[self.evidence > max_evidence] = REJECTED
        return outcome

    def limited(self) -> NDArray[np.uint8]:
        """The limitation of claims about a complete set."""
        return self.complete_set * LIMITATION_BIT[Limitation.COMPLETE_SET]


def basis_codes(decided: Bools, codes: NDArray[np.int8] | Basis) -> NDArray[np.int8]:
    """``codes`` where a claim is decided, else ``NO_BASIS``."""
    given = BASIS_CODE[codes] if isinstance(codes, Basis) else codes
    return np.where(decided, given, NO_BASIS).astype(np.int8)


def _basis(code: int) -> str | None:
    return None if code == NO_BASIS else _BASES[code].value
