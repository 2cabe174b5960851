"""The protocol every method speaks: plan the pairs of a round, receive their scores, decide.

A plan is a generator over a batch of claims. It yields the pairs of a round, is sent their scores, and
returns one outcome a claim when it has decided all of them. It knows no model, so one actor runs any
method, one table of recorded scores replays any of them, and one benchmark measures any of them.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from verifier.digests import sha256_text

if TYPE_CHECKING:  # scorers run where what records are made of is not installed
    from verifier.records import Claim, Verification

T = TypeVar("T")

LABELS = ("entailment", "contradiction", "neutral")
CONFIRMATION = "confirmation"
"""The kind of a pair that asks three labels of a claim that support alone has found."""

Asks = Literal["labels", "support", "support+labels"]


class Pair(NamedTuple):
    """One question to a scorer: does ``premise`` entail ``hypothesis``?

    Attributes:
        row: index of the claim in the batch.
        kind: what the premise is made of: ``single``, ``group`` or ``localized``; or ``confirmation``.
        references: the evidence references behind the premise, in the caller's order.
    """

    row: int
    kind: str
    references: tuple[str, ...]
    premise: str
    hypothesis: str


@dataclass(frozen=True, slots=True)
class PairError:
    """Why a pair has no score: ``rejected`` input (does not fit the model) or an ``unscored`` failure."""

    outcome: Literal["rejected", "unscored"]
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Part:
    """One score that a pair's support was aggregated from: of one ensemble member (None: no ensemble), one window."""

    member: str | None
    window: int
    windows: int
    support: float


@dataclass(frozen=True)
class Scores:
    """The scores of n pairs.

    Attributes:
        values: float64 of shape (n, 3), columns entailment, contradiction, neutral, or of shape (n,), support.
        windows: int32 of shape (n,), into how many windows each premise was cut (1: uncut).
        window: int32 of shape (n,), the zero-based window whose values stand.
        truncated: bool of shape (n,), whether the premise was cut short.
        errors: pair index to the reason why its values are not scores (the values there are NaN).
        parts: pair index to what its support was aggregated from, where that is more than one score.
    """

    values: NDArray[np.float64]
    windows: NDArray[np.int32]
    window: NDArray[np.int32]
    truncated: NDArray[np.bool_]
    errors: Mapping[int, PairError] = field(default_factory=dict)
    parts: Mapping[int, tuple[Part, ...]] = field(default_factory=dict)

    @classmethod
    def whole(cls, values: NDArray[np.float64]) -> "Scores":
        """Scores of premises that were read uncut."""
        n = len(values)
        return cls(values, np.ones(n, np.int32), np.zeros(n, np.int32), np.zeros(n, np.bool_))


class ScoredPair(NamedTuple):
    """A scored pair as it stands in a result row; ``values`` are those of its kind, by column name.

    The kind ``window`` is one score among those that were aggregated: of one ``member`` of an ensemble, one window.
    """

    kind: str
    references: tuple[str, ...]
    premise: str
    hypothesis: str
    values: Mapping[str, float]
    window: int = 0
    windows: int = 1
    truncated: bool = False
    member: str | None = None

    @property
    def premise_sha256(self) -> str:
        """Hexadecimal sha256 of the premise; worked out when asked, as deciding does not need it."""
        return sha256_text(self.premise)

    @property
    def hypothesis_sha256(self) -> str:
        """Hexadecimal sha256 of the hypothesis."""
        return sha256_text(self.hypothesis)


def scored_rows(pair: Pair, values: Mapping[str, float], scores: Scores, index: int) -> list[ScoredPair]:
    """The row of pair ``index`` and, where its support was aggregated, a row for each score behind it."""
    whole = ScoredPair(
        pair.kind,
        pair.references,
        pair.premise,
        pair.hypothesis,
        values,
        int(scores.window[index]),
        int(scores.windows[index]),
        bool(scores.truncated[index]),
    )
    return [whole] + [
        whole._replace(
            kind="window",
            values={"support": part.support},
            window=part.window,
            windows=part.windows,
            member=part.member,
        )
        for part in scores.parts.get(index, ())
    ]


@dataclass(frozen=True)
class Outcome:
    """What became of one claim.

    Attributes:
        verification: the record; None for a rejected claim. An unscored claim's says insufficient.
        pairs: every scored pair.
        error: why the claim is not decided.
        support: what was compared with the threshold, where the method has one such number.
    """

    verification: "Verification | None"
    pairs: tuple[ScoredPair, ...] = ()
    error: PairError | None = None
    support: float | None = None


Plan = Generator[list[Pair], Scores, list[Outcome]]


class Method(Protocol):
    """A way to verify claims: ``plan`` starts a batch, see the module's text.

    ``asks`` says what its pairs are scored with: ``labels`` (three probabilities), ``support`` (one), or
    ``support+labels``, where rounds of the kind ``confirmation`` are scored with labels and all others with support.
    """

    name: str

    @property
    def asks(self) -> Asks:
        """See the class's text."""
        ...

    def plan(self, claims: "Sequence[Claim]") -> Plan:
        """Start a batch."""
        ...


def run_plan(plan: Generator[list[Pair], Scores, list[T]], score: Callable[[Sequence[Pair]], Scores]) -> list[T]:
    """Drive a plan to its end with ``score`` answering each round."""
    try:
        pairs = next(plan)
        while True:
            pairs = plan.send(score(pairs))
    except StopIteration as stop:
        outcomes: list[T] = stop.value
        return outcomes
