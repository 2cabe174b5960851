"""Two results of the same claims side by side: which statuses changed, and which raw scores."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from verifier.assays.cases import CaseResult, Score

ScoreKey = tuple[str, tuple[str, ...], str, str, str | None, int]


@dataclass(frozen=True)
class StatusChange:
    """A claim that both have decided, each in its way."""

    case_id: str
    expected: str | None
    first: str
    second: str


@dataclass(frozen=True)
class Undecided:
    """A claim that only one of the two has decided, or neither, and why."""

    case_id: str
    first: str | None
    second: str | None
    reason: str


@dataclass(frozen=True)
class ScoreChange:
    """A raw score that differs; None where only the other has scored that pair."""

    case_id: str
    kind: str
    references: tuple[str, ...]
    value: str
    first: float | None
    second: float | None


@dataclass(frozen=True)
class Comparison:
    """What differs between two results.

    Attributes:
        same: claims that both have decided alike.
        statuses: claims that they have decided differently.
        undecided: claims that not both have decided.
        scores: raw scores that differ by more than the tolerance, or of a pair that only one has scored.
        only_first, only_second: ids of claims that the other does not have.
    """

    same: int
    statuses: tuple[StatusChange, ...]
    undecided: tuple[Undecided, ...]
    scores: tuple[ScoreChange, ...]
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]

    @property
    def equal(self) -> bool:
        """Whether nothing differs and everything is decided."""
        return not (self.statuses or self.undecided or self.scores or self.only_first or self.only_second)

    def to_dict(self) -> dict[str, Any]:
        """The comparison as JSON values."""
        return asdict(self) | {"equal": self.equal}


def compare(first: Sequence[CaseResult], second: Sequence[CaseResult], tolerance: float = 0.0) -> Comparison:
    """Compare two results by case id; raw scores differ when they are more than ``tolerance`` apart."""
    ours, theirs = ({case.case_id: case for case in cases} for cases in (first, second))
    pairs = [(ours[name], theirs[name]) for name in ours if name in theirs]
    decided = [(a, b) for a, b in pairs if a.status is not None and b.status is not None]
    changed = tuple(
        StatusChange(a.case_id, a.label or b.label, str(a.status), str(b.status))
        for a, b in decided
        if a.status != b.status
    )
    return Comparison(
        same=len(decided) - len(changed),
        statuses=changed,
        undecided=tuple(_undecided(a, b) for a, b in pairs if a.status is None or b.status is None),
        scores=tuple(change for a, b in pairs for change in _score_changes(a, b, tolerance)),
        only_first=tuple(name for name in ours if name not in theirs),
        only_second=tuple(name for name in theirs if name not in ours),
    )


def _undecided(first: CaseResult, second: CaseResult) -> Undecided:
    reason = second.error or first.error or "it was not decided"
    statuses = [case.status.value if case.status else None for case in (first, second)]
    return Undecided(first.case_id, statuses[0], statuses[1], reason)


def _score_changes(first: CaseResult, second: CaseResult, tolerance: float) -> Iterator[ScoreChange]:
    ours, theirs = ({_key(score): score for score in case.scores} for case in (first, second))
    for key in [*ours, *(key for key in theirs if key not in ours)]:
        left, right = (side[key].values if key in side else {} for side in (ours, theirs))
        for name in sorted(left.keys() | right.keys()):
            a, b = left.get(name), right.get(name)
            if a is None or b is None or abs(a - b) > tolerance:
                yield ScoreChange(first.case_id, key[0], key[1], name, a, b)


def _key(score: Score) -> ScoreKey:
    return (
        score.kind,
        score.references,
        score.premise_sha256,
        score.hypothesis_sha256,
        score.member,
        score.window,
    )
