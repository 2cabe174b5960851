"""HHEM-2.1-open: a T5 encoder with a token classification head, whose first token is the answer."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from transformers import T5ForTokenClassification

from verifier.errors import ConfigurationError
from verifier.scorers.grounding import GroundingScorer
from verifier.scorers.loading import is_directory, load_weights, pinned, warn_unpinned

# The published checkpoint holds the network as the member ``t5`` of a class of its own.
_KEYS = {r"^t5\.": ""}


@dataclass(eq=False, repr=False)
class HHEMScorer(GroundingScorer):
    """Support is the softmax of the second of the first token's two logits.

    The hub ships the model with code of its own, which is never run: its weights go into the library's class, with
    tokenizer and configuration of the model that it was made from.

    Args:
        tokenizer_model: where tokenizer and configuration come from, a hub name or a directory.
        tokenizer_revision: its commit; None warns and records what was loaded. For a directory the recorded revision
            is the sha256 of its settings (``*.json`` and ``*.model``).

    The other arguments are those of ``GroundingScorer``.
    """

    max_length: int | None = 512
    tokenizer_model: str = "google/flan-t5-base"
    tokenizer_revision: str | None = "7bcac572ce56db69c1ea7c8af255c5d7c9672fc2"

    def prompt(self, document: str, claim: str) -> str:
        """One string."""
        return (
            "<pad> Determine if the hypothesis is true given the premise?\n\n"
            f"Premise: {document}\n\nHypothesis: {claim}"
        )

    def _read(self) -> int:
        asked = self.tokenizer_revision
        if is_directory(self.tokenizer_model):
            self.tokenizer_revision = _settings_digest(self.tokenizer_model)
        else:
            self.tokenizer_revision = pinned(self.tokenizer_model, asked)
            warn_unpinned(self.tokenizer_model, asked, self.tokenizer_revision, "scorer.tokenizer_revision")
        return super()._read()

    def _source(self) -> tuple[str, str | None]:
        return self.tokenizer_model, self.tokenizer_revision

    def _identity(self) -> dict[str, str]:
        source = {"tokenizer_model": self.tokenizer_model, "tokenizer_revision": str(self.tokenizer_revision)}
        return super()._identity() | source

    def _check(self, config: Any) -> None:
        if config.model_type != "t5":
            raise ConfigurationError(f"tokenizer_model {self.tokenizer_model} is no T5 model, but {config.model_type}")

    def _load(self) -> Any:
        self._config.num_labels = 2
        loader = partial(T5ForTokenClassification.from_pretrained, config=self._config, key_mapping=_KEYS)
        return load_weights(loader, self.model, self.revision, self.dtype, allow_extra=False)

    def _logits(self, inputs: Mapping[str, torch.Tensor]) -> torch.Tensor:
        logits: torch.Tensor = self._network(**inputs).logits
        return logits[:, 0]


def _settings_digest(directory: str) -> str:
    digest = hashlib.sha256()
    for path in sorted(Path(directory).iterdir(), key=lambda path: path.name):
        if path.suffix in (".json", ".model"):
            digest.update(path.read_bytes())
    return digest.hexdigest()
