"""Answers checked by fusion: what is delivered, what the trace holds, what a scorer on top takes away."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fusion.drafts import WordEmbedder
from verifier.answers.confirm import ConfirmedConfig
from verifier.answers.fused import FusedAnswers
from verifier.answers.records import Answer, CheckedAnswer
from verifier.answers.schemas import CHECKED_SCHEMA, answer_row, checked_row, checked_table
from verifier.decompose import Decomposition, SentenceDecomposer
from verifier.fusion import FusionConfig, match_drafts
from verifier.fusion.records import Draft, DraftClaim, PlanSpan
from verifier.fusion.redaction import NOTICE
from verifier.fusion.trace import Generation, plan_hash, read_trace

SPANS = (PlanSpan("p1", "the port opens at 8 in march"), PlanSpan("p2", "the crane is red"))
REDACT = FusionConfig(policy="redact")
TRUE, FALSE = "The port opens at 8 in March [S1].", "The port opens at 9 in March [S1]."


class Embedder(WordEmbedder):
    """Of words without case and punctuation."""

    def embed(self, texts: Sequence[str]) -> Any:
        return super().embed([re.sub(r"[^\w ]", "", text.lower()) for text in texts])

    def cuts(self, texts: Sequence[str]) -> list[bool]:
        return [len(text) > 100 for text in texts]


class Scripted:
    """Answers with the triple of the first word that stands in the hypothesis."""

    model, revision = "scripted", "r1"

    def __init__(self, script: dict[str, tuple[float, float, float]]) -> None:
        self.script = script
        self.asked: list[tuple[str, str]] = []

    def score(self, pairs: Sequence[tuple[str, str]]) -> Any:
        self.asked += pairs
        return np.array([next(v for word, v in self.script.items() if word in claim) for _, claim in pairs])


class Unreachable(SentenceDecomposer):
    def decompose(self, drafts: Sequence[Draft]) -> list[Decomposition]:
        return [Decomposition(unavailable="unavailable: the model is gone") for _ in drafts]


def check(answer: Answer, config: FusionConfig = REDACT, embedder: Any = None, **settings: Any) -> CheckedAnswer:
    decomposer = settings.pop("decomposer", SentenceDecomposer())
    (found,) = FusedAnswers(decomposer, embedder or Embedder(), config, **settings).check([answer])
    return found


def test_a_wrong_number_is_cut_out_and_the_rest_delivered() -> None:
    found = check(Answer("a", f"{TRUE} {FALSE}", SPANS, generation=Generation("q", gen="writer")))
    assert [claim.verdict for claim in found.claims] == ["supported", "unsupported"]
    assert found.delivered == f"{TRUE} {NOTICE}"
    good, bad = found.claims
    assert (good.start, good.end, good.cited_markers) == (0, len(TRUE), ("S1",))
    assert (good.evidence[0].evidence_id, good.evidence[0].role, good.evidence[0].text) == ("p1", "best", SPANS[0].text)
    assert bad.numeric_gated and bad.score == pytest.approx(0.2)
    assert found.trace is not None and found.trace.draft == f"{TRUE} {FALSE}", "the trace keeps the original"
    assert found.trace.plan_hash == plan_hash(SPANS) and found.trace.models.decompose.startswith("sentences ")
    assert found.error is None and found.verification == "verified"


def test_flag_leaves_the_text() -> None:
    assert check(Answer("a", FALSE, SPANS), FusionConfig()).delivered == FALSE


def test_own_claims_are_used_and_a_marker_that_names_nothing_is_told() -> None:
    claim = DraftClaim("the crane is red", (0, 3), ("S2", "S7"))
    found = check(Answer("a", "Red", SPANS, (claim,), generation=Generation("q", decompose="by hand")))
    assert [(one.text, one.verdict) for one in found.claims] == [("the crane is red", "supported")]
    assert found.claims[0].unresolved_markers == ("S7",)
    assert found.trace is not None and found.trace.models.decompose == "by hand"


def test_nothing_to_check_and_nothing_to_check_with() -> None:
    empty = check(Answer("a", "", SPANS))
    assert (empty.verification, empty.claims, empty.delivered) == ("verified", (), "")
    for spans in ((), (PlanSpan("p", TRUE, span_class="cache"),)):
        embedder = Embedder()
        found = check(Answer("a", TRUE, spans), embedder=embedder)
        assert [claim.verdict for claim in found.claims] == ["unsupported"] and found.delivered == NOTICE
        assert embedder.asked == [] and found.claims[0].evidence == ()


def test_what_cannot_be_verified_is_unavailable_and_redact_delivers_nothing_of_it() -> None:
    class Broken(Embedder):
        def embed(self, texts: Sequence[str]) -> Any:
            raise RuntimeError("no memory")

    for settings, reason in (
        ({"embedder": Broken()}, "the embedder words failed: no memory"),
        ({"decomposer": Unreachable()}, "the model is gone"),
    ):
        found = check(Answer("a", TRUE, SPANS), REDACT, **settings)
        assert found.verification == f"unavailable: {reason}" and found.claims == () and found.delivered is None
        assert found.error is not None and (found.error.outcome, found.error.message) == ("unscored", reason)
        assert found.trace is not None and found.trace.verification == found.verification
        assert check(Answer("a", TRUE, SPANS), FusionConfig(), **settings).delivered == TRUE


def test_one_answer_that_cannot_be_decomposed_takes_no_other_with_it() -> None:
    class Half(SentenceDecomposer):
        def decompose(self, drafts: Sequence[Draft]) -> list[Decomposition]:
            found = super().decompose(drafts)
            return [
                Decomposition(unavailable="unavailable: no") if d.draft_id == "b" else f
                for d, f in zip(drafts, found, strict=True)
            ]

    answers = [Answer(name, TRUE, SPANS) for name in "abc"]
    found = FusedAnswers(Half(), Embedder(), REDACT).check(answers)
    assert [one.verification for one in found] == ["verified", "unavailable: no", "verified"]


def test_texts_that_the_embedder_cuts_are_counted() -> None:
    long = PlanSpan("p3", "the port opens at 8 in march " * 5)
    cache = PlanSpan("p4", "x " * 100, span_class="cache")
    assert check(Answer("a", TRUE, (*SPANS, long, cache))).truncated == 1
    assert check(Answer("a", TRUE, SPANS)).truncated == 0


CONFIRMED = ConfirmedConfig(policy="redact")


def test_a_scorer_on_top_takes_support_away_and_never_gives_it() -> None:
    swapped = "The crane is red. The crane is huge and blue. The port opens at 8 in March."
    script = {"red": (0.1, 0.85, 0.05), "blue": (0.99, 0.0, 0.01), "port": (0.9, 0.05, 0.05)}
    scorer = Scripted(script)
    found = check(Answer("a", swapped, SPANS), CONFIRMED, scorer=scorer)
    alone = check(Answer("a", swapped, SPANS))
    assert [claim.verdict for claim in alone.claims] == ["supported", "partial", "supported"]
    assert [claim.verdict for claim in found.claims] == ["unsupported", "partial", "supported"]
    assert found.delivered == f"{NOTICE} The crane is huge and blue. The port opens at 8 in March."
    assert [pair.kind for pair in found.pairs] == ["confirmation"] * 3
    assert [pair.references for pair in found.pairs] == [("p2",), ("p2",), ("p1",)]
    assert found.trace is not None and found.trace.models.confirm == "scripted"
    assert found.trace.configuration["entailment_threshold"] == 0.8
    neutral = check(Answer("a", "The crane is red.", SPANS), CONFIRMED, scorer=Scripted({"red": (0.5, 0.1, 0.4)}))
    assert [claim.verdict for claim in neutral.claims] == ["partial"]


def test_a_claim_without_a_score_makes_its_answer_unavailable_and_no_other() -> None:
    scorer = Scripted({"red": (float("nan"),) * 3, "port": (0.9, 0.05, 0.05)})
    answers = [Answer("a", f"The crane is red. {TRUE}", SPANS), Answer("b", TRUE, SPANS)]
    broken, whole = FusedAnswers(SentenceDecomposer(), Embedder(), CONFIRMED, scorer).check(answers)
    assert broken.verification.startswith("unavailable: ") and broken.claims == () and broken.delivered is None
    assert broken.error is not None and broken.error.code == "not_finite" and len(broken.pairs) == 1
    assert whole.verification == "verified" and whole.delivered == TRUE


def test_unsupported_and_erased_claims_are_not_asked() -> None:
    scorer = Scripted({"": (1.0, 0.0, 0.0)})
    erased = PlanSpan("p3", "the gate is ██", masked=((12, 14),))
    found = check(Answer("a", f"{FALSE} The gate is shut.", (*SPANS, erased)), CONFIRMED, scorer=scorer)
    assert [claim.verdict for claim in found.claims] == ["unsupported", "evidence_redacted"] and scorer.asked == []


@given(st.lists(st.sampled_from([TRUE, FALSE, "The crane is red.", "What?", ""]), max_size=4))
def test_verdicts_are_those_of_the_matcher_and_come_back_from_the_table(sentences: list[str]) -> None:
    answer = Answer("a", " ".join(sentences), SPANS)
    found = check(answer)
    draft = answer.draft(tuple(DraftClaim(c.text, (c.start, c.end), c.cited_markers) for c in found.claims))
    (matched,) = match_drafts([draft], Embedder(), REDACT)
    assert [claim.verdict for claim in matched.claims] == [claim.verdict for claim in found.claims]
    row = checked_row(answer_row(1, answer), found, method="fusion", scorer={}, seconds=0.5)
    table = checked_table([row])
    assert table.schema == CHECKED_SCHEMA
    (back,) = table.to_pylist()
    assert read_trace(back["trace"]) == found.trace
    assert [claim["verdict"] for claim in back["claims"]] == [claim.verdict for claim in found.claims]
    assert (back["outcome"], back["delivered"], back["receipt"]) == ("decided", found.delivered, None)
