"""Token ids of premise-hypothesis pairs: each text is tokenized once, pairs are put together from their ids."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier.errors import ConfigurationError
from verifier.protocol import PairError
from verifier.text.windows import tokenizer_offsets

Ids = NDArray[np.int32]
Prompt = str | tuple[str, str]


def pair_too_long(message: str) -> PairError:
    """The error of a pair that does not fit the model."""
    return PairError("rejected", "pair_too_long", message)


class TokenMemo:
    """The token ids of texts, special tokens left out, remembered for as long as the memo lives.

    ``backend`` is the ``backend_tokenizer`` of a fast tokenizer, without truncation and padding.
    """

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self._ids: dict[str, Ids] = {}
        self._offsets: dict[str, NDArray[np.int64]] = {}
        self._read_offsets = tokenizer_offsets(backend)

    def add(self, texts: Sequence[str]) -> None:
        """Tokenize the texts that are new, in parallel."""
        new = [text for text in dict.fromkeys(texts) if text not in self._ids]
        for text, encoding in zip(new, self._backend.encode_batch_fast(new, add_special_tokens=False), strict=True):
            self._ids[text] = np.asarray(encoding.ids, dtype=np.int32)

    def ids(self, text: str) -> Ids:
        """The ids of one text, int32 of shape (tokens,)."""
        if text not in self._ids:
            self.add([text])
        return self._ids[text]

    def count(self, text: str) -> int:
        """How many tokens a text has."""
        return len(self.ids(text))

    def offsets(self, text: str) -> NDArray[np.int64]:
        """Code point (start, end) of each token, int64 of shape (tokens, 2)."""
        if text not in self._offsets:
            self._offsets[text] = self._read_offsets(text)
        return self._offsets[text]


class PromptMemo:
    """The token ids of whole prompts, special tokens included, remembered for as long as the memo lives.

    A prompt is one text or a pair of texts, tokenized as ``tokenizer(prompt)`` or ``tokenizer(*prompt)`` does.
    ``backend`` is the ``backend_tokenizer`` of a fast tokenizer, without truncation and padding.
    """

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self._ids: dict[Prompt, Ids] = {}
        self._types: dict[Prompt, NDArray[np.int8]] = {}

    def add(self, prompts: Sequence[Prompt]) -> None:
        """Tokenize the prompts that are new, in parallel."""
        new = [prompt for prompt in dict.fromkeys(prompts) if prompt not in self._ids]
        for prompt, encoding in zip(new, self._backend.encode_batch_fast(new), strict=True):
            self._ids[prompt] = np.asarray(encoding.ids, dtype=np.int32)
            if isinstance(prompt, tuple):  # one text has one type
                self._types[prompt] = np.asarray(encoding.type_ids, dtype=np.int8)

    def ids(self, prompt: Prompt) -> Ids:
        """The ids of one prompt, int32 of shape (tokens,)."""
        if prompt not in self._ids:
            self.add([prompt])
        return self._ids[prompt]

    def types(self, prompt: Prompt) -> NDArray[np.int8]:
        """The token type ids of one prompt, int8 of shape (tokens,)."""
        ids = self.ids(prompt)
        return self._types[prompt] if isinstance(prompt, tuple) else np.zeros(len(ids), np.int8)

    def cut(self, prompt: Prompt, length: int, side: str) -> None:
        """Cut a prompt to ``length`` tokens as ``truncation="only_first"`` does, on the ``side`` right or left."""
        encoding = self._backend.encode(*prompt) if isinstance(prompt, tuple) else self._backend.encode(prompt)
        text = [place for place, sequence in enumerate(encoding.sequence_ids) if sequence == 0]
        excess = len(encoding.ids) - length
        removed = text[-excess:] if side == "right" else text[:excess]
        self._ids[prompt] = np.delete(self.ids(prompt), removed)
        if isinstance(prompt, tuple):
            self._types[prompt] = np.delete(self._types[prompt], removed)


@dataclass(frozen=True)
class PairTemplate:
    """How a tokenizer joins two texts: three runs of special tokens around them, and a type id for each part.

    ``types`` has the type ids of: before, premise, between, hypothesis, after (a run repeats one type).
    """

    before: Ids
    between: Ids
    after: Ids
    types: tuple[int, int, int, int, int]

    @classmethod
    def of(cls, backend: Any) -> "PairTemplate":
        """Read the template off a pair of one-letter texts; ConfigurationError where it is not of that form."""
        pair = backend.encode("a", "b")
        ids, types = np.asarray(pair.ids, np.int32), np.asarray(pair.type_ids, np.int64)
        source = np.array([-1 if number is None else number for number in pair.sequence_ids])
        first, second = np.flatnonzero(source == 0), np.flatnonzero(source == 1)
        if not len(first) or not len(second) or first[-1] > second[0]:
            raise ConfigurationError("the tokenizer does not write a pair as premise, then hypothesis")
        cuts = [0, first[0], first[-1] + 1, second[0], second[-1] + 1, len(ids)]
        parts = [slice(start, end) for start, end in pairwise(cuts)]
        if any(len(set(types[part].tolist())) > 1 for part in parts):
            raise ConfigurationError("the tokenizer changes the type id inside a run of special tokens")
        numbers = [int(types[part][0]) if len(types[part]) else 0 for part in parts]
        return cls(
            ids[parts[0]], ids[parts[2]], ids[parts[4]], (numbers[0], numbers[1], numbers[2], numbers[3], numbers[4])
        )

    @property
    def special_tokens(self) -> int:
        """How many tokens the template adds to a pair."""
        return len(self.before) + len(self.between) + len(self.after)

    def ids(self, premise: Ids, hypothesis: Ids) -> Ids:
        """What ``tokenizer(premise, hypothesis)`` gives as input ids."""
        return np.concatenate([self.before, premise, self.between, hypothesis, self.after])

    def type_ids(self, premise: Ids, hypothesis: Ids) -> NDArray[np.int64]:
        """What ``tokenizer(premise, hypothesis)`` gives as token type ids."""
        lengths = [len(part) for part in (self.before, premise, self.between, hypothesis, self.after)]
        return np.repeat(np.asarray(self.types, dtype=np.int64), lengths)
