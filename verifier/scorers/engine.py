"""Token sequences through a network in batches of a token budget: the one loop that every local family uses."""

import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from verifier.errors import VerificationError
from verifier.scorers.batching import pad_batch, size_chunks, token_batches

Forward = Callable[[Mapping[str, torch.Tensor]], torch.Tensor]
Prepared = TypeVar("Prepared")

# Characters tokenized ahead of the model: enough for several batches, little enough to start soon.
CHUNK_CHARACTERS = 1 << 18
_TOKEN_BUDGET = {"cpu": 4096, "cuda": 32768}
# Read before any thread of ours changes it: later threads would be told that there is one.
_CPU_THREADS = torch.get_num_threads()


@dataclass(frozen=True)
class Sequences:
    """Inputs of a network: token ids and, for networks that know them, token type ids, each of shape (tokens,)."""

    ids: Sequence[NDArray[Any]]
    types: Sequence[NDArray[Any]] | None = None


def prepared_ahead(
    pairs: Sequence[tuple[str, str]], prepare: Callable[[NDArray[np.int64]], Prepared]
) -> Iterator[Prepared]:
    """What ``prepare`` makes of the indices of a chunk of pairs, chunk by chunk, long pairs first.

    It runs in one thread, on the next chunk while the caller is busy with this one.
    """
    sizes = [len(premise) + len(hypothesis) for premise, hypothesis in pairs]
    ahead: Future[Prepared] | None = None
    with ThreadPoolExecutor(max_workers=1) as pool:
        for chunk in size_chunks(sizes, CHUNK_CHARACTERS):
            ready, ahead = ahead, pool.submit(prepare, chunk)
            if ready is not None:
                yield ready.result()
        if ahead is not None:
            yield ahead.result()


class TokenEngine:
    """Runs sequences of token ids through a network, longest first, identical device handling for all families.

    On a CPU every thread works on a batch of its own: threads that share one wait for the slowest of them at each
    operation. A GPU gets one batch at a time.

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
        seconds: time that the network was waited for so far.
    """

    def __init__(
        self, forward: Forward, device: torch.device, token_budget: int | None, pad_id: int, type_pad_id: int = 0
    ) -> None:
        self._forward = forward
        self._device = device
        self._pad_id, self._type_pad_id = pad_id, type_pad_id
        self._workers = _CPU_THREADS if device.type == "cpu" else 1
        self._pool = ThreadPoolExecutor(
            self._workers, initializer=torch.set_num_threads, initargs=(1 if device.type == "cpu" else _CPU_THREADS,)
        )
        self.token_budget = token_budget or _TOKEN_BUDGET.get(device.type, _TOKEN_BUDGET["cpu"])
        self._warm_up()
        self.tokens_scored = self.tokens_padded = 0
        self.seconds = 0.0

    def _warm_up(self) -> None:
        """One short input, so that kernels are chosen and a network that cannot run fails while it is loaded."""
        row = np.full(4, self._pad_id, dtype=np.int64)
        self._pool.submit(self._try_batch, Sequences([row])).result()

    def run(self, chunks: Iterable[Sequences]) -> Iterator[tuple[int, NDArray[np.int64], torch.Tensor]]:
        """(number of the chunk, indices in it, their logits as float32 on the device), batch by batch.

        Chunks are taken as the network gets to them. Running out of device memory halves the token budget and goes
        on; with a single sequence it is a VerificationError.
        """
        under_way: deque[_Batch] = deque()
        for number, chunk in enumerate(chunks):
            lengths = np.array([len(row) for row in chunk.ids], dtype=np.int64)
            for indices in token_batches(lengths, self.token_budget):
                under_way += self._started(number, chunk, indices)
                while len(under_way) > 2 * self._workers:
                    yield from self._finished(under_way)
        while under_way:
            yield from self._finished(under_way)

    def to_numpy(self, logits: Sequence[torch.Tensor]) -> NDArray[np.float64]:
        """Softmax over the columns of all batches, float64 of shape (n, columns), in one copy from the device."""
        started = time.perf_counter()
        probabilities: NDArray[np.float64] = torch.softmax(torch.cat(list(logits)), dim=-1).double().cpu().numpy()
        self.seconds += time.perf_counter() - started
        return probabilities

    def _started(self, number: int, chunk: Sequences, indices: NDArray[np.int64]) -> list["_Batch"]:
        """The sequences under way, in batches of today's token budget: it may have shrunk since they were cut."""
        lengths = np.array([len(chunk.ids[index]) for index in indices], dtype=np.int64)
        batches = []
        for part in token_batches(lengths, self.token_budget):
            taken = indices[part]
            rows = Sequences([chunk.ids[i] for i in taken], chunk.types and [chunk.types[i] for i in taken])
            tokens, cells = int(lengths[part].sum()), len(part) * int(lengths[part].max())
            batches.append(_Batch(number, chunk, taken, tokens, cells, self._pool.submit(self._try_batch, rows)))
        return batches

    def _finished(self, under_way: deque["_Batch"]) -> Iterator[tuple[int, NDArray[np.int64], torch.Tensor]]:
        """The oldest batch's logits; where it had too little memory, nothing, and its halves are under way."""
        batch = under_way.popleft()
        started = time.perf_counter()
        logits = batch.logits.result()
        self.seconds += time.perf_counter() - started
        if logits is None:
            self._halve_budget(len(batch.indices), batch.cells)
            under_way.extendleft(self._started(batch.number, batch.chunk, batch.indices)[::-1])
            return
        self.tokens_scored += batch.tokens
        self.tokens_padded += batch.cells - batch.tokens
        yield batch.number, batch.indices, logits

    def _try_batch(self, rows: Sequences) -> torch.Tensor | None:
        """The logits of one batch, or None where the device has too little memory for it."""
        pin = self._device.type == "cuda"
        inputs = dict(zip(("input_ids", "attention_mask"), pad_batch(rows.ids, self._pad_id, pin), strict=True))
        if rows.types is not None:
            inputs["token_type_ids"], _ = pad_batch(rows.types, self._type_pad_id, pin)
        try:
            moved = {name: tensor.to(self._device, non_blocking=True) for name, tensor in inputs.items()}
            with torch.inference_mode():
                return self._forward(moved).float()
        except torch.OutOfMemoryError:
            return None

    def _halve_budget(self, items: int, cells: int) -> None:
        if items == 1:
            raise VerificationError(f"the device has too little memory for one input of {cells} tokens")
        if cells // 2 < self.token_budget:
            self.token_budget = cells // 2
            warnings.warn(
                f"out of device memory with {cells} tokens, token_budget is {self.token_budget} from here on",
                RuntimeWarning,
                stacklevel=2,
            )
        if self._device.type == "cuda":
            torch.cuda.empty_cache()


@dataclass(frozen=True)
class _Batch:
    number: int
    chunk: Sequences
    indices: NDArray[np.int64]
    tokens: int
    cells: int
    logits: Future[torch.Tensor | None]
