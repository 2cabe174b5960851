"""Which claim ids were seen before, and where first, in about 24 bytes an id, and 38 while runs are merged."""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_RATIO = 8  # of a run to the next: the smaller the one that is merged, the less is held twice


class SeenIds:
    """Ids by their 128-bit digest, in sorted runs that are merged as they grow (so adding stays n log n)."""

    def __init__(self) -> None:
        self._runs: list[list[NDArray[Any]]] = []  # of the halves of the digests, and of places

    def add(self, ids: Sequence[str], places: Sequence[int]) -> list[int | None]:
        """For every id the place where it stood first, None where this is the first; new ids are remembered."""
        if not ids:
            return []
        digests = [hashlib.blake2b(name.encode(), digest_size=16).digest() for name in ids]
        halves = np.frombuffer(b"".join(digests), "<u8").reshape(-1, 2)
        high, low = halves[:, 0].copy(), halves[:, 1].copy()
        first = self._lookup(high, low)
        here: dict[bytes, int] = {}
        answers: list[int | None] = []
        fresh: list[int] = []
        for index, digest in enumerate(digests):
            before = int(first[index])
            if before < 0:
                before = here.setdefault(digest, places[index])
                if before == places[index]:
                    fresh.append(index)
                    answers.append(None)
                    continue
            answers.append(before)
        self._remember(high[fresh], low[fresh], np.array(places, np.int64)[fresh])
        return answers

    def _lookup(self, high: NDArray[np.uint64], low: NDArray[np.uint64]) -> NDArray[np.int64]:
        first = np.full(len(high), -1, np.int64)
        for run_high, run_low, run_places in self._runs:
            at = np.searchsorted(run_high, high)
            inside = np.minimum(at, len(run_high) - 1)
            for index in np.flatnonzero(run_high[inside] == high):
                entry = int(at[index])
                while entry < len(run_high) and run_high[entry] == high[index]:  # halves may collide, wholes do not
                    if run_low[entry] == low[index]:
                        first[index] = run_places[entry]
                    entry += 1
        return first

    def _remember(self, high: NDArray[np.uint64], low: NDArray[np.uint64], places: NDArray[np.int64]) -> None:
        if not len(high):
            return
        order = np.argsort(high)
        run = [high[order], low[order], places[order]]
        while self._runs and len(self._runs[-1][0]) <= _RATIO * len(run[0]):
            earlier = self._runs.pop()
            at = np.searchsorted(earlier[0], run[0])
            for column in range(len(run)):  # one after the other: only one of them is there twice
                run[column] = np.insert(earlier[column], at, run[column])
                earlier[column] = run[column][:0]
        self._runs.append(run)
