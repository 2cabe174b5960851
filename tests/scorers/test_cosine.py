"""The cosine scorer: the embedder's cosines, clamped; long texts by every rule; identity without weights."""

from inspect import signature
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hydra.utils import instantiate
from omegaconf import OmegaConf
from transformers import BertConfig, BertModel

from tests.tiny_models import tokenizer
from verifier.embedders import TransformerEmbedder, minilm_directory
from verifier.errors import ConfigurationError, PairTooLong, VerificationError
from verifier.protocol import Pair
from verifier.scorers.base import DetailedScorer, NLIScorer, identify, support_round
from verifier.scorers.cosine import CosineScorer
from verifier.scorers.loading import load_tokenizer, weights_digest
from verifier.text.windows import split_windows, tokenizer_offsets

POSITIONS = 32
SHORT = ["The museum opened in 1995.", "東京 🙂 café", "Temperatures fell below zero on Monday.", "no"]
LONG = "The museum opened in 1995. It did not open before. Ada moved the project to SQLite because. " * 4


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    directory = tmp_path_factory.mktemp("embedder")
    torch.manual_seed(0)
    made = tokenizer("bert")
    made.model_max_length = POSITIONS
    size = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    config = BertConfig(vocab_size=len(made), max_position_embeddings=POSITIONS, initializer_range=0.5, **size)
    BertModel(config, add_pooling_layer=False).eval().save_pretrained(directory)
    made.save_pretrained(directory)
    return str(directory)


def scorer(model: str, **settings: Any) -> CosineScorer:
    return CosineScorer(model, **{"device": "cpu", "max_length": POSITIONS, **settings})


def plain(model: str, premise: str, hypothesis: str) -> float:
    one, two = TransformerEmbedder(model, device="cpu", max_length=POSITIONS).embed([premise, hypothesis])
    return max(0.0, float(one.astype(np.float64) @ two.astype(np.float64)))


def windows(model: str, text: str) -> list[str]:
    backend = load_tokenizer(model, None).backend_tokenizer
    return split_windows(text, tokenizer_offsets(backend), POSITIONS - 2)


def test_support_is_the_cosine_of_the_embedder(model: str) -> None:
    made = scorer(model)
    pairs = list(product(SHORT, SHORT))
    expected = [plain(model, *pair) for pair in pairs]
    assert made.score_pairs(pairs) == pytest.approx(expected, abs=1e-5)
    assert len({round(value, 3) for value in expected}) > 4, "different pairs differ"
    assert all(value == pytest.approx(1) for value in made.score_pairs([(text, text) for text in SHORT]))
    assert isinstance(made, NLIScorer) and isinstance(made, DetailedScorer)
    assert made.score_pairs([]) == []


def test_a_cosine_below_zero_is_no_support(model: str) -> None:
    made = scorer(model)
    embed = made._embedder.embed
    made._embedder.embed = lambda texts: embed(texts) * np.where(np.arange(len(texts)) == 0, -1, 1)[:, None]  # type: ignore[method-assign]
    assert made.score_pairs([(SHORT[0], SHORT[0] + ".")]) == [0.0]


