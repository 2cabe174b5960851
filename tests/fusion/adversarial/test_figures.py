"""The seed's figures on the adversarial set, with the real MiniLM; what misses a floor stands here with its reason."""

import re
from collections import Counter

import pytest

from tests.fusion.adversarial.build import CARDINALS, EXPECTED, ORDINALS
from tests.fusion.adversarial.measure import (
    CONTRADICTED,
    ELSEWHERE,
    NO_NUMBER,
    Measured,
    confirmed_by,
    coverage_needed,
    figures,
    measured,
    of_class,
    reason,
    swapped_in,
    unseen,
)
from verifier.fusion import Verdict, numeric_atoms, pair_score, tokenize

CASES = 312  # of each class
SUPPORTED, PARTIAL, UNSUPPORTED = Verdict.SUPPORTED, Verdict.PARTIAL, Verdict.UNSUPPORTED


@pytest.fixture(scope="module")
def found() -> list[Measured]:
    return measured()


def verdicts(found: list[Measured], name: str) -> Counter[Verdict]:
    return Counter(one.verdict.verdict for one in of_class(found, name))


def test_the_counts_do_not_hang_on_the_last_bits_of_an_embedding(found: list[Measured]) -> None:
    """Cosines are the same within 1e-5 everywhere; no score is as near to a border."""
    assert len(found) == CASES * len(EXPECTED)
    assert min(abs(one.verdict.score - border) for one in found for border in (0.5, 0.75)) > 2e-4


def test_paraphrases_are_supported(found: list[Measured]) -> None:
    counts = verdicts(found, "paraphrase")
    assert counts[SUPPORTED] >= 0.9 * CASES, "the floor"
    assert counts == {SUPPORTED: 311, PARTIAL: 1}


def test_every_number_swap_that_the_gate_can_see_is_unsupported(found: list[Measured]) -> None:
    """The floor is 100 %; 38 cases miss it, each for a reason that follows from the rule of the gate."""
    swaps = of_class(found, "number_swap")
    for one in swaps:
        seen = reason(one) == ""
        assert one.best.gate_tripped == seen, one.case
        assert (one.verdict.verdict == UNSUPPORTED) == seen and (one.verdict.score <= 0.2) == seen, one.case
    assert Counter(map(reason, swaps)) == {"": 274, NO_NUMBER: 34, ELSEWHERE: 4}
    assert verdicts(found, "number_swap") == {UNSUPPORTED: 274, SUPPORTED: 38}


def test_the_number_swaps_that_pass_are_what_their_reason_says(found: list[Measured]) -> None:
    spelled, ordinal = {*CARDINALS, *ORDINALS}, re.compile(r"\d+(st|nd|rd|th)")
    kinds: Counter[str] = Counter()
    for one in of_class(found, "number_swap"):
        words = swapped_in(one)
        if reason(one) == NO_NUMBER:
            (word,) = words
            assert numeric_atoms([word]) == [] and (word in spelled or ordinal.fullmatch(word)), one.case
            kinds["in digits" if ordinal.fullmatch(word) else "spelled out"] += 1
        if reason(one) == ELSEWHERE:
            numbers = numeric_atoms(words)
            assert numbers and set(numbers) <= set(numeric_atoms(tokenize(one.case["spans"][one.best.span]["text"])))
    assert kinds == {"spelled out": 21, "in digits": 13}
    # The seed splits 43rd at nothing, and it is no 64-bit float; "500" in quotation marks, 0500 and 500.0 are.
    assert numeric_atoms(tokenize('43rd forty ninth "500" 0500 500.0')) == ["500"] * 3


def test_no_fabrication_is_supported_and_some_are_partial(found: list[Measured]) -> None:
    """The floor is 100 % unsupported; 92 cases miss it, because their names and topic are those of the evidence.

    The gate is silent: these claims state no number that the evidence lacks. About half of their weight lies on words
    that no span has, but such a word weighs no more than a name that one span has, and a geometric mean asks little of
    the words where the cosine is high: at 0.65 a coverage of 0.31 makes 0.5.
    """
    assert verdicts(found, "topical_fabrication") == {UNSUPPORTED: 220, PARTIAL: 92}
    partial = [one for one in of_class(found, "topical_fabrication") if one.verdict.verdict == PARTIAL]
    for one in partial:
        assert not one.best.gate_tripped
        assert one.verdict.score == pytest.approx(pair_score(one.best.cosine, one.best.lexical), abs=1e-9)
        assert coverage_needed(one) < one.best.lexical <= 0.6 and unseen(one) > 0.15, one.case

    def mean(values: list[float]) -> float:
        return sum(values) / len(values)

    assert mean([one.best.cosine for one in partial]) == pytest.approx(0.650, abs=1e-3)
    assert mean([one.best.lexical for one in partial]) == pytest.approx(0.418, abs=1e-3)
    assert mean([coverage_needed(one) for one in partial]) == pytest.approx(0.316, abs=1e-3)
    assert mean([unseen(one) for one in partial]) == pytest.approx(0.462, abs=1e-3)


def test_entity_swaps_defeat_words_and_cosines(found: list[Measured]) -> None:
    """A recorded limitation of the seed: should this ever fail, the gap has closed."""
    assert verdicts(found, "entity_swap") == {SUPPORTED: 268, PARTIAL: 44}


def test_labels_that_contradict_leave_no_entity_swap_supported(found: list[Measured]) -> None:
    swaps = of_class(found, "entity_swap")
    outcomes = confirmed_by(swaps, CONTRADICTED)
    assert [outcome.support for outcome in outcomes] == [one.verdict.score for one in swaps], "the matcher's scores"
    assert Counter(outcome.verification.status for outcome in outcomes) == {"refuted": CASES}
    assert all([pair.kind for pair in outcome.pairs].count("confirmation") == 1 for outcome in outcomes)
    unclear = confirmed_by(swaps, (0.4, 0.3, 0.3))
    assert Counter(outcome.verification.status for outcome in unclear) == {"insufficient": CASES}
    entailed = confirmed_by(of_class(found, "paraphrase"), (0.9, 0.05, 0.05))
    assert Counter(outcome.verification.status for outcome in entailed) == {"supported": 311, "insufficient": 1}


def test_the_printed_table(found: list[Measured]) -> None:
    text = figures(found)
    for line in (
        "| number_swap | 312 | 12.2% | 0.0% | 87.8% |",
        "| topical_fabrication | 312 | 0.0% | 29.5% | 70.5% |",
        "| paraphrase | 312 | 99.7% | 0.3% | 0.0% |",
        "| entity_swap | 312 | 85.9% | 14.1% | 0.0% |",
        "entity_swap under fusion+nli, with scripted labels that contradict: 100.0% refuted",
        f"- 34: {NO_NUMBER}",
        f"- 4: {ELSEWHERE}",
    ):
        assert line in text, text
