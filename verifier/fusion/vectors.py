"""An embedder that remembers: a text that comes up again in a run is not embedded again."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


class RememberingEmbedder:
    """Speaks for an embedder and keeps the vectors of the ``size`` texts that were asked for last.

    Attributes:
        model, revision: the embedder's.
    """

    def __init__(self, embedder: Any, size: int) -> None:
        self.model, self.revision = str(embedder.model), str(embedder.revision)
        self._embedder = embedder
        self._size = size
        self._vectors: OrderedDict[str, NDArray[Any]] = OrderedDict()

    def embed(self, texts: Sequence[str]) -> NDArray[Any]:
        """The vectors of ``texts``, shape (n, dimension); each distinct text that is not known is embedded once."""
        if not texts:
            return np.asarray(self._embedder.embed([]))
        distinct = list(dict.fromkeys(texts))
        missing = [text for text in distinct if text not in self._vectors]
        if missing:
            self._vectors.update(zip(missing, self._embedder.embed(missing), strict=True))
        result = np.stack([self._vectors[text] for text in texts])
        # Forgotten only now: one call may ask for more texts than are kept.
        for text in distinct:
            self._vectors.move_to_end(text)
        while len(self._vectors) > self._size:
            self._vectors.popitem(last=False)
        return result

    def cuts(self, texts: Sequence[str]) -> list[bool]:
        """Whether the embedder reads only the beginning of each text."""
        cut: list[bool] = self._embedder.cuts(texts)
        return cut
