"""The ceiling: nothing but the model, over pairs that are tokenized, sorted and batched beforehand."""

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer
from transformers.utils.logging import disable_progress_bar

from verifier.scorers.batching import token_batches

# What Ray gives its workers: on a busy machine both sides must stand in the same queue.
_NICENESS = int(os.environ.get("RAY_worker_niceness", "15"))  # noqa: SIM112  (its name in Ray)

Pairs = Sequence[tuple[str, str]]


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
    network: Any = AutoModelForSequenceClassification.from_pretrained(model, dtype=torch.float32).eval()
    asked = [json.loads(line) for line in Path(pairs_file).read_text(encoding="utf-8").splitlines()]
    batches, tokens, cells, longest = _tokenized(model, asked, token_budget)
    loaded, cpu = time.perf_counter(), time.process_time()
    pairs = 0
    with torch.inference_mode():
        for ids, mask in batches:
            pairs += len(torch.softmax(network(input_ids=ids, attention_mask=mask).logits.float(), dim=-1))
    return {
        "seconds": time.perf_counter() - loaded,
        "cpu_seconds": time.process_time() - cpu,
        "load_seconds": loaded - started,
        "pairs": pairs,
        "batches": len(batches),
        "tokens": tokens,
        "longest": longest,
        "padding_share": 1 - tokens / cells,
        "threads": torch.get_num_threads(),
    }


def _tokenized(
    model: str, pairs: Pairs, token_budget: int
) -> tuple[list[tuple[torch.Tensor, torch.Tensor]], int, int, int]:
    """Batches of ids and masks, their tokens, their cells (padding included) and the longest pair."""
    tokenizer: Any = AutoTokenizer.from_pretrained(model)
    rows = tokenizer([premise for premise, _ in pairs], [hypothesis for _, hypothesis in pairs])["input_ids"]
    lengths = [len(row) for row in rows]
    batches, cells = [], 0
    for indices in token_batches(lengths, token_budget):
        padded = tokenizer.pad({"input_ids": [rows[index] for index in indices]}, return_tensors="pt")
        batches.append((padded["input_ids"], padded["attention_mask"]))
        cells += padded["input_ids"].numel()
    return batches, sum(lengths), cells, max(lengths)
