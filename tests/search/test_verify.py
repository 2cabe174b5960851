"""The public call: what it refuses, and that no failure becomes a verdict."""

import signal
from collections.abc import Sequence
from typing import Any

import pydantic
import pytest

from tests.search.cases import PseudoRandomScorer, generate
from verifier import Claim, Evidence, VerificationPolicy, verify_claims
from verifier.errors import InputError, MissingScore, VerificationError
from verifier.records import read_verification
from verifier.scorers import RecordedScorer

POLICY = VerificationPolicy()
CLAIM = Claim("c", "The valve opened on 4 May.", [Evidence("a", "The valve opened."), Evidence("b", "It was 4 May.")])
SURE = (0.9, 0.05, 0.05)


class Fixed:
    """Answers every pair with the same thing and keeps what it was asked."""

    model, revision = POLICY.model, POLICY.revision

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[tuple[str, str]] = []

    def score(self, pairs: Sequence[tuple[str, str]]) -> Any:
        self.asked += pairs
        if isinstance(self.answer, Exception):
            raise self.answer
        return [self.answer] * len(pairs)


@pytest.mark.parametrize(
    "answer",
    [
        (float("nan"), 0.5, 0.5),
        (float("inf"), 0.0, 0.0),
        (0.5, 0.5, 0.5),
        (1.2, -0.1, -0.1),
        (0.9, 0.1),
        "high",
        None,
        RuntimeError("the device fell off"),
    ],
)
def test_whatever_is_no_probability_is_an_error(answer: Any) -> None:
    with pytest.raises(VerificationError):
        verify_claims([CLAIM], Fixed(answer), POLICY)


def test_too_few_answers_are_an_error() -> None:
    scorer = Fixed(SURE)
    scorer.score = lambda pairs: [SURE]  # type: ignore[method-assign]
    with pytest.raises(VerificationError, match="2 pairs"):
        verify_claims([CLAIM], scorer, POLICY)


def test_the_sum_may_be_off_by_rounding_only() -> None:
    assert verify_claims([CLAIM], Fixed((0.900009, 0.05, 0.05)), POLICY)[0].status == "supported"
    with pytest.raises(VerificationError, match="sum to 1"):
        verify_claims([CLAIM], Fixed((0.90002, 0.05, 0.05)), POLICY)


def test_another_model_than_the_policys_is_an_error() -> None:
    with pytest.raises(VerificationError, match="another/model"):
        verify_claims([CLAIM], Fixed(SURE), VerificationPolicy(model="another/model"))


def test_a_missing_recorded_score_names_the_pair() -> None:
    with pytest.raises(MissingScore, match=r"[0-9a-f]{64}.*[0-9a-f]{64}"):
        verify_claims([CLAIM], RecordedScorer([]), POLICY)


@pytest.mark.parametrize(
    ("evidence", "code"),
    [
        ([Evidence("a", "x"), Evidence("a", "y")], "repeated_reference"),
        ([Evidence("a", "x", "0" * 31 + "1"), Evidence("b", "y", "0" * 31 + "1")], "repeated_memory_id"),
        ([Evidence(f"m{n}", "x") for n in range(65)], "too_much_evidence"),
    ],
)
def test_bad_evidence_is_refused_before_anything_is_scored(evidence: list[Evidence], code: str) -> None:
    scorer = Fixed(SURE)
    with pytest.raises(InputError) as caught:
        verify_claims([CLAIM, Claim("d", "x", evidence, requires_complete_set=True)], scorer, POLICY)
    assert caught.value.code == code
    assert scorer.asked == []


@pytest.mark.parametrize(
    "fields",
    [
        {"entailment_threshold": 0.49},
        {"entailment_threshold": float("nan")},
        {"contradiction_threshold": 1.01},
        {"batch_size": 0},
        {"max_evidence": 257},
        {"max_group_size": 4},
        {"group_candidate_limit": 1},
        {"model": " "},
        {"entailment_policy": "none"},
        {"unknown": 1},
    ],
)
def test_a_policy_out_of_range_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(fields))):
        VerificationPolicy(**fields)


