"""A three-label NLI model as a grounding scorer: support is the probability of entailment."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from verifier.scorers.cross_encoder import label_columns
from verifier.scorers.grounding import GroundingScorer


@dataclass(eq=False, repr=False)
class EntailmentScorer(GroundingScorer):
    """Support is the softmax of entailment, found by label name; see ``GroundingScorer`` for the arguments."""

    def prompt(self, document: str, claim: str) -> tuple[str, str]:
        """A pair, joined as the tokenizer joins premise and hypothesis."""
        return document, claim

    def _check(self, config: Any) -> None:
        entailment, contradiction, neutral = label_columns(config.id2label)
        self._columns = [contradiction, neutral, entailment]

    def _logits(self, inputs: Mapping[str, torch.Tensor]) -> torch.Tensor:
        return super()._logits(inputs)[:, self._columns]
