"""Token sequences through a network in batches of a token budget: the one loop that every local family uses."""

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from verifier.errors import VerificationError
from verifier.scorers.batching import pad_batch, token_batches

Forward = Callable[[Mapping[str, torch.Tensor]], torch.Tensor]

_TOKEN_BUDGET = {"cpu": 4096, "cuda": 32768}


class TokenEngine:
    """Runs sequences of token ids through a network, longest first, identical device handling for all families.

    Args:
        forward: inputs (``input_ids``, ``attention_mask`` and perhaps ``token_type_ids``, each of shape (batch,
            longest)) to logits of shape (batch, columns); called under ``inference_mode``.
        device: where the inputs go.
        token_budget: the most tokens of a batch, padding included; None is 4,096 on a CPU (measured fastest of
            1,024 to 16,384) and 32,768 on a GPU.
        pad_id: fills ``input_ids``.
        type_pad_id: fills ``token_type_ids``.

    Attributes:
        token_budget: in use; smaller than asked for once the device has run out of memory.
        tokens_scored, tokens_padded: tokens of inputs and of padding that went through the network so far.
        seconds: time spent with the network so far.
    """

    def __init__(
        self, forward: Forward, device: torch.device, token_budget: int | None, pad_id: int, type_pad_id: int = 0
    ) -> None:
        self._forward = forward
        self._device = device
        self._pad_id, self._type_pad_id = pad_id, type_pad_id
        self.token_budget = token_budget or _TOKEN_BUDGET.get(device.type, _TOKEN_BUDGET["cpu"])
        self.tokens_scored = self.tokens_padded = 0
        self.seconds = 0.0

    def run(
        self, ids: Sequence[NDArray[Any]], types: Sequence[NDArray[Any]] | None = None
    ) -> Iterator[tuple[NDArray[np.int64], torch.Tensor]]:
        """Indices of sequences and their logits, float32 on the device, batch by batch.

        Running out of device memory halves the token budget and goes on; with a single sequence it is a
        VerificationError.
        """
        lengths = np.array([len(row) for row in ids], dtype=np.int64)
        pending = token_batches(lengths, self.token_budget)[::-1]
        while pending:
            batch = pending.pop()
            started = time.perf_counter()
            logits = self._try_batch([ids[index] for index in batch], types and [types[index] for index in batch])
            self.seconds += time.perf_counter() - started
            cells = len(batch) * int(lengths[batch].max())
            if logits is None:
                self._halve_budget(len(batch), cells)
                rest = np.concatenate([batch, *pending[::-1]])
                pending = [rest[part] for part in token_batches(lengths[rest], self.token_budget)][::-1]
                continue
            self.tokens_scored += int(lengths[batch].sum())
            self.tokens_padded += cells - int(lengths[batch].sum())
            yield batch, logits

    def to_numpy(self, logits: Sequence[torch.Tensor], model: str) -> NDArray[np.float64]:
        """Softmax over the columns of all batches, float64 of shape (n, columns), in one copy from the device.

        VerificationError where the network returned anything but finite numbers.
        """
        started = time.perf_counter()
        probabilities: NDArray[np.float64] = torch.softmax(torch.cat(list(logits)), dim=-1).double().cpu().numpy()
        self.seconds += time.perf_counter() - started
        if not np.isfinite(probabilities).all():
            raise VerificationError(f"the model {model} returned something other than finite numbers")
        return probabilities

    def _try_batch(self, ids: Sequence[NDArray[Any]], types: Sequence[NDArray[Any]] | None) -> torch.Tensor | None:
        """The logits of one batch, or None where the device has too little memory for it."""
        pin = self._device.type == "cuda"
        inputs = dict(zip(("input_ids", "attention_mask"), pad_batch(ids, self._pad_id, pin), strict=True))
        if types is not None:
            inputs["token_type_ids"], _ = pad_batch(types, self._type_pad_id, pin)
        try:
            moved = {name: tensor.to(self._device, non_blocking=True) for name, tensor in inputs.items()}
            with torch.inference_mode():
                return self._forward(moved).float()
        except torch.OutOfMemoryError:
            return None

    def _halve_budget(self, items: int, cells: int) -> None:
        if items == 1:
            raise VerificationError(f"the device has too little memory for one input of {cells} tokens")
        self.token_budget = max(1, min(self.token_budget, cells) // 2)
        warnings.warn(
            f"out of device memory with {cells} tokens, token_budget is {self.token_budget} from here on",
            RuntimeWarning,
            stacklevel=2,
        )
        if self._device.type == "cuda":
            torch.cuda.empty_cache()
