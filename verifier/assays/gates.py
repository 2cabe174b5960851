"""Gates: what a registration demands of a result, one function a gate, and the table of what came of them.

A gate whose name ends in ``_min`` passes when what was observed is at least what is required, one that ends in
``_max`` when it is at most that; ``all_expected_statuses`` passes when both are equal. A claim without a status
(unscored or rejected) is nowhere counted as supported, refuted or correct, and stays in every denominator.
"""

from collections.abc import Callable, Mapping, Sequence

from pydantic import BaseModel, ConfigDict

from verifier.assays.cases import CaseResult
from verifier.errors import ConfigurationError
from verifier.metrics import BinaryMetrics, measure
from verifier.records import Status

Cases = Sequence[CaseResult]
Bound = bool | int | float
MINIMAL_GROUP = "minimal_group"
NOT_SUPPORTED = "not_supported"


class GateOutcome(BaseModel):
    """What one gate requires, what was observed, and whether it passed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    required: Bound
    observed: Bound
    passed: bool


class GateTable(BaseModel):
    """Every gate of a registration by name; ``passed`` when all of them did."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    passed: bool
    results: dict[str, GateOutcome]

    @property
    def failed(self) -> list[str]:
        """The names of the gates that failed."""
        return [name for name, outcome in self.results.items() if not outcome.passed]


def all_expected_statuses(cases: Cases) -> bool:
    """Whether every case was decided as expected (the older form of an authored assay, required: true)."""
    return all(case.as_expected for case in cases)


def unsafe_supported_count(cases: Cases) -> int:
    """Cases decided as supported whose expected status is any other."""
    return sum(case.status == Status.SUPPORTED and case.label != Status.SUPPORTED for case in cases)


def insufficient_refuted_count(cases: Cases) -> int:
    """Cases expected to be insufficient and decided as refuted."""
    return sum(case.label == Status.INSUFFICIENT and case.status == Status.REFUTED for case in cases)


def supported_correct(cases: Cases) -> int:
    """Cases expected to be supported and decided so."""
    return _correct(cases, Status.SUPPORTED)


def minimal_group_correct(cases: Cases) -> int:
    """Cases of the category ``minimal_group`` decided as expected."""
    return sum(case.category == MINIMAL_GROUP and case.as_expected for case in cases)


def refuted_correct(cases: Cases) -> int:
    """Cases expected to be refuted and decided so."""
    return _correct(cases, Status.REFUTED)


def insufficient_correct(cases: Cases) -> int:
    """Cases expected to be insufficient and decided so."""
    return _correct(cases, Status.INSUFFICIENT)


def contested_correct(cases: Cases) -> int:
    """Cases expected to be contested and decided so."""
    return _correct(cases, Status.CONTESTED)


def incomplete_without_model(cases: Cases) -> int:
    """Cases expected to be incomplete, decided so, and without any pair scored for them."""
    return sum(case.label == Status.INCOMPLETE and case.as_expected and not case.model_called for case in cases)


def claims_evaluated(cases: Cases) -> int:
    """Claims that have a status."""
    return sum(case.status is not None for case in cases)


def supported_precision(cases: Cases) -> float:
    """Of the claims decided as supported, the share whose label is supported; 0 where there are none."""
    return binary(cases).precision


def supported_recall(cases: Cases) -> float:
    """Of the claims labelled supported, the share decided so; 0 where there are none."""
    return binary(cases).recall


def balanced_accuracy(cases: Cases) -> float:
    """The mean of recall and of the share of all other claims that are not decided as supported."""
    return binary(cases).balanced_accuracy


def false_support_rate(cases: Cases) -> float:
    """Of the claims with any other label, the share decided as supported; 0 where there are none."""
    return binary(cases).false_support_rate


