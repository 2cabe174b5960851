"""Token-budget batching, the one implementation that every family of scorers uses."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray


def token_batches(lengths: ArrayLike, token_budget: int, max_padding: float = 0.05) -> list[NDArray[np.int64]]:
    """Cut items into batches of similar length, longest first; each index stands in exactly one batch.

    Args:
        lengths: tokens per item, shape (n,).
        token_budget: the most tokens of a batch, padding included (longest item times items); an item
            longer than that is a batch of its own.
        max_padding: the share of a batch that may be padding; a 128th of the budget is always allowed, so
            that a few short items do not fall apart into many calls.

    Returns:
        int64 index arrays; ties keep the order of the items.
    """
    sizes = np.asarray(lengths, dtype=np.int64).reshape(-1)
    order = np.argsort(-sizes, kind="stable")
    slack = token_budget // 128
    batches: list[NDArray[np.int64]] = []
    start = longest = held = 0
    for position, size in enumerate(sizes[order].tolist()):
        count = position - start
        cells = longest * (count + 1)
        if count and (cells > token_budget or cells - held - size > max(max_padding * cells, slack)):
            batches.append(order[start:position])
            start, count = position, 0
        if not count:
            longest, held = size, 0
        held += size
    if start < len(order):
        batches.append(order[start:])
    return batches


def size_chunks(sizes: ArrayLike, chunk_size: int) -> list[NDArray[np.int64]]:
    """Cut items into chunks of about ``chunk_size`` together, largest first; int64 index arrays, each index once.

    Rough lengths, such as characters, will do: chunks are what is tokenized while the model works.
    """
    lengths = np.asarray(sizes, dtype=np.int64).reshape(-1)
    order = np.argsort(-lengths, kind="stable")
    number = (np.cumsum(lengths[order]) - lengths[order]) // chunk_size
    return [part for part in np.split(order, np.flatnonzero(np.diff(number)) + 1) if len(part)]


def pad_batch(rows: Sequence[NDArray[Any]], fill: int, pin_memory: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    """Stack rows of token ids, padded on the right with ``fill``.

    Returns:
        int64 tensors on the CPU, both of shape (rows, longest row): the ids, and the attention mask, which
        is 1 at a token and 0 at padding.
    """
    lengths = np.fromiter((len(row) for row in rows), np.int64, len(rows))
    shape = (len(rows), int(lengths.max(initial=0)))
    ids = torch.empty(shape, dtype=torch.int64, pin_memory=pin_memory)
    mask = torch.empty(shape, dtype=torch.int64, pin_memory=pin_memory)
    real = np.arange(shape[1]) < lengths[:, None]
    mask.numpy()[:] = real
    ids.numpy()[:] = fill
    if rows:
        ids.numpy()[real] = np.concatenate(rows)
    return ids, mask
