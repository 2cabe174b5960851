"""MiniCheck-Flan-T5: a sequence-to-sequence model whose first output token says yes or no."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from transformers import AutoModelForSeq2SeqLM

from verifier.errors import ConfigurationError
from verifier.scorers.grounding import GroundingScorer
from verifier.scorers.loading import load_weights

SERIALIZATIONS = ("minicheck", "premise_hypothesis")
_START, _NO, _YES = 0, 3, 209  # token ids


@dataclass(eq=False, repr=False)
class MiniCheckFlanT5Scorer(GroundingScorer):
    """Support is the probability of yes against no at the first decoder step.

    Args:
        serialization: ``minicheck`` ("predict: ", document, end-of-text token, claim) or ``premise_hypothesis``
            ("premise: … hypothesis: …", the form that the published threshold 0.0562 was fitted with).

    The other arguments are those of ``GroundingScorer``.
    """

    packing: str = "minicheck"
    max_length: int | None = 2048
    serialization: str = "minicheck"

    minicheck_unit: ClassVar[str] = "words"

    def prompt(self, document: str, claim: str) -> str:
        """One string."""
        if self.serialization == "minicheck":
            return f"predict: {document}{self._eos()}{claim}"
        return f"premise: {document} hypothesis: {claim}"

    def _check(self, config: Any) -> None:
        if self.serialization not in SERIALIZATIONS:
            raise ConfigurationError(f"serialization is {self.serialization!r}: use one of {', '.join(SERIALIZATIONS)}")
        if not config.is_encoder_decoder or config.vocab_size <= _YES:
            raise ConfigurationError(f"the model {self.model} is no sequence-to-sequence model with a token {_YES}")

    def _load(self) -> Any:
        return load_weights(AutoModelForSeq2SeqLM.from_pretrained, self.model, self.revision, self.dtype)

    def _logits(self, inputs: Mapping[str, torch.Tensor]) -> torch.Tensor:
        start = torch.full_like(inputs["input_ids"][:, :1], _START)
        logits: torch.Tensor = self._network(**inputs, decoder_input_ids=start, use_cache=False).logits
        return logits[:, 0, [_NO, _YES]]
