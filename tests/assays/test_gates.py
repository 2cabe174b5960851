"""What each gate counts."""

import pytest

from verifier.assays.cases import CaseResult
from verifier.assays.gates import AUTHORED, EXTERNAL, GATES, INTEGRITY, Bound, check_gates, judge
from verifier.errors import ConfigurationError
from verifier.records import Status


def case(label: str | None, status: str | None, category: str | None = None, called: bool = True) -> CaseResult:
    return CaseResult(
        case_id="c",
        label=label,
        category=category,
        outcome="decided" if status else "unscored",
        status=Status(status) if status else None,
        model_called=called,
    )


CASES = [
    case("supported", "supported", "minimal_group"),
    case("supported", "insufficient", "minimal_group"),
    case("supported", None),
    case("refuted", "refuted"),
    case("refuted", "supported"),
    case("contested", "supported"),
    case("contested", "contested", "minimal_group"),
    case("insufficient", "refuted"),
    case("insufficient", "contested"),
    case("insufficient", "insufficient"),
    case("insufficient", "supported", "not_supported"),
    case("insufficient", "insufficient", "not_supported"),
    case("incomplete", "incomplete", called=False),
    case("incomplete", "incomplete", called=True),
    case("incomplete", "insufficient", called=False),
]
OBSERVED: dict[str, Bound] = {
    "all_expected_statuses": False,
    "unsafe_supported_count_max": 3,
    "insufficient_refuted_count_max": 1,
    "supported_correct_min": 1,
    "minimal_group_correct_min": 2,
    "refuted_correct_min": 1,
    "insufficient_correct_min": 2,
    "contested_correct_min": 1,
    "incomplete_without_model_min": 1,
    "claims_evaluated_min": 14,
    "supported_precision_min": 1 / 4,
    "supported_recall_min": 1 / 3,
    "balanced_accuracy_min": (1 / 3 + 9 / 12) / 2,
    "false_support_rate_max": 3 / 12,
    "not_supported_false_support_rate_max": 1 / 2,
    "valid_output_share_min": 14 / 15,
    "unscored_count_max": 1,
}


@pytest.mark.parametrize("name", GATES)
def test_what_a_gate_counts(name: str) -> None:
    observed = OBSERVED[name]
    required = True if name == "all_expected_statuses" else observed
    outcome = judge({name: required}, CASES).results[name]
    assert outcome.observed == pytest.approx(observed)


@pytest.mark.parametrize("name", [name for name in GATES if name != "all_expected_statuses"])
def test_a_gate_passes_at_its_bound_and_not_beyond(name: str) -> None:
    observed = GATES[name](CASES)
    off = 1e-9 if name.endswith("_min") else -1e-9
    assert judge({name: observed}, CASES).passed
    table = judge({name: observed + off}, CASES)
    assert (table.passed, table.failed) == (False, [name])


def test_all_expected() -> None:
    right = [one for one in CASES if one.as_expected]
    assert judge({"all_expected_statuses": True}, right).passed
    assert not judge({"all_expected_statuses": True}, CASES).passed


def test_nothing_to_divide_by() -> None:
    none = [case("refuted", "insufficient")]
    for name in ("supported_precision_min", "supported_recall_min", "not_supported_false_support_rate_max"):
        assert GATES[name](none) == 0
    assert GATES["valid_output_share_min"]([]) == 0
    assert GATES["false_support_rate_max"]([]) == 0


def test_the_kinds_are_disjoint() -> None:
    assert len(GATES) == len(AUTHORED) + len(EXTERNAL) + len(INTEGRITY) == len(OBSERVED)


@pytest.mark.parametrize(
    ("gates", "words"),
    [
        ({}, "no gate is set"),
        ({"precision_min": 0.9}, "precision_min is no gate"),
        ({"supported_recall_min": float("nan")}, "a finite number"),
        ({"supported_recall_min": -0.1}, "a finite number"),
        ({"supported_recall_min": True}, "a number expected"),
        ({"all_expected_statuses": 1}, "true or false expected"),
    ],
)
def test_gates_that_say_nothing(gates: dict[str, Bound], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        check_gates(gates)
