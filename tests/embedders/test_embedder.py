import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from verifier.embedders import TransformerEmbedder, minilm_directory
from verifier.errors import ConfigurationError, VerificationError

TEXTS = [
    "The server uses port 8080.",
    "Поезд прибывает на платформу 5. 東京 🙂",
    "",
    "long " * 600,
    "A somewhat longer sentence about a boat on the lake, read by nobody.",
]


@pytest.fixture(scope="module")
def embedder() -> TransformerEmbedder:
    return TransformerEmbedder(device="cpu")


def plain_mean_pool(texts: list[str]) -> np.ndarray[Any, Any]:
    tokenizer = AutoTokenizer.from_pretrained(str(minilm_directory()))
    model = AutoModel.from_pretrained(str(minilm_directory())).eval()
    rows = []
    for text in texts:
        with torch.no_grad():
            hidden = model(**tokenizer(text, truncation=True, max_length=256, return_tensors="pt")).last_hidden_state
        mean = hidden[0].mean(dim=0)
        rows.append((mean / mean.norm()).numpy())
    return np.stack(rows)


def count_rows(embedder: TransformerEmbedder, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    sizes: list[int] = []
    forward = embedder._forward
    monkeypatch.setattr(embedder, "_forward", lambda ids: (sizes.append(len(ids)), forward(ids))[1])
    return sizes


def test_vectors_equal_a_plain_mean_pooled_forward(embedder: TransformerEmbedder) -> None:
    vectors = embedder.embed(TEXTS)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, plain_mean_pool(TEXTS), atol=2e-6)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_each_distinct_text_is_embedded_once(embedder: TransformerEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = count_rows(embedder, monkeypatch)
    vectors = embedder.embed(["same", "other", "same", "same"])
    assert sum(sizes) == 2
    assert (vectors[0] == vectors[2]).all()
    assert (vectors[0] != vectors[1]).any()


def test_batches_keep_to_the_token_budget_and_the_order_of_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    small = TransformerEmbedder(device="cpu", token_budget=32)
    sizes = count_rows(small, monkeypatch)
    texts = [f"word {'more ' * number}" for number in (9, 1, 5, 2, 9, 3)]
    vectors = small.embed(texts)
    assert len(sizes) > 1
    np.testing.assert_allclose(vectors, plain_mean_pool(texts), atol=2e-6)


def test_no_texts_are_no_vectors(embedder: TransformerEmbedder) -> None:
    assert embedder.embed([]).shape == (0, embedder.dimension) == (0, 384)


def test_a_directory_s_revision_is_the_sha256_of_its_weights(embedder: TransformerEmbedder) -> None:
    expected = hashlib.sha256((minilm_directory() / "model.safetensors").read_bytes()).hexdigest()
    assert embedder.revision == expected
    assert embedder.model == "all-MiniLM-L6-v2"
    with pytest.raises(ConfigurationError, match="sha256"):
        TransformerEmbedder(str(minilm_directory()), revision="0" * 64)


def test_a_model_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be loaded"):
        TransformerEmbedder(str(tmp_path / "absent"))


def test_values_that_are_not_finite_are_an_error(
    embedder: TransformerEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedder, "_forward", lambda ids: np.full((len(ids), embedder.dimension), np.nan, np.float32))
    with pytest.raises(VerificationError, match="not finite"):
        embedder.embed(["text"])
