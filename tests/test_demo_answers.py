"""The shipped demo answers and passages: every line is valid, and every special case is there."""

import json
from collections import Counter
from typing import Any, Literal

import pytest

from verifier.answers.records import Answer, check_answer
from verifier.decompose import claims_of_sentences
from verifier.demo import demo_path
from verifier.factuality import sentence_claims
from verifier.factuality.corpus import Passage
from verifier.fusion.records import DraftClaim, PlanSpan
from verifier.pipeline.answer_forms import answer_from_answers, passage_from_corpus


def rows(name: Literal["answers", "passages"]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in demo_path(name).read_text("utf-8").splitlines()]


@pytest.fixture(scope="module")
def answers() -> list[Answer]:
    return [answer_from_answers(row) for row in rows("answers")]


@pytest.fixture(scope="module")
def passages() -> dict[str, Passage]:
    return {row["passage_id"]: passage_from_corpus(row) for row in rows("passages")}


def of(answers: list[Answer], category: str) -> list[Answer]:
    found = [answer for answer in answers if answer.category == category]
    assert found, f"no answer of the category {category}"
    return found


def marked_spans(answer: Answer) -> dict[str, PlanSpan]:
    return {name: span for number, span in enumerate(answer.spans, 1) for name in span.markers or (f"S{number}",)}


def claims_of(answer: Answer) -> list[DraftClaim]:
    return list(answer.claims or claims_of_sentences(answer.answer, marked_spans(answer)))


def words(text: str) -> set[str]:
    return {word.strip("().,").casefold() for word in text.split()}


def test_every_answer_is_valid_and_unique(answers: list[Answer]) -> None:
    for answer in answers:
        check_answer(answer)
    assert len(answers) == 40
    assert len({answer.answer_id for answer in answers}) == len({a.generation.query_id for a in answers}) == 40


def test_every_passage_is_valid_and_unique(passages: dict[str, Passage]) -> None:
    assert len(passages) == len(rows("passages")) == 120
    assert len({passage.text for passage in passages.values()}) == 120
    assert {passage.kind for passage in passages.values()} == {"text", "log", "note"}


def test_how_each_answer_was_made_is_known(answers: list[Answer]) -> None:
    for made in (answer.generation for answer in answers):
        assert made.request["question"] and made.prompt
        assert (made.gen, made.plan_model) == ("demo-writer", "demo-planner")
        assert made.usage_input_tokens
    times = [answer.generation.ts for answer in answers]
    assert times == sorted(times) and len(set(times)) == len(times)


def test_truth_spans_are_the_passages_of_their_name(answers: list[Answer], passages: dict[str, Passage]) -> None:
    spans = [span for answer in answers for span in answer.spans]
    assert all(span.text == passages[span.span_id].text for span in spans if span.span_class == "truth")
    assert not any(span.span_id in passages for span in spans if span.span_class == "cache")


def test_half_of_the_answers_have_a_scope_that_holds_their_passages(
    answers: list[Answer], passages: dict[str, Passage]
) -> None:
    for answer in answers:
        used = {passages[span.span_id].scope for span in answer.spans if span.span_class == "truth"}
        assert used <= {answer.scope}
    assert sum(answer.scope is not None for answer in answers) == 20
    assert {answer.scope for answer in answers} == {passage.scope for passage in passages.values()}


def test_the_categories(answers: list[Answer]) -> None:
    assert Counter(answer.category for answer in answers) == {
        "faithful": 7,
        "wrong_number": 5,
        "paraphrase": 4,
        "fabricated_detail": 4,
        "mixed": 4,
        "wrong_name": 3,
        "stale_summary": 3,
        "erased_evidence": 2,
        "contradicted": 2,
        "given_claims": 2,
        "no_evidence": 1,
        "unknown_marker": 1,
        "evasive": 1,
        "empty": 1,
    }


def test_an_empty_answer_has_a_plan(answers: list[Answer]) -> None:
    assert all(answer.answer == "" and answer.spans for answer in of(answers, "empty"))


