"""The ceiling: nothing but the model, over prompts that are tokenized, sorted and batched beforehand."""

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoModelForSequenceClassification, AutoTokenizer
from transformers.utils.logging import disable_progress_bar

from verifier.scorers.batching import token_batches
from verifier.scorers.tokenization import Prompt

_NO, _YES = 3, 209  # token ids that MiniCheck-Flan-T5 answers with
Forward = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]

# What Ray gives its workers: on a busy machine both sides must stand in the same queue.
_NICENESS = int(os.environ.get("RAY_worker_niceness", "15"))  # noqa: SIM112  (its name in Ray)


def bare_loop(model: str, pairs_file: str, threads: int, token_budget: int) -> dict[str, float]:
    """Run the model over the (premise, hypothesis) pairs of a JSON lines file; only the model's calls are timed.

    Args:
        model: directory of a sequence classification model.
        pairs_file: a pair a line.
        threads: of torch.
        token_budget: tokens of a batch, padding included.
    """
    started = time.perf_counter()
    os.nice(_NICENESS)
    disable_progress_bar()  # type: ignore[no-untyped-call]
    torch.set_num_threads(threads)
    network: Any = AutoModelForSequenceClassification.from_pretrained(
        model, dtype=torch.float32, use_safetensors=True
    ).eval()
    lines = Path(pairs_file).read_text(encoding="utf-8").splitlines()
    asked = [(premise, hypothesis) for premise, hypothesis in map(json.loads, lines)]
    batches = tokenized(AutoTokenizer.from_pretrained(model), asked, token_budget)
    loaded, cpu = time.perf_counter(), time.process_time()
    outputs = probabilities(lambda ids, mask: network(input_ids=ids, attention_mask=mask).logits, batches)
    return {
        "seconds": time.perf_counter() - loaded,
        "cpu_seconds": time.process_time() - cpu,
        "load_seconds": loaded - started,
        "pairs": sum(map(len, outputs)),
        "batches": len(batches.inputs),
        "tokens": batches.tokens,
        "longest": batches.longest,
        "padding_share": batches.padding_share,
        "threads": torch.get_num_threads(),
    }


def classify(network: Any, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The logits of a sequence classification network, of shape (batch, labels)."""
    logits: torch.Tensor = network(input_ids=ids, attention_mask=mask).logits
    return logits


def say_yes(network: Any, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The logits that MiniCheck-Flan-T5 has for no and yes as its first token, of shape (batch, 2)."""
    start = torch.zeros((len(ids), 1), dtype=torch.int64, device=ids.device)
    output = network(input_ids=ids, attention_mask=mask, decoder_input_ids=start, use_cache=False)
    logits: torch.Tensor = output.logits[:, 0, [_NO, _YES]]
    return logits


def probabilities(forward: Forward, batches: "Batches") -> list[torch.Tensor]:
    """The loop: the softmax of each batch's logits, of shape (batch, columns).

    Args:
        forward: ids and mask, each of shape (batch, longest), to logits of shape (batch, columns).
        batches: what to run it over.
    """
    with torch.inference_mode():
        return [torch.softmax(forward(ids, mask).float(), dim=-1) for ids, mask in batches.inputs]


@dataclass(frozen=True)
class Batches:
    """Tokenized prompts, cut into batches.

    Attributes:
        inputs: ids and mask of each batch, both of shape (batch, longest).
        indices: the prompts of each batch.
        tokens: of all prompts.
        cells: the same, padding included.
        longest: tokens of the longest prompt.
    """

    inputs: Sequence[tuple[torch.Tensor, torch.Tensor]]
    indices: Sequence[NDArray[np.int64]]
    tokens: int
    cells: int
    longest: int

    @property
    def padding_share(self) -> float:
        """Padding among the tokens."""
        return 1 - self.tokens / self.cells


def tokenized(tokenizer: Any, prompts: Sequence[Prompt], token_budget: int) -> Batches:
    """The prompts, one text or a pair of texts each, in batches of at most ``token_budget`` tokens, longest first."""
    rows = tokenizer(list(prompts))["input_ids"]
    lengths = [len(row) for row in rows]
    indices = token_batches(lengths, token_budget)
    inputs = []
    for batch in indices:
        padded = tokenizer.pad({"input_ids": [rows[index] for index in batch]}, return_tensors="pt")
        inputs.append((padded["input_ids"], padded["attention_mask"]))
    return Batches(inputs, indices, sum(lengths), sum(ids.numel() for ids, _ in inputs), max(lengths))