def not_supported_false_support_rate(cases: Cases) -> float:
    """Of the claims of the category ``not_supported``, the share decided as supported; 0 where there are none."""
    wrong = [case.status == Status.SUPPORTED for case in cases if case.category == NOT_SUPPORTED]
    return sum(wrong) / len(wrong) if wrong else 0.0


def valid_output_share(cases: Cases) -> float:
    """The share of all claims that have a status, the others being failures of the model or of the input."""
    return claims_evaluated(cases) / len(cases) if cases else 0.0


def unscored_count(cases: Cases) -> int:
    """Claims whose pairs the model failed to score."""
    return sum(case.outcome == "unscored" for case in cases)


Gate = Callable[[Cases], Bound]

AUTHORED: dict[str, Gate] = {
    "all_expected_statuses": all_expected_statuses,
    "unsafe_supported_count_max": unsafe_supported_count,
    "insufficient_refuted_count_max": insufficient_refuted_count,
    "supported_correct_min": supported_correct,
    "minimal_group_correct_min": minimal_group_correct,
    "refuted_correct_min": refuted_correct,
    "insufficient_correct_min": insufficient_correct,
    "contested_correct_min": contested_correct,
    "incomplete_without_model_min": incomplete_without_model,
}
"""Gates on cases that were written for the purpose, with an expected status each."""

EXTERNAL: dict[str, Gate] = {
    "claims_evaluated_min": claims_evaluated,
    "supported_precision_min": supported_precision,
    "supported_recall_min": supported_recall,
    "balanced_accuracy_min": balanced_accuracy,
    "false_support_rate_max": false_support_rate,
    "not_supported_false_support_rate_max": not_supported_false_support_rate,
}
"""Gates on other people's data: supported against everything else."""

INTEGRITY: dict[str, Gate] = {
    "valid_output_share_min": valid_output_share,
    "unscored_count_max": unscored_count,
}
"""Gates on the run itself."""

GATES: dict[str, Gate] = AUTHORED | EXTERNAL | INTEGRITY


def check_gates(required: Mapping[str, Bound]) -> None:
    """Raise ConfigurationError for no gate at all, an unknown one, or a bound that it can have by no result."""
    if not required:
        raise ConfigurationError(f"no gate is set, so nothing could fail: known gates are {', '.join(GATES)}")
    for name, bound in required.items():
        if name not in GATES:
            raise ConfigurationError(f"{name} is no gate: known are {', '.join(GATES)}")
        if isinstance(bound, bool) != (name == "all_expected_statuses"):
            wanted = "true or false" if name == "all_expected_statuses" else "a number"
            raise ConfigurationError(f"the gate {name} is {bound!r}: {wanted} expected")
        if not isinstance(bound, bool) and not 0 <= bound < float("inf"):
            raise ConfigurationError(f"the gate {name} is {bound!r}: a finite number from 0 on expected")


def judge(required: Mapping[str, Bound], cases: Cases) -> GateTable:
    """The table of the gates; ConfigurationError as ``check_gates`` says."""
    check_gates(required)
    results = {name: _outcome(name, bound, GATES[name](cases)) for name, bound in required.items()}
    return GateTable(passed=all(outcome.passed for outcome in results.values()), results=results)


def binary(cases: Cases) -> BinaryMetrics:
    """Supported against everything else over all labelled claims; one without a status counts as not supported."""
    counted = [case for case in cases if case.label is not None]
    statuses = [case.status.value if case.status else "undecided" for case in counted]
    metrics = measure(statuses, [case.label for case in counted])
    return metrics.binary if metrics else BinaryMetrics(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0, 0, 0, 0)


def _correct(cases: Cases, status: Status) -> int:
    return sum(case.label == status and case.as_expected for case in cases)


def _outcome(name: str, required: Bound, observed: Bound) -> GateOutcome:
    if name.endswith("_min"):
        passed = observed >= required
    elif name.endswith("_max"):
        passed = observed <= required
    else:
        passed = observed == required
    return GateOutcome(required=required, observed=observed, passed=passed)