def test_the_model_is_not_called_where_nothing_can_be_asked() -> None:
    scorer = Fixed(SURE)
    whole = Claim("w", "All of them came.", CLAIM.evidence, requires_complete_set=True)
    empty = Claim("e", "It came.")
    incomplete, insufficient = verify_claims([whole, empty], scorer, POLICY)
    assert (incomplete.status, insufficient.status) == ("incomplete", "insufficient")
    assert scorer.asked == []
    assert not incomplete.model_called
    assert insufficient.resolved_revision is None
    assert verify_claims([], scorer, POLICY) == []


def test_equal_pairs_are_asked_once_a_round() -> None:
    scorer = Fixed((0.1, 0.1, 0.8))
    verify_claims([CLAIM, Claim("d", CLAIM.claim, CLAIM.evidence)], scorer, POLICY)
    assert len(scorer.asked) == len(set(scorer.asked)) == 3  # two singles and their group


def test_a_batch_decides_as_its_claims_do_alone() -> None:
    scorer = PseudoRandomScorer(POLICY.model, POLICY.revision)
    claims = [
        Claim(str(number), case["claim"], [Evidence(**item) for item in case["evidence"]])
        for number, case in enumerate(generate(200, seed=7))
    ]
    together = verify_claims(claims, scorer, POLICY)
    assert together == [verify_claims([claim], scorer, POLICY)[0] for claim in claims]
    assert [read_verification(record.to_dict()) for record in together] == together


def test_a_derived_memory_id_is_stable_and_distinct() -> None:
    twin = Claim("c", "other", [Evidence("a", "x"), Evidence("b", "y")])
    ids = [item.memory_id for item in CLAIM.evidence]
    assert ids == [item.memory_id for item in twin.evidence]
    assert len({*ids, *(item.memory_id for item in Claim("d", "x", twin.evidence[:1]).evidence)}) == 2
    assert Claim("d", "x", [Evidence("a", "x")]).evidence[0].memory_id not in ids


@pytest.mark.parametrize("field", ["claim_id", "claim"])
@pytest.mark.parametrize("value", ["", " \n", None, 3, "\ud800"])
def test_a_claim_without_text_is_refused(field: str, value: Any) -> None:
    with pytest.raises(pydantic.ValidationError, match=field):
        Claim(**({"claim_id": "c", "claim": "x"} | {field: value}))


UNPUNCTUATED = [
    "word " * 200_000,
    "not " * 250_000,
    "no " * 300_000,
    "no" + " " * 1_000_000 + "x",
    "9" * 1_000_000 + "x",
    "x" + "9" * 1_000_000,
    "a'd " * 250_000,
    "aim" * 300_000,
    "." * 1_000_000,
    ". " * 500_000,
    '."' * 500_000,
    ".\n" * 500_000,
    "work\t" * 200_000,
    "-" * 1_000_000,
]


@pytest.mark.parametrize("text", UNPUNCTUATED, ids=lambda text: repr(text[:8]))
def test_a_megabyte_without_structure_is_scanned_in_linear_time(text: str) -> None:
    # a quadratic scan takes hours here; the alarm turns that into a failure
    signal.signal(signal.SIGALRM, lambda *_: pytest.fail("a scan is not linear"))
    signal.alarm(60)
    try:
        claim = Claim("c", "The valve opened on 4 May.", [Evidence("a", text), Evidence("b", text + "?")])
        (record,) = verify_claims([claim], Fixed((0.45, 0.55, 0.0)), VerificationPolicy(contradiction_threshold=0.5))
        assert record.claim == claim.claim
        verify_claims([claim], Fixed((0.9, 0.1, 0.0)), POLICY)
    finally:
        signal.alarm(0)
