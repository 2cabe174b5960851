import pytest

from tests.shared import needs_shared, read_lines
from verifier.scorers.judgment import parse_judgment, read_judgment


@needs_shared
def test_the_recorded_answers_map_as_published() -> None:
    lines = read_lines("judge/vectors.jsonl")
    assert len(lines) == 24
    assert [parse_judgment(line["raw"]) for line in lines] == [line["score"] for line in lines]


@pytest.mark.parametrize(
    "raw",
    [
        "",
        "no json here",
        "{",
        "}{",
        '{"supported": true, "confidence": 0.9',
        '{"confidence": 0.9}',
        '{"supported": null, "confidence": 0.9}',
        '{"supported": "yes", "confidence": 0.8}',
        '{"supported": "no", "confidence": 0.8}',
        '{"supported": true, "confidence": NaN}',
        '{"a": {"supported": true}}',
        "{" * 100_000 + "}" * 100_000,
    ],
)
def test_an_answer_that_does_not_say_it_is_unreadable(raw: str) -> None:
    assert read_judgment(raw) is None


def test_a_readable_answer_is_its_score() -> None:
    assert read_judgment('{"supported": false, "confidence": 0.9}') == pytest.approx(0.1)
    assert read_judgment('Well: {"supported": true, "confidence": 1e999}') == 1.0
    assert read_judgment('{"supported": true}') == 0.5


@pytest.mark.parametrize("supported", ["NaN", "Infinity", "0.2", "2", "-1"])
def test_a_number_that_is_no_truth_value_is_unreadable(supported: str) -> None:
    assert read_judgment(f'{{"supported": {supported}, "confidence": 0.9}}') is None


@pytest.mark.parametrize(("supported", "support"), [("1", 0.9), ("0", 0.1), ("1.0", 0.9), ("false", 0.1)])
def test_one_and_zero_are_truth_values(supported: str, support: float) -> None:
    assert read_judgment(f'{{"supported": {supported}, "confidence": 0.9}}') == pytest.approx(support)
