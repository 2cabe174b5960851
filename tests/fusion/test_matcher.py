"""The batch matcher: candidates, ties, verdicts, what is unavailable, and equality with the formulas for one pair."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fusion.drafts import WordEmbedder, cited, draft_of, drafts
from verifier.embedders import TransformerEmbedder
from verifier.errors import InputError, VerificationError
from verifier.fusion import (
    Draft,
    DraftClaim,
    DraftVerdict,
    FusionConfig,
    PlanIdf,
    PlanSpan,
    SpanRef,
    Verdict,
    band,
    check_draft,
    lexical_coverage,
    match_drafts,
    numeric_atoms,
    numeric_gate_trips,
    pair_score,
    tokenize,
)
from verifier.fusion.batch import bare, marked_spans

CONFIG = FusionConfig()


class Scripted:
    """Two-dimensional vectors with a given cosine to the claims, which all point the same way."""

    model, revision = "scripted", "1"

    def __init__(self, cosines: dict[str, float]) -> None:
        self.cosines = cosines

    def embed(self, texts: Sequence[str]) -> Any:
        near = np.array([self.cosines.get(text, 1.0) for text in texts])
        return np.stack([near, np.sqrt(1 - near**2)], axis=1)


def one(draft: Draft, embedder: Any = None, config: FusionConfig = CONFIG) -> DraftVerdict:
    (verdict,) = match_drafts([draft], embedder or WordEmbedder(), config)
    return verdict


configs = st.builds(
    FusionConfig,
    beta=st.sampled_from([0.0, 0.3, 0.65, 1.0]),
    candidates_m=st.integers(1, 4),
    cap=st.sampled_from([0.0, 0.2, 0.6]),
)


@given(st.lists(drafts(), max_size=4), configs)
def test_every_score_is_that_of_the_formulas_for_one_pair(batch: list[Draft], config: FusionConfig) -> None:
    embedder = WordEmbedder()
    for draft, found in zip(batch, match_drafts(batch, embedder, config), strict=True):
        assert found.verification == "verified" and len(found.claims) == len(draft.claims)
        idf = PlanIdf([tokenize(span.text) for span in draft.spans])
        for claim, verdict in zip(draft.claims, found.claims, strict=True):
            assert (verdict.text, verdict.draft_span) == (claim.text, claim.draft_span)
            expected, wanted = [], tokenize(claim.text)
            for candidate in verdict.candidates:
                span = draft.spans[candidate.span]
                held = tokenize(span.text)
                vectors = embedder.embed([claim.text, span.text]).astype(np.float64)
                assert candidate.cosine == pytest.approx(min(1.0, float(vectors[0] @ vectors[1])), abs=1e-12)
                assert candidate.lexical == pytest.approx(lexical_coverage(wanted, held, idf), abs=1e-12)
                tripped = numeric_gate_trips(numeric_atoms(wanted), numeric_atoms(held))
                assert candidate.gate_tripped == tripped
                expected.append(pair_score(candidate.cosine, candidate.lexical, config.beta, tripped, config.cap))
            scores = [candidate.score for candidate in verdict.candidates]
            assert scores == pytest.approx(expected, abs=1e-12, rel=0)
            assert verdict.score == max(scores, default=0.0) and verdict.candidates_considered == len(scores)
            if not scores:
                assert (verdict.verdict, verdict.best_span) == (Verdict.UNSUPPORTED, None)
                continue
            first = verdict.candidates[scores.index(max(scores))]
            assert verdict.best_span == SpanRef(first.span, first.span_id), "the first of the plan on ties"
            assert verdict.numeric_gated == first.gate_tripped
            erased = draft.spans[first.span].masked and verdict.score
            assert verdict.verdict == (Verdict.EVIDENCE_REDACTED if erased else band(round(max(expected), 12)))


@given(drafts(), st.integers(1, 4))
def test_candidates_are_cited_spans_and_the_nearest_of_the_truth_class(draft: Draft, limit: int) -> None:
    embedder = WordEmbedder()
    found = one(draft, embedder, FusionConfig(candidates_m=limit))
    truth = [n for n, span in enumerate(draft.spans) if span.span_class == "truth"]
    names = {n: {bare(m) for m in span.markers or (f"S{n + 1}",)} for n, span in enumerate(draft.spans)}
    assert marked_spans(draft.spans).keys() == set().union(*names.values())
    for claim, verdict in zip(draft.claims, found.claims, strict=True):
        wanted = {bare(marker) for marker in claim.cited_markers}
        by_name = {n for n in truth if names[n] & wanted}
        chosen = [candidate.span for candidate in verdict.candidates]
        assert chosen == sorted(chosen) and by_name <= set(chosen) <= set(truth)
        assert {candidate.span for candidate in verdict.candidates if candidate.cited} == by_name
        vectors = [embedder._vector(text).astype(np.float64) for text in (claim.text, *(s.text for s in draft.spans))]
        nearness = {n: round(float(vectors[0] @ vectors[n + 1]), 9) for n in truth}
        kept = sorted(nearness.values(), reverse=True)[:limit]
        if kept:
            assert {n for n in truth if nearness[n] > kept[-1]} <= set(chosen)
            assert len(set(chosen) - by_name) <= limit and len(chosen) >= min(limit, len(truth))
        resolved = set().union(*names.values())
        assert verdict.unresolved_markers == tuple(m for m in claim.cited_markers if bare(m) not in resolved)


@given(drafts(), st.randoms(use_true_random=False), st.lists(drafts(), max_size=2))
def test_a_verdict_does_not_depend_on_the_order_of_claims_or_on_other_drafts(
    draft: Draft, random: Any, others: list[Draft]
) -> None:
    alone = one(draft).claims
    order = list(range(len(draft.claims)))
    random.shuffle(order)
    shuffled = replace(draft, claims=tuple(draft.claims[index] for index in order))
    *_, found = match_drafts([*others, shuffled], WordEmbedder(), CONFIG)
    assert found.claims == tuple(alone[index] for index in order)


def test_the_best_of_equal_spans_is_the_first_of_the_plan() -> None:
    plan = [PlanSpan("summary", "the port is 8080", span_class="cache"), "other words", *["the port is 8080"] * 5]
    found = one(draft_of(["the port is 8080"], plan), config=FusionConfig(candidates_m=3))
    (verdict,) = found.claims
    assert verdict.best_span == SpanRef(2, "p3") and verdict.verdict == Verdict.SUPPORTED and verdict.score == 1.0
    assert [candidate.span for candidate in verdict.candidates] == [2, 3, 4]
    assert (found.embed_model, found.embed_revision) == ("words", "1")


def test_a_cited_span_is_a_hint_and_never_proof() -> None:
    texts = {"far away": -0.9, "quite near": 0.8, "nearest": 0.9}
    draft = draft_of([cited("a claim", "[S1]", "S7")], list(texts))
    (verdict,) = one(draft, Scripted(texts), FusionConfig(candidates_m=1)).claims
    assert [(c.span, c.cited, c.cosine) for c in verdict.candidates] == [(0, True, -0.9), (2, False, 0.9)]
    assert verdict.verdict == Verdict.UNSUPPORTED
    assert verdict.unresolved_markers == ("S7",) and verdict.cited_markers == ("[S1]", "S7")


@pytest.mark.parametrize(
    ("cosine", "verdict"), [(0.75, Verdict.SUPPORTED), (0.72, Verdict.PARTIAL), (0.5, "partial"), (0.49, "unsupported")]
)
def test_bands_hold_their_lower_end(cosine: float, verdict: Verdict) -> None:
    found = one(draft_of(["a claim"], ["a span"]), Scripted({"a span": cosine}), FusionConfig(beta=1))
    assert (found.claims[0].score, found.claims[0].verdict) == (cosine, verdict)


def test_a_wrong_number_caps_the_whole_score() -> None:
    (verdict,) = one(draft_of(["paid 600 on 5 March 2026"], ["paid 500 on 2026-03-05"]), Scripted({})).claims
    assert verdict.numeric_gated and verdict.score == 0.2 and verdict.verdict == Verdict.UNSUPPORTED
    (same,) = one(draft_of(["500.0 5 March 2026"], ["0500 2026-03-05 March"])).claims
    assert not same.numeric_gated


def test_an_erased_best_span_says_nothing_about_the_claim() -> None:
    erased = PlanSpan("p1", "the port is ████", masked=((12, 16),))
    other = PlanSpan("p2", "unrelated words", masked=((0, 0),))
    found = one(draft_of(["the port is 8080", "unrelated words", "free text"], [erased, other, "free text"]))
    assert [verdict.verdict for verdict in found.claims] == ["evidence_redacted", "evidence_redacted", "supported"]
    assert found.claims[0].score == 0.2, "the score stays in the trace"


def test_an_erased_span_with_nothing_in_common_is_no_excuse() -> None:
    erased = PlanSpan("p1", "gate", masked=((0, 0),))
    (verdict,) = match_drafts([draft_of(["bananas"], [erased])], WordEmbedder(), CONFIG)
    assert [(claim.verdict, claim.score) for claim in verdict.claims] == [(Verdict.UNSUPPORTED, 0.0)]


@pytest.mark.parametrize("spans", [[], [PlanSpan("p1", "a claim", span_class="cache")]])
def test_without_truth_every_claim_is_unsupported_and_nothing_is_embedded(spans: list[PlanSpan]) -> None:
    embedder = WordEmbedder()
    draft = draft_of([cited("a claim", "S1"), "another"], spans)
    for found in (one(draft, embedder), match_drafts([draft], None, CONFIG)[0]):
        assert found.verification == "verified" and [v.verdict for v in found.claims] == ["unsupported"] * 2
        assert [(v.score, v.best_span, v.candidates_considered) for v in found.claims] == [(0.0, None, 0)] * 2
        assert (found.embed_model, found.embed_revision) == ("", "")
    assert embedder.asked == []
    assert found.claims[0].unresolved_markers == (() if spans else ("S1",))


def test_a_draft_without_claims_is_verified() -> None:
    embedder = WordEmbedder()
    assert match_drafts([Draft("e", ""), draft_of([], ["a span"])], embedder, CONFIG) == [DraftVerdict("verified")] * 2
    assert match_drafts([], embedder, CONFIG) == [] and embedder.asked == []


def test_every_distinct_text_is_embedded_once_and_summaries_are_not() -> None:
    embedder = WordEmbedder()
    plan = ["a span", "a claim", PlanSpan("p3", "a summary", span_class="cache")]
    match_drafts([draft_of(["a claim", "a claim"], plan), draft_of(["a claim"], ["a span", "more"])], embedder, CONFIG)
    assert [sorted(asked) for asked in embedder.asked] == [["a claim", "a span", "more"]]


class Broken:
    """An embedder that answers with ``answer``, or raises it."""

    model, revision = "broken", "1"

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def embed(self, texts: Sequence[str]) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("embedder", "reason"),
    [
        (None, "no embedder is registered"),
        (Broken(VerificationError("out of memory")), "the embedder broken failed: out of memory"),
        (Broken(KeyError()), "the embedder broken failed: KeyError"),
        (Broken(np.ones((3, 1))), "returned vectors of shape (3, 1) for 2 texts"),
        (Broken(np.ones(2)), "returned vectors of shape (2,) for 2 texts"),
        (Broken([["a"], ["b"]]), "the embedder broken failed"),
        (Broken(np.zeros((2, 3))), "not of unit length"),
        (Broken(np.full((2, 3), np.nan)), "not of unit length"),
    ],
)
def test_an_embedder_that_fails_never_becomes_a_verdict(embedder: Any, reason: str) -> None:
    empty, groundless = Draft("e", ""), draft_of(["a claim"], [])
    asked, first, second = match_drafts([draft_of(["a claim"], ["a span"]), empty, groundless], embedder, CONFIG)
    assert asked.verification.startswith("unavailable: ") and reason in asked.verification
    assert (asked.claims, asked.embed_model) == ((), "")
    assert first.verification == second.verification == "verified" and second.claims[0].verdict == "unsupported"


LONG = PlanSpan("p1", "text", masked=((2, 4),))


@pytest.mark.parametrize(
    ("draft", "code"),
    [
        (Draft("d", "text", (DraftClaim("c", (0, 5)),)), "draft_span_out_of_bounds"),
        (Draft("d", "text", (DraftClaim("c", (-1, 2)),)), "draft_span_out_of_bounds"),
        (Draft("d", "", (DraftClaim("c", (0, 1)),)), "draft_span_out_of_bounds"),
        (Draft("d", "text", (DraftClaim("c", (2, 2)),)), "empty_draft_span"),
        (Draft("d", "text", (DraftClaim("c", (3, 2)),)), "empty_draft_span"),
        (Draft("d", "text", (DraftClaim(" \n", (0, 2)),)), "empty_claim"),
        (Draft("d", "", (), (LONG, LONG)), "repeated_span_id"),
        (Draft("d", "", (), (replace(LONG, span_class="rumour"),)), "unknown_span_class"),  # type: ignore[arg-type]
        (Draft("d", "", (), (replace(LONG, masked=((2, 5),)),)), "masked_range_out_of_bounds"),
        (Draft("d", "", (), (replace(LONG, masked=((2, 1),)),)), "masked_range_out_of_bounds"),
    ],
)
def test_what_cannot_be_matched_has_a_stable_code(draft: Draft, code: str) -> None:
    with pytest.raises(InputError, match="'d'") as caught:
        match_drafts([Draft("fine", ""), draft], WordEmbedder(), CONFIG)
    assert caught.value.code == code


def test_draft_spans_count_code_points_and_may_overlap() -> None:
    text = "🙂é東"
    check_draft(Draft("d", text, (DraftClaim("a", (0, 3)), DraftClaim("b", (1, 3)), DraftClaim("c", (1, 3)))))


def test_a_plan_of_10_000_spans() -> None:
    spans = [PlanSpan(str(n), f"passage number {n} of {n * 7} words") for n in range(10_000)]
    draft = draft_of([f"passage number {n} of {n * 7} words" for n in (17, 9_999)], spans)
    found = one(draft).claims
    assert [verdict.best_span and verdict.best_span.index for verdict in found] == [17, 9_999]
    assert all(verdict.score == 1.0 and verdict.candidates_considered == 8 for verdict in found)


def test_a_small_or_odd_text_does_no_harm() -> None:
    draft = draft_of(["🙂", "…", "a"], ["", "§", "🙂", "a"])
    assert [verdict.score for verdict in one(draft).claims] == [0.0, 0.0, 1.0]


words = st.lists(st.sampled_from("alpha beta gamma 5 7 march".split()), min_size=1, max_size=8).map(" ".join)


@given(words, words, words)
def test_more_numbers_in_a_claim_never_open_the_gate(claim: str, more: str, span: str) -> None:
    (short,) = one(draft_of([claim], [span])).claims
    (long,) = one(draft_of([f"{claim} {more}"], [span])).claims
    assert long.numeric_gated >= short.numeric_gated


def test_many_pairs_are_scored_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = [draft_of(["alpha beta 5", "gamma march"], ["alpha 5", "beta gamma", "march 3"], name) for name in "abc"]
    whole = match_drafts(batch, WordEmbedder(), CONFIG)
    monkeypatch.setattr("verifier.fusion.scoring._CHUNK", 4)
    assert match_drafts(batch, WordEmbedder(), CONFIG) == whole


def test_the_real_embedder_tells_a_paraphrase_from_a_swapped_number() -> None:
    spans = ["The Halvard bridge was opened to traffic in June 1932.", "Entry to the museum costs 12 euros."]
    claims = ["The Halvard bridge was opened in June 1932.", "The Halvard bridge was opened in June 1935."]
    found = one(draft_of(claims, spans), TransformerEmbedder(device="cpu"))
    assert [verdict.verdict for verdict in found.claims] == ["supported", "unsupported"]
    assert found.embed_model == "all-MiniLM-L6-v2" and len(found.embed_revision) == 64
    assert [verdict.numeric_gated for verdict in found.claims] == [False, True]
