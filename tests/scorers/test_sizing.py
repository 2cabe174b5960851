"""What scorers would read, counted without a model: the same as what they read."""

from pathlib import Path
from typing import Any

import pytest
from transformers import AutoModelForSequenceClassification

from tests.tiny_models import save_tiny, save_tiny_flan_t5
from verifier.scorers.cross_encoder import CrossEncoderScorer
from verifier.scorers.llm_judge import LlmJudgeScorer
from verifier.scorers.minicheck_flan_t5 import MiniCheckFlanT5Scorer
from verifier.scorers.nli import EntailmentScorer

SENTENCE = "The museum opened in 1995 and drew many visitors. "
PAIRS = [(SENTENCE, "It opened."), (SENTENCE * 40, "It opened in 1995."), ("No.", "Yes " * 400), (" ", "blank")]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[Any, str]:
    folder = tmp_path_factory.mktemp("models")
    nli, t5 = save_tiny("deberta", folder / "nli"), save_tiny_flan_t5(folder / "t5")
    return {CrossEncoderScorer: nli, EntailmentScorer: nli, MiniCheckFlanT5Scorer: t5}


@pytest.mark.parametrize("kind", [CrossEncoderScorer, EntailmentScorer, MiniCheckFlanT5Scorer])
def test_the_counted_tokens_are_those_that_are_scored(models: dict[Any, str], kind: Any) -> None:
    settings: dict[str, Any] = {"model": models[kind], "max_length": 64}
    sizes = kind.sizer(**settings).sizes(PAIRS)
    scorer = kind(**settings)
    scores = scorer.score_detailed(PAIRS)
    assert int(sizes.tokens.sum()) == scorer.engine.tokens_scored
    assert sizes.windows.tolist() == scores.windows.tolist() and max(sizes.windows) > 2
    assert sizes.rejected == len(scores.errors) == 1


def test_the_operations_are_two_a_weight_without_embeddings(models: dict[Any, str]) -> None:
    network = AutoModelForSequenceClassification.from_pretrained(models[EntailmentScorer]).deberta
    weights = {name: weight.numel() for name, weight in network.named_parameters()}
    tables = [n for n in weights if "word_embeddings" in n or "position_embeddings" in n or "rel_embeddings" in n]
    assert tables
    expected = 2 * (sum(weights.values()) - sum(weights[name] for name in tables))
    assert EntailmentScorer.sizer(models[EntailmentScorer]).flops_per_token == expected


def test_prompts_of_a_judge_are_counted_without_an_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", "sk-1")
    sizer = LlmJudgeScorer.sizer("openai/tiny", api_base="http://127.0.0.1:9/v1", api_key_env="KEY")
    short, long = sizer.sizes([("a", "b")]), sizer.sizes([("word " * 500, "b"), (" ", "b")])
    assert len(short.tokens) == len(long.tokens) == 1 and sizer.flops_per_token is None
    assert 490 < long.tokens[0] - short.tokens[0] < 520


def test_nothing_but_files_is_read(models: dict[Any, str], tmp_path: Path) -> None:
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        source = Path(models[EntailmentScorer]) / name
        (tmp_path / name).write_bytes(source.read_bytes())
    (tmp_path / "model.safetensors").write_bytes(b"no weights at all")
    assert EntailmentScorer.sizer(str(tmp_path)).sizes(PAIRS[:1]).tokens.tolist() != []
