"""What a result comes to, in the two forms that summaries have been published in, and as flat figures."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from verifier.assays.cases import CaseResult
from verifier.assays.gates import binary
from verifier.records import Status

_PUBLISHED_NAMES = {
    "true_positive": "true_positives",
    "false_positive": "false_positives",
    "true_negative": "true_negatives",
    "false_negative": "false_negatives",
}
_FIGURES = ("accuracy", "balanced_accuracy", "precision", "recall", "f1", "false_support_rate")


def summarize(form: str, cases: Sequence[CaseResult]) -> dict[str, Any]:
    """The summary of a cohort of this form: statuses of authored cases, binary figures of all others."""
    return authored_summary(cases) if form == "authored" else external_summary(form, cases)


def authored_summary(cases: Sequence[CaseResult]) -> dict[str, Any]:
    """Cases, how many were decided as expected, and how often each status was expected and observed."""
    return {
        "cases": len(cases),
        "matched": sum(case.as_expected for case in cases),
        "expected_statuses": _counts(case.label for case in cases),
        "observed_statuses": _counts(case.status.value if case.status else case.outcome for case in cases),
    }


def external_summary(form: str, cases: Sequence[CaseResult]) -> dict[str, Any]:
    """Claims, labels (of the WiCE forms those of the data set), and supported against everything else.

    A claim without a status counts as not supported; a division by zero is 0.
    """
    metrics = binary(cases)
    return {
        "claims": len(cases),
        "labels": _counts(case.category if form.startswith("wice") else case.label for case in cases),
        "predicted_supported": sum(case.status == Status.SUPPORTED for case in cases),
        "metrics": {published: getattr(metrics, ours) for published, ours in _PUBLISHED_NAMES.items()}
        | {name: getattr(metrics, name) for name in _FIGURES},
    }


def _counts(names: Iterable[str | None]) -> dict[str, int]:
    return dict(sorted(Counter(name or "(none)" for name in names).items()))
