"""How well statuses agree with labels; scikit-learn does the mathematics.

Only *decided* claims (those with a status) that have a label are counted. Rejected and unscored claims have no
status: they are left out of every figure and show in ``coverage`` alone. All figures are computed from the
counts of (label, status), so a run of any size costs a table of a few cells.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from sklearn.metrics import (
    accuracy_score,
    confusion_matrix,
    precision_recall_fscore_support,
)

from verifier.records import Status

STATUSES = tuple(status.value for status in Status)

Cells = Mapping[tuple[str | None, str | None], int]


@dataclass(frozen=True, slots=True)
class StatusMetrics:
    """One status against all others: ``support`` claims have it as label, ``decided`` have it as status."""

    precision: float
    recall: float
    f1: float
    support: int
    decided: int


@dataclass(frozen=True, slots=True)
class BinaryMetrics:
    """Supported against everything else, a division by zero being 0.

    Positive is the label ``supported``; predicted positive is the status ``supported``. Every other label and
    status, known or not, is negative. ``false_support_rate`` is false positives over negatives.
    """

    accuracy: float
    balanced_accuracy: float
    precision: float
    recall: float
    f1: float
    false_support_rate: float
    true_positives: int
    false_positives: int
    true_negatives: int
    false_negatives: int


@dataclass(frozen=True, slots=True)
class Metrics:
    """What ``measure`` found.

    Attributes:
        labelled: claims that have a label.
        decided: labelled claims that have a status: the ones counted in every other figure.
        coverage: decided / labelled.
        accuracy: share of status equal to label; None when some label is not a status (labels of another
            kind can never be equal), then the binary figures are the ones to read.
        per_status: one entry for each status that is a label or a status of some counted claim; empty when
            accuracy is None.
        confusion: label → status → count, labels in the order of the statuses, others after them by name.
        binary: supported against the rest.
    """

    labelled: int
    decided: int
    coverage: float
    accuracy: float | None
    per_status: Mapping[str, StatusMetrics]
    confusion: Mapping[str, Mapping[str, int]]
    binary: BinaryMetrics

    def flat(self) -> dict[str, float]:
        """The figures by slash-separated name, for instance ``recall/refuted``, as a tracking server takes them."""
        figures: dict[str, float] = {"labelled": self.labelled, "coverage": self.coverage}
        if self.accuracy is not None:
            figures["accuracy"] = self.accuracy
        for status, one in self.per_status.items():
            figures |= {f"{name}/{status}": value for name, value in asdict(one).items()}
        return figures | {f"binary/{name}": value for name, value in asdict(self.binary).items()}


def measure(statuses: Iterable[str | None], labels: Iterable[str | None]) -> Metrics | None:
    """Metrics of parallel statuses and labels, None standing for no status and no label; None without labels."""
    return measure_cells(Counter(zip(labels, statuses, strict=True)))


def measure_cells(cells: Cells) -> Metrics | None:
    """Metrics of a count for each (label, status); None when no claim has a label."""
    labelled = sum(count for (label, _), count in cells.items() if label is not None)
    if not labelled:
        return None
    counts = {
        (label, status): count
        for (label, status), count in cells.items()
        if label is not None and status is not None and count
    }
    decided = sum(counts.values())
    comparable = decided > 0 and all(label in STATUSES for label, _ in counts)
    return Metrics(
        labelled=labelled,
        decided=decided,
        coverage=decided / labelled,
        accuracy=_accuracy(counts) if comparable else None,
        per_status=_per_status(counts) if comparable else {},
        confusion=_confusion(counts),
        binary=_binary(counts),
    )


def _accuracy(counts: Mapping[tuple[str, str], int]) -> float:
    labels, statuses = zip(*counts, strict=True)
    return float(accuracy_score(labels, statuses, sample_weight=list(counts.values())))


def _per_status(counts: Mapping[tuple[str, str], int]) -> dict[str, StatusMetrics]:
    seen = {name for cell in counts for name in cell}
    names = [status for status in STATUSES if status in seen]
    labels, statuses = zip(*counts, strict=True)
    columns = precision_recall_fscore_support(
        labels, statuses, labels=names, sample_weight=list(counts.values()), zero_division=0
    )
    decided = Counter[str]()
    for (_, status), count in counts.items():
        decided[status] += count
    return {
        name: StatusMetrics(float(precision), float(recall), float(f1), round(support), decided[name])
        for name, precision, recall, f1, support in zip(names, *columns, strict=True)
    }


def _confusion(counts: Mapping[tuple[str, str], int]) -> dict[str, dict[str, int]]:
    labels = {label for label, _ in counts}
    rows = [name for name in STATUSES if name in labels] + sorted(labels.difference(STATUSES))
    columns = [*STATUSES, *sorted({status for _, status in counts}.difference(STATUSES))]
    return {label: {status: counts.get((label, status), 0) for status in columns} for label in rows}


def _binary(counts: Mapping[tuple[str, str], int]) -> BinaryMetrics:
    if not counts:  # nothing decided, which scikit-learn refuses to measure
        return BinaryMetrics(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0, 0, 0, 0)
    supported = Status.SUPPORTED.value
    # The two classes always stand in the lists, with weight 0 where they are empty.
    expected = [label == supported for label, _ in counts] + [False, True]
    given = [status == supported for _, status in counts] + [False, True]
    weights = [*counts.values(), 0, 0]
    tn, fp, fn, tp = (round(n) for n in confusion_matrix(expected, given, sample_weight=weights).ravel())
    precision, recall, f1, _ = precision_recall_fscore_support(
        expected, given, labels=[False, True], sample_weight=weights, zero_division=0
    )
    return BinaryMetrics(
        accuracy=(tp + tn) / (tp + fp + tn + fn),
        balanced_accuracy=float(recall.mean()),
        precision=float(precision[1]),
        recall=float(recall[1]),
        f1=float(f1[1]),
        false_support_rate=fp / (fp + tn) if fp + tn else 0.0,
        true_positives=tp,
        false_positives=fp,
        true_negatives=tn,
        false_negatives=fn,
    )
