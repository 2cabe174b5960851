from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.factuality.test_corpus import CharacterEmbedder, passages
from tests.tiny_models import save_tiny, save_tiny_flan_t5
from verifier.errors import ConfigurationError, MissingScore, VerificationError
from verifier.factuality import Corroboration, check_factuality
from verifier.factuality.check import RetrievedAnswer, receipt, retrieve_answers
from verifier.factuality.corpus import Corpus
from verifier.factuality.scored import ReceiptOutcome, ScorerCorroborator, ScoreRule, plan_receipts
from verifier.protocol import run_plan
from verifier.scorers import RecordedScorer, RecordedSupportScorer
from verifier.scorers.base import score_round, support_round
from verifier.scorers.cross_encoder import CrossEncoderScorer
from verifier.scorers.minicheck_flan_t5 import MiniCheckFlanT5Scorer

EVIDENCE = ["The drug cures cancer in mice.", "Paris lies in France."]
CORPUS = Corpus(passages(EVIDENCE), CharacterEmbedder())
ANSWERS = ["The drug cures cancer. Paris lies in Spain.", "Nothing.", "Paris lies in France."]


def batch(answers: list[str] = ANSWERS) -> list[RetrievedAnswer]:
    return retrieve_answers(CORPUS, answers)


def run(answers: list[RetrievedAnswer], score: Any) -> list[ReceiptOutcome]:
    return run_plan(plan_receipts(answers, ScoreRule()), score)


def recorded(*rows: tuple[str, str, float, float]) -> RecordedScorer:
    return RecordedScorer([(e, c, yes, no, 1 - yes - no) for e, c, yes, no in rows])


@pytest.mark.parametrize(
    ("entailment", "contradiction", "expected"),
    [(0.8, 0.1, "supported"), (0.79, 0.2, "unverified"), (0.1, 0.8, "contradicted"), (0.2, 0.79, "unverified")],
)
def test_three_labels_support_and_contradict_at_their_thresholds(
    entailment: float, contradiction: float, expected: str
) -> None:
    judge = ScorerCorroborator(recorded(("evidence", "claim", entailment, contradiction)))
    assert judge("evidence", "claim") == expected


def test_at_one_half_each_the_contradiction_stands() -> None:
    rule = ScoreRule(0.5, 0.5)
    assert rule.corroboration([0.5, 0.5, 0.0]) == Corroboration.CONTRADICTED


@pytest.mark.parametrize(("support", "expected"), [(0.8, "supported"), (0.79, "unverified"), (0.0, "unverified")])
def test_low_support_is_never_a_contradiction(support: float, expected: str) -> None:
    judge = ScorerCorroborator(RecordedSupportScorer([("evidence", "claim", support)]))
    assert judge("evidence", "claim") == expected


def test_a_pair_without_a_score_is_an_error_and_never_a_verdict() -> None:
    with pytest.raises(MissingScore):
        check_factuality(CORPUS, ANSWERS[0], corroborates=ScorerCorroborator(recorded()))

    class Broken:
        model, revision = "broken", "0"

        def score(self, pairs: list[tuple[str, str]]) -> list[list[float]]:
            return [[0.9, 0.9, 0.9] for _ in pairs]

    with pytest.raises(VerificationError, match="sum to 1"):
        check_factuality(CORPUS, ANSWERS[0], corroborates=ScorerCorroborator(Broken()))


def test_thresholds_are_probabilities_of_a_majority() -> None:
    for thresholds in ((0.4, 0.8), (0.8, 1.1), (float("nan"), 0.8)):
        with pytest.raises(ConfigurationError, match="threshold"):
            ScoreRule(*thresholds)


def test_one_round_scores_a_batch_and_gives_each_answer_its_receipt() -> None:
    claims = ["The drug cures cancer.", "Paris lies in Spain.", "Paris lies in France."]
    yes = {(EVIDENCE[0], claims[0]), (EVIDENCE[1], claims[2])}
    no = {(EVIDENCE[1], claims[1])}
    rows = [(e, c, 0.9 * ((e, c) in yes), 0.9 * ((e, c) in no)) for e in EVIDENCE for c in claims]
    rounds = []

    def score(pairs: Any) -> Any:
        rounds.append(len(pairs))
        return score_round(recorded(*rows), pairs)

    outcomes = run(batch(), score)
    assert rounds == [6]
    receipts = [outcome.receipt for outcome in outcomes]
    assert [r and r.grounded_fraction for r in receipts] == [0.5, None, 1.0]
    assert [r and len(r.contradicted()) for r in receipts] == [1, 0, 0]
    assert [len(outcome.pairs) for outcome in outcomes] == [4, 0, 2]
    assert outcomes[0].pairs[0].references == ("p0",)
    assert receipts == [receipt(answer, ScorerCorroborator(recorded(*rows))) for answer in batch()]


def test_an_answer_with_an_unscored_pair_gets_no_receipt_and_spares_the_others() -> None:
    rows = [(e, "Paris lies in France.", 0.9, 0.0) for e in EVIDENCE]
    first, second, third = run(batch(), partial(score_round, recorded(*rows)))
    assert (first.receipt, first.error and first.error.code) == (None, "missing_score")
    assert second.receipt is not None
    assert third.receipt is not None
    assert third.receipt.is_grounded()


@pytest.fixture(scope="module")
def scorers(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    paths = [Path(tmp_path_factory.mktemp(name)) for name in ("nli", "t5")]
    return [
        CrossEncoderScorer(save_tiny("deberta", paths[0]), device="cpu"),
        MiniCheckFlanT5Scorer(save_tiny_flan_t5(paths[1]), device="cpu"),
    ]


def test_real_scorers_of_both_forms_give_receipts_that_a_replay_repeats(scorers: list[Any]) -> None:
    answers = batch([*ANSWERS, "Paris lies in France. " * 3])
    for scorer, ask in zip(scorers, (score_round, support_round), strict=True):
        outcomes = run(answers, partial(ask, scorer))
        pairs = [pair for outcome in outcomes for pair in outcome.pairs]
        assert len(pairs) == 12
        wholes = [pair for pair in pairs if pair.kind == "single"]
        rows = [(pair.premise, pair.hypothesis, *pair.values.values()) for pair in wholes]
        replay = RecordedScorer(rows) if ask is score_round else RecordedSupportScorer(rows)
        assert run(answers, partial(ask, replay)) == outcomes
        values = [value for pair in pairs for value in pair.values.values()]
        assert np.isfinite(values).all()
        assert len(set(values)) > 4
        judge = ScorerCorroborator(scorer, ScoreRule(0.5, 0.5))
        assert judge(EVIDENCE[0], ANSWERS[2]) in set(Corroboration)