def test_an_answer_without_evidence_has_no_span_and_its_passage_another_scope(
    answers: list[Answer], passages: dict[str, Passage]
) -> None:
    (answer,) = of(answers, "no_evidence")
    assert answer.spans == ()
    (elsewhere,) = [passage for passage in passages.values() if "120 dock workers" in passage.text]
    assert "120 dock workers" in answer.answer and None not in (answer.scope, elsewhere.scope)
    assert answer.scope != elsewhere.scope


def test_stale_summaries_are_cited_from_the_cache_and_one_plan_has_nothing_else(answers: list[Answer]) -> None:
    classes = [Counter(span.span_class for span in answer.spans) for answer in of(answers, "stale_summary")]
    assert all(of_answer["cache"] for of_answer in classes)
    assert [set(of_answer) for of_answer in classes].count({"cache"}) == 1
    for answer in of(answers, "stale_summary"):
        marked = marked_spans(answer)
        assert any(marked[name].span_class == "cache" for claim in claims_of(answer) for name in claim.cited_markers)


def test_masked_ranges_are_the_black_ones(answers: list[Answer]) -> None:
    for answer in answers:
        for span in answer.spans:
            masked = {at for start, end in span.masked for at in range(start, end) if span.text[at] != " "}
            assert masked == {at for at, character in enumerate(span.text) if character == "█"}
    assert all(sum(bool(span.masked) for span in answer.spans) == 2 for answer in of(answers, "erased_evidence"))


def test_only_one_answer_cites_what_its_plan_lacks(answers: list[Answer]) -> None:
    lacking = [
        (answer.category, name)
        for answer in answers
        for claim in claims_of(answer)
        for name in claim.cited_markers
        if name not in marked_spans(answer)
    ]
    assert lacking == [("unknown_marker", "S9"), ("unknown_marker", "S9"), ("unknown_marker", "S12")]


def test_given_claims_quote_the_draft(answers: list[Answer]) -> None:
    for answer in of(answers, "given_claims"):
        assert answer.claims
        for claim in answer.claims:
            start, end = claim.draft_span
            quoted = answer.answer[start:end]
            assert quoted == quoted.strip()
            assert not answer.answer[start - 1 : start].isalnum() and not answer.answer[end : end + 1].isalnum()
            said = words(claim.text)
            assert 2 * len(said & words(quoted)) >= len(said), (claim.text, quoted)
    assert {answer.category for answer in answers if answer.claims is not None} == {"given_claims"}


def test_given_claims_take_a_compound_sentence_apart(answers: list[Answer]) -> None:
    for answer in of(answers, "given_claims"):
        assert answer.claims is not None and len(answer.claims) > len(list(claims_of_sentences(answer.answer)))


def test_an_evasive_answer_only_asks(answers: list[Answer]) -> None:
    for answer in of(answers, "evasive"):
        assert answer.answer and not list(claims_of_sentences(answer.answer))


def test_texts_are_not_latin_alone(answers: list[Answer]) -> None:
    latin = [answer for answer in answers if answer.answer.isascii()]
    (other,) = [answer for answer in answers if answer not in latin]
    assert any(character > "\uffff" for character in other.answer), "code points and UTF-16 units are to differ"
    assert "ρ" in other.answer and "時" in other.answer and "é" in other.answer
    assert any("e\u0301" in span.text for span in other.spans), "an accent of its own, which NFC joins"


def test_markers_and_lengths_vary(answers: list[Answer]) -> None:
    assert any(span.markers for answer in answers for span in answer.spans)
    assert any(len(claim.cited_markers) > 1 for answer in answers for claim in claims_of(answer))
    uncited = [claim for answer in answers if answer.spans for claim in claims_of(answer) if not claim.cited_markers]
    assert len(uncited) > 3
    lengths = Counter(len(sentence_claims(answer.answer)) for answer in answers if answer.answer)
    assert set(lengths) <= {2, 3, 4, 5, 6} and len(lengths) > 3
