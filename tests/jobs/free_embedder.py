"""An embedder free of cost whose vectors depend on a text's words alone; imported by name in the actors of the tests.

``FREE_DELAY`` is seconds a call; ``FREE_LOG`` a file that gets a line for every text that is embedded.
"""

import hashlib
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

MODEL, DIMENSION = "free-words", 16


class FreeEmbedder:
    """Takes what the real one takes, so that it can stand in its configuration."""

    def __init__(
        self,
        model: str | None = None,
        revision: str = "1",
        device: str = "cpu",
        max_length: int = 256,
        token_budget: int | None = None,
    ) -> None:
        self.model, self.revision = MODEL, revision

    @classmethod
    def identify(cls, **settings: Any) -> dict[str, str]:
        return {"model": MODEL, "revision": str(settings["revision"])}

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if log := os.environ.get("FREE_LOG"):
            with Path(log).open("a") as file:
                file.write("".join(f"{text}\n" for text in texts))
        time.sleep(float(os.environ.get("FREE_DELAY", "0")))
        return np.stack([_vector(text) for text in texts]) if texts else np.zeros((0, DIMENSION), np.float32)

    def cuts(self, texts: Sequence[str]) -> list[bool]:
        return [len(text) > 200 for text in texts]


def _vector(text: str) -> NDArray[np.float32]:
    seeds = (hashlib.sha256(word.encode()).digest() for word in text.lower().split() or [""])
    vector = sum(np.frombuffer(seed[:DIMENSION], np.uint8).astype(np.float64) - 127.5 for seed in seeds)
    return np.asarray(vector / np.linalg.norm(vector), np.float32)