def test_a_blank_text_has_no_support_and_is_not_embedded(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = scorer(model)
    monkeypatch.setattr(made._embedder, "embed", lambda texts: pytest.fail("asked"))
    assert made.score_pairs([(" \n", "a"), ("a", "")]) == [0.0, 0.0]


def test_a_long_premise_counts_with_its_nearest_window(model: str) -> None:
    pieces = windows(model, LONG)
    assert len(pieces) > 2
    made = scorer(model)
    scores = made.score_detailed([(SHORT[0], "no"), (LONG, "no"), (LONG, SHORT[2])])
    assert scores.windows.tolist() == [1, len(pieces), len(pieces)] and not scores.errors
    assert not scores.truncated.any()
    each = [plain(model, piece, "no") for piece in pieces]
    assert [part.support for part in scores.parts[1]] == pytest.approx(each, abs=1e-5)
    assert scores.values[1] == max(part.support for part in scores.parts[1])
    supports = [part.support for part in scores.parts[1]]
    assert scores.window[1] == supports.index(max(supports)), "the first on ties"
    assert sorted(scores.parts) == [1, 2] and scores.parts[1][0].windows == len(pieces)


def test_truncate_cuts_and_counts_and_reject_gives_no_score(model: str) -> None:
    pairs = [(LONG, "no"), (SHORT[0], LONG), (SHORT[0], "no")]
    cut = scorer(model, too_long="truncate").score_detailed(pairs)
    assert cut.truncated.tolist() == [True, True, False] and cut.windows.tolist() == [1, 1, 1] and not cut.errors
    assert cut.values.tolist() == pytest.approx([plain(model, *pair) for pair in pairs], abs=1e-5)
    refusing = scorer(model, too_long="reject")
    scores = refusing.score_detailed(pairs)
    assert {index: (error.outcome, error.code) for index, error in scores.errors.items()} == dict.fromkeys(
        (0, 1), ("rejected", "pair_too_long")
    )
    assert np.isnan(scores.values).tolist() == [True, True, False]
    with pytest.raises(PairTooLong, match="pair 0 has no score: the premise has"):
        refusing.score_pairs(pairs)
    window = scorer(model).score_detailed(pairs)
    assert list(window.errors) == [1] and "the hypothesis has" in window.errors[1].message


def test_scores_hardly_depend_on_the_batch(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = list(product([*SHORT, LONG], SHORT))
    made = scorer(model, cache_size=1)
    whole = made.score_pairs(pairs)
    assert [made.score_pairs([pair])[0] for pair in pairs] == pytest.approx(whole, abs=1e-5)
    monkeypatch.setattr("verifier.scorers.cosine._CHUNK", 3)
    assert made.score_pairs(pairs) == pytest.approx(whole, abs=1e-5)


def test_texts_are_embedded_once_and_remembered(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = scorer(model)
    asked: list[list[str]] = []
    inner = made._embedder._embedder
    embed = inner.embed
    monkeypatch.setattr(inner, "embed", lambda texts: (asked.append(list(texts)), embed(texts))[1])
    made.score_pairs(list(product(SHORT, SHORT)))
    made.score_pairs([(SHORT[0], "new"), (SHORT[1], "new")])
    assert [sorted(texts) for texts in asked] == [sorted(SHORT), ["new"]]


def test_an_embedder_that_fails_is_an_error(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = scorer(model)
    inner = made._embedder._embedder
    monkeypatch.setattr(inner, "_forward", lambda ids: np.full((len(ids), 32), np.nan, np.float32))
    with pytest.raises(VerificationError, match="not finite"):
        support_round(made, [Pair(0, "single", ("a",), "text", "claim")])


def test_the_default_is_the_embedded_minilm() -> None:
    made = CosineScorer(device="cpu")
    digest = weights_digest(str(minilm_directory()))
    assert (made.model, made.revision, made.dtype) == ("all-MiniLM-L6-v2", digest, "float32")
    assert CosineScorer.identify() == {"model": made.model, "revision": digest}
    near, far = made.score_pairs(
        [("The dish observes pulsars.", "Pulsars are observed."), ("The dish observes pulsars.", "Tea was served.")]
    )
    assert near > 0.7 > 0.3 > far
    long = (
        "Visitors wrote in the guest book. " * 100 + "The Halvard dish observes pulsars. " + "They left again. " * 100
    )
    scores = made.score_detailed([(long, "The Halvard dish observes pulsars.")])
    assert scores.windows[0] > 3 and scores.values[0] == max(part.support for part in scores.parts[0])


def test_identity_needs_no_weights(model: str, tmp_path: Path) -> None:
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).write_bytes((Path(model) / name).read_bytes())
    (tmp_path / "model.safetensors").write_bytes(b"no weights at all")
    identity = CosineScorer.identify(str(tmp_path), max_length=POSITIONS)
    assert identity == {"model": str(tmp_path), "revision": weights_digest(str(tmp_path))}
    with pytest.raises(ConfigurationError, match="cannot be loaded"):
        scorer(str(tmp_path))


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"device": "abacus"}, "abacus"),
        ({"too_long": "split"}, "split"),
        ({"token_budget": 0}, "token_budget"),
        ({"max_length": POSITIONS + 1}, "max_length is 33"),
        ({"max_length": 2}, "no word fits"),
        ({"revision": "0" * 64}, "sha256"),
        ({"model": "/no/such/directory"}, "no such directory"),
    ],
)
def test_settings_that_mean_nothing_are_refused(model: str, wrong: dict[str, Any], match: str) -> None:
    settings = {"model": model, "max_length": POSITIONS} | wrong
    for refused in (CosineScorer, CosineScorer.identify):
        with pytest.raises(ConfigurationError, match=match):
            refused(**settings)


def test_the_menu_has_every_setting_and_its_default() -> None:
    conf = Path(__file__).parents[2] / "conf" / "scorer" / "cosine.yaml"
    factory = instantiate(OmegaConf.load(conf))
    assert factory.func is CosineScorer
    assert factory.keywords == {name: one.default for name, one in signature(CosineScorer).parameters.items()}
    assert identify(factory)["model"] == "all-MiniLM-L6-v2"
