"""What a decomposer gives back for a draft, and what a decomposer is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from verifier.fusion.records import Draft, DraftClaim


@dataclass(frozen=True, slots=True)
class Decomposition:
    """The claims of one draft, or why there are none to verify.

    Attributes:
        claims: in the order that they were found; none for a draft that states nothing.
        unavailable: ``unavailable: <reason>`` where the draft could not be decomposed, which is the draft's
            ``verification`` then; None otherwise.
    """

    claims: tuple[DraftClaim, ...] = ()
    unavailable: str | None = None


class Decomposer(Protocol):
    """Finds the claims of drafts; what decomposes is recorded in the trace."""

    @property
    def model(self) -> str:
        """Its name."""
        ...

    @property
    def revision(self) -> str:
        """Its version."""
        ...

    @property
    def prompt_hash(self) -> str:
        """Hexadecimal sha256 of the instructions to a model, empty without one."""
        ...

    def decompose(self, drafts: Sequence[Draft]) -> list[Decomposition]:
        """One decomposition a draft, in order; the text and the markers of the spans are read, nothing else."""
        ...
