"""A scorer free of cost whose answers depend on the pair alone; imported by name in the actors of the tests.

Environment variables, which no run directory belongs to, steer it: ``FREE_DELAY`` seconds a call,
``FREE_LOG`` a file that gets ``pid hypothesis`` for every pair asked, ``FREE_FAIL`` a hypothesis that it fails at
(``FREE_FAIL_HOW``: ``raise``, ``nan``, or ``die``: from then on it answers nothing),
``FREE_HUB=down`` lets it fail while it is built.
"""

import hashlib
import os
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

MODEL = "free"


class FreeScorer:
    dtype = "float64"

    def __init__(self, revision: str) -> None:
        self.model, self.revision, self.dead = MODEL, revision, False
        if os.environ.get("FREE_HUB") == "down":
            raise OSError("the hub cannot be reached")
        if loaded := os.environ.get("FREE_LOADED"):
            with Path(loaded).open("a") as file:
                file.write(f"{os.getpid()}\n")

    @classmethod
    def identify(cls, revision: str) -> dict[str, str]:
        return {"model": MODEL, "revision": revision}

    def score(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        if log := os.environ.get("FREE_LOG"):
            lines = "".join(f"{os.getpid()} {hypothesis}\n" for _, hypothesis in pairs)
            handle = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            os.write(handle, lines.encode())
            os.close(handle)
        time.sleep(float(os.environ.get("FREE_DELAY", "0")))
        values = np.array([_answer(*pair) for pair in pairs]).reshape(-1, 3)
        bad, how = os.environ.get("FREE_FAIL"), os.environ.get("FREE_FAIL_HOW")
        wrong = [index for index, (_, hypothesis) in enumerate(pairs) if hypothesis == bad]
        self.dead |= bool(wrong) and how == "die"
        if self.dead or (wrong and how == "raise"):
            raise RuntimeError("the sky fell")
        values[wrong] = np.nan
        return values


def _answer(premise: str, hypothesis: str) -> list[float]:
    digest = hashlib.sha256(f"{premise}\0{hypothesis}".encode()).digest()
    weights = [1 + byte**3 for byte in digest[:3]]
    return [weight / sum(weights) for weight in weights]
