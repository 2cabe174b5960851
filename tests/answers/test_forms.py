"""The input forms of answers and corpora: what is read, and every way to fail."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifier.answers.records import Answer, check_answer
from verifier.answers.schemas import answer_from_row, answer_row, passage_from_row, passage_row
from verifier.errors import InputError
from verifier.factuality.corpus import Passage
from verifier.fusion.records import DraftClaim, PlanSpan
from verifier.fusion.trace import Generation
from verifier.pipeline.answer_forms import answer_from_answers, passage_from_corpus
from verifier.pipeline.prepare import prepare
from verifier.pipeline.sources import InputSpec

ROW: dict[str, Any] = {
    "answer_id": " a1 ",
    "answer": " It is 5 m wide [S1]. ",
    "spans": [
        {"span_id": "p1", "text": "5 m wide", "markers": ["S1"], "masked": [[0, 1]], "_own": 3},
        {"span_id": "p2", "text": "a summary", "span_class": "cache"},
    ],
    "claims": [{"text": "It is 5 m wide.", "draft_span": [1, 20], "cited_markers": ["S1"]}],
    "scope": "team",
    "category": "x",
    "query_id": "q",
    "request": {"question": "How wide?", "k": [1, None, {"x": 0.5}]},
    "prompt": "P",
    "gen": "g",
    "decompose": "d",
    "plan_model": "pm",
    "prompt_model": "prm",
    "usage_input_tokens": 1,
    "usage_output_tokens": 2,
    "ts": 3,
    "_mine": object(),
    "note": None,
}
ANSWER = Answer(
    "a1",
    " It is 5 m wide [S1]. ",
    (PlanSpan("p1", "5 m wide", ("S1",), masked=((0, 1),)), PlanSpan("p2", "a summary", span_class="cache")),
    (DraftClaim("It is 5 m wide.", (1, 20), ("S1",)),),
    "team",
    "x",
    Generation("q", {"question": "How wide?", "k": [1, None, {"x": 0.5}]}, "P", "g", "d", "pm", "prm", 1, 2, 3),
)


def test_every_field_is_read_and_the_text_is_left_as_it_is() -> None:
    assert answer_from_answers({name: field for name, field in ROW.items() if name != "note"}) == ANSWER
    assert answer_from_answers(ROW) == ANSWER, "null means absent"


def test_what_is_not_known_may_be_left_out() -> None:
    assert answer_from_answers({"answer_id": "a", "answer": ""}) == Answer("a", "", generation=Generation("a"))
    assert passage_from_corpus({"passage_id": " p ", "text": " t "}) == Passage("p", " t ")


def _span(**changes: Any) -> dict[str, Any]:
    return {"answer_id": "a", "answer": "It is.", "spans": [{"span_id": "p", "text": "t"} | changes]}


def _claim(**changes: Any) -> dict[str, Any]:
    claim = {"text": "It is.", "draft_span": [0, 6]} | changes
    return {"answer_id": "a", "answer": "It is.", "claims": [claim]}


def nested(depth: int) -> list[Any]:
    inner: list[Any] = []
    for _ in range(depth - 1):
        inner = [inner]
    return inner


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no id": ({"answer": "x"}, "missing_answer_id"),
    "blank id": ({"answer_id": " ", "answer": "x"}, "missing_answer_id"),
    "no answer": ({"answer_id": "a"}, "missing_answer"),
    "an answer that is a number": ({"answer_id": "a", "answer": 3}, "not_a_string"),
    "a field that is not known": ({"answer_id": "a", "answer": "x", "span": []}, "unknown_field"),
    "a field of a span that is not known": (_span(txt="x"), "unknown_field"),
    "spans that are no list": ({"answer_id": "a", "answer": "x", "spans": "p"}, "not_a_list"),
    "a span that is no object": ({"answer_id": "a", "answer": "x", "spans": ["p"]}, "not_an_object"),
    "a span without text": (_span(text=None), "missing_evidence_field"),
    "a span with a blank text": (_span(text=" \n"), "empty_passage"),
    "a class that is not known": (_span(span_class="rumour"), "unknown_enum_value"),
    "a masked range outside": (_span(masked=[[0, 2]]), "masked_range_out_of_bounds"),
    "a masked range of one number": (_span(masked=[[0]]), "missing_evidence_field"),
    "two spans of one name": (
        {"answer_id": "a", "answer": "x", "spans": [{"span_id": "p", "text": "t"}] * 2},
        "repeated_span_id",
    ),
    "a draft span out of bounds": (_claim(draft_span=[0, 7]), "draft_span_out_of_bounds"),
    "a draft span before the text": (_claim(draft_span=[-1, 3]), "draft_span_out_of_bounds"),
    "an empty draft span": (_claim(draft_span=[3, 3]), "empty_draft_span"),
    "a draft span turned round": (_claim(draft_span=[4, 2]), "empty_draft_span"),
    "no draft span": (_claim(draft_span=None), "missing_draft_span"),
    "a draft span of texts": (_claim(draft_span=["0", "6"]), "invalid_value"),
    "a blank claim": (_claim(text="  "), "empty_claim"),
    "a lone surrogate": ({"answer_id": "a", "answer": "\ud800"}, "invalid_utf8"),
    "a lone surrogate in a span": (_span(text="\udfff"), "invalid_utf8"),
    "a lone surrogate in the request": ({"answer_id": "a", "answer": "x", "request": {"q": "\ud800"}}, "invalid_utf8"),
    "tokens below zero": ({"answer_id": "a", "answer": "x", "usage_input_tokens": -1}, "invalid_value"),
    "a time that no column holds": ({"answer_id": "a", "answer": "x", "ts": 1 << 63}, "invalid_value"),
    "a deep request": ({"answer_id": "a", "answer": "x", "request": {"q": nested(70)}}, "nested_too_deeply"),
    "deep spans": ({"answer_id": "a", "answer": "x", "spans": nested(900)}, "nested_too_deeply"),
    "a marker of too many spans": (
        {
            "answer_id": "a",
            "answer": "x",
            "spans": [{"span_id": f"{n}", "text": "t", "markers": ["S"]} for n in range(257)],
        },
        "crowded_marker",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_answers_have_a_code_and_a_sentence(name: str) -> None:
    row, code = BAD[name]
    with pytest.raises(InputError) as caught:
        check_answer(answer_from_answers(row))
    assert caught.value.code == code, str(caught.value)
    assert str(caught.value).encode()


def test_overlapping_draft_spans_are_no_fault() -> None:
    claims = [{"text": "It is.", "draft_span": [0, 6]}, {"text": "is", "draft_span": [3, 5]}]
    check_answer(answer_from_answers({"answer_id": "a", "answer": "It is.", "claims": claims}))


@pytest.mark.parametrize(
    ("row", "code"),
    [
        ({"text": "t"}, "missing_passage_id"),
        ({"passage_id": "p"}, "missing_evidence_field"),
        ({"passage_id": "p", "text": " "}, "empty_passage"),
        ({"passage_id": "p", "text": "t", "title": "x"}, "unknown_field"),
    ],
)
def test_bad_passages_have_a_code(row: dict[str, Any], code: str) -> None:
    with pytest.raises(InputError) as caught:
        passage_from_corpus(row)
    assert caught.value.code == code


texts = st.text(st.characters(codec="utf-8"), max_size=20)


@given(
    st.builds(
        Answer,
        texts,
        texts,
        st.lists(st.builds(PlanSpan, texts, texts, st.lists(texts).map(tuple)), max_size=3).map(tuple),
        st.none()
        | st.lists(st.builds(DraftClaim, texts, st.tuples(st.integers(0, 9), st.integers(0, 9))), max_size=2).map(
            tuple
        ),
        st.none() | texts,
        st.none() | texts,
        st.builds(Generation, texts, st.dictionaries(texts, st.none() | st.floats(0, 1) | texts, max_size=3)),
    )
)
def test_an_answer_comes_back_from_its_row(answer: Answer) -> None:
    assert answer_from_row(answer_row(7, answer)) == answer


@given(st.builds(Passage, texts, texts, texts, st.none() | texts))
def test_a_passage_comes_back_from_its_row(passage: Passage) -> None:
    assert passage_from_row(passage_row(3, passage)) == passage


def test_prepare_writes_answers_and_rejects(tmp_path: Path) -> None:
    good = {name: field for name, field in ROW.items() if name != "_mine"}
    rows = [good, {"answer_id": "a2", "answer": "x"}, good, *(row for row, code in BAD.values())]
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    summary = prepare(InputSpec("answers", str(path)), str(tmp_path / "out"))
    assert (summary.rows, summary.rejects, summary.evidence_items) == (2, 1 + len(BAD), 2)
    assert summary.categories == {"x": 1} and summary.inputs[0].role == "answers"
    work = pq.read_table(tmp_path / "out/work").to_pylist()
    assert [answer_from_row(row) for row in work] == [ANSWER, Answer("a2", "x", generation=Generation("a2"))]
    rejects = pq.read_table(tmp_path / "out/rejects").to_pylist()
    assert (rejects[0]["claim_id"], rejects[0]["code"]) == ("a1", "repeated_answer_id")
    # JSON writes lone surrogates as escapes, so each bad row comes back as it was
    assert sorted(row["code"] for row in rejects[1:]) == sorted(code for _, code in BAD.values())
