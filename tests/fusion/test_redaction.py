"""Redaction: what is cut, what is merged, and what is left alone."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifier.errors import InputError
from verifier.fusion import ClaimVerdict, Verdict, delivered_text, redact
from verifier.fusion.redaction import NOTICE, removed_ranges

DRAFT = "One two. Three four! Five six? 🙂 end"


def judged(start: int, end: int, verdict: Verdict = Verdict.UNSUPPORTED) -> ClaimVerdict:
    return ClaimVerdict("a claim", (start, end), verdict)


@st.composite
def verdicts_of(draw: st.DrawFn) -> list[ClaimVerdict]:
    ranges = st.tuples(st.integers(0, len(DRAFT) - 1), st.integers(1, len(DRAFT))).filter(lambda r: r[0] < r[1])
    return draw(st.lists(st.builds(ClaimVerdict, st.just("c"), ranges, st.sampled_from(Verdict)), max_size=6))


def test_only_unsupported_claims_are_cut() -> None:
    verdicts = [judged(9, 20), *(judged(0, 8, v) for v in Verdict if v != Verdict.UNSUPPORTED)]
    assert redact(DRAFT, verdicts) == f"One two. {NOTICE} Five six? 🙂 end"
    assert redact(DRAFT, verdicts[1:]) == redact(DRAFT, []) == DRAFT
    assert NOTICE == "[unsupported claim removed]"


@pytest.mark.parametrize(
    ("ranges", "notices"),
    [
        ([(0, 8), (4, 12)], 1),
        ([(0, 8), (8, 12)], 1),
        ([(0, 20), (3, 5)], 1),
        ([(9, 20), (0, 8)], 2),
        ([(0, 8), (0, 8)], 1),
        ([(0, len(DRAFT))], 1),
    ],
)
def test_ranges_that_overlap_or_touch_get_one_notice(ranges: list[tuple[int, int]], notices: int) -> None:
    assert redact(DRAFT, [judged(*one) for one in ranges]).count(NOTICE) == notices


def test_policies() -> None:
    assert delivered_text(DRAFT, [judged(0, 31)], "flag") == DRAFT
    assert delivered_text(DRAFT, [judged(0, 31)], "redact") == f"{NOTICE}🙂 end"


def test_an_unsupported_claim_goes_even_where_a_supported_one_shares_its_words() -> None:
    assert redact(DRAFT, [judged(0, 8), judged(0, 20, Verdict.SUPPORTED)]) == NOTICE + DRAFT[8:]


def test_anything_with_a_range_and_a_verdict_will_do() -> None:
    assert redact("abc", [SimpleNamespace(draft_span=[0, 1], verdict="unsupported")]) == f"{NOTICE}bc"


@pytest.mark.parametrize(
    ("range_", "code"),
    [((0, 99), "draft_span_out_of_bounds"), ((-2, 3), "draft_span_out_of_bounds"), ((3, 3), "empty_draft_span")],
)
def test_a_range_outside_of_the_draft_is_an_error(range_: tuple[int, int], code: str) -> None:
    with pytest.raises(InputError) as caught:
        redact(DRAFT, [judged(*range_)])
    assert caught.value.code == code


@given(verdicts_of())
def test_what_no_unsupported_claim_covers_stays_in_order(verdicts: list[ClaimVerdict]) -> None:
    cut = {at for one in verdicts if one.verdict == Verdict.UNSUPPORTED for at in range(*one.draft_span)}
    redacted = redact(DRAFT, verdicts)
    assert "".join(redacted.split(NOTICE)) == "".join(c for at, c in enumerate(DRAFT) if at not in cut)
    for one in verdicts:
        if one.verdict == Verdict.SUPPORTED and cut.isdisjoint(range(*one.draft_span)):
            assert DRAFT[slice(*one.draft_span)] in redacted, "a supported range is never touched"


@given(verdicts_of(), st.randoms(use_true_random=False))
def test_redaction_is_idempotent_and_knows_no_order(verdicts: list[ClaimVerdict], random: st.DataObject) -> None:
    redacted = redact(DRAFT, verdicts)
    shuffled = [*verdicts, *verdicts]
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert redact(DRAFT, shuffled) == redacted
    # The same claims in the text that was delivered: what is left of them, or the notice in their place.
    moved, shift = list[ClaimVerdict](), 0
    for start, end in removed_ranges(DRAFT, verdicts):
        moved.append(judged(start + shift, start + shift + len(NOTICE)))
        shift += len(NOTICE) - (end - start)
    assert redact(redacted, moved) == redacted
    left = [replace(one, draft_span=(0, 1)) for one in verdicts if one.verdict != Verdict.UNSUPPORTED]
    assert redact(redacted, left) == redacted
