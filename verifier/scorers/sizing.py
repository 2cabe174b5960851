"""What scorers would read, counted without loading or asking any model."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoModel

from verifier.errors import ConfigurationError
from verifier.scorers.engine import Sequences
from verifier.scorers.loading import load_tokenizer


class Sizes(NamedTuple):
    """Tokens of each input of a model, int64; into how many windows each pair is cut; pairs that do not fit."""

    tokens: NDArray[np.int64]
    windows: NDArray[np.int32]
    rejected: int


class Sizer(Protocol):
    """Counts what a scorer would read; ``flops_per_token`` is None where the model is elsewhere."""

    flops_per_token: float | None

    def sizes(self, pairs: Sequence[tuple[str, str]]) -> Sizes:
        """The sizes of (premise, hypothesis) pairs."""
        ...


class TokenCounter:
    """Stands in the place of a ``TokenEngine``: keeps the lengths of what that would run, and runs nothing."""

    def __init__(self) -> None:
        self.lengths: list[int] = []

    def run(self, chunks: Iterable[Sequences]) -> Iterator[tuple[int, NDArray[np.int64], torch.Tensor]]:
        """No logits."""
        for chunk in chunks:
            self.lengths += [len(row) for row in chunk.ids]
        yield from ()


@dataclass
class UnloadedSizer:
    """Sizes from a scorer that has read everything but its weights; its engine is a ``TokenCounter``."""

    scorer: Any
    flops_per_token: float | None

    def sizes(self, pairs: Sequence[tuple[str, str]]) -> Sizes:
        """The sizes of (premise, hypothesis) pairs."""
        counter = self.scorer.engine = TokenCounter()
        scores = self.scorer.score_detailed(pairs)
        rejected = sum(error.outcome == "rejected" for error in scores.errors.values())
        return Sizes(np.array(counter.lengths, dtype=np.int64), scores.windows, rejected)


def token_counter(factory: partial[Any]) -> Callable[[str], int]:
    """Counts the tokens of a text as the scorer's model reads it, special ones left out.

    The tokenizer is read at the first call, which raises ConfigurationError for a scorer that is not one such model.
    """

    @cache
    def tokenizer() -> Any:
        if not hasattr(factory.func, "sizer") or "model" not in factory.keywords:
            raise ConfigurationError(
                f"the input limit is in tokens and the scorer {factory.func.__name__} has no tokenizer of its own:"
                " register it in characters or words"
            )
        return load_tokenizer(factory.keywords["model"], factory.keywords.get("revision"))

    return lambda text: len(tokenizer()(text, add_special_tokens=False, verbose=False)["input_ids"])


def forward_flops(config: Any) -> float:
    """Operations of a forward pass for each token: two for each weight that it meets.

    Embeddings are looked up and not counted, nor are attention scores (Kaplan et al. 2020, table 1); of an encoder
    and decoder the encoder counts, because the decoders here write one token.
    """
    with torch.device("meta"):
        model: Any = AutoModel.from_config(config)  # type: ignore[no-untyped-call]
    network = model.get_encoder() if config.is_encoder_decoder else model
    embedded: int = sum(
        weight.numel()
        for module in network.modules()
        if isinstance(module, torch.nn.Embedding)
        for weight in module.parameters()
    )
    weights: int = sum(weight.numel() for weight in network.parameters())
    return 2.0 * (weights - embedded)
