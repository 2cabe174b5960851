"""Three-label NLI cross-encoders: sequence classification over tokenizer(premise, hypothesis)."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoConfig, AutoModelForSequenceClassification

from verifier.errors import ConfigurationError, PairTooLong
from verifier.protocol import LABELS, PairError, Scores
from verifier.scorers.base import NOT_FINITE, raise_first
from verifier.scorers.engine import Sequences, TokenEngine, prepared_ahead
from verifier.scorers.loading import (
    TooLong,
    check_settings,
    is_directory,
    length_limit,
    load,
    load_tokenizer,
    load_weights,
    pinned,
    resolve_device,
    resolve_dtype,
    warn_unpinned,
    weight_files,
)
from verifier.scorers.sizing import Sizer, UnloadedSizer, forward_flops
from verifier.scorers.tokenization import Ids, PairTemplate, TokenMemo, pair_too_long
from verifier.text.windows import split_windows


def label_columns(id2label: Mapping[int, str]) -> tuple[int, int, int]:
    """The logit columns of entailment, contradiction and neutral, by name in any case; ConfigurationError else."""
    found = {str(name).strip().lower(): int(column) for column, name in id2label.items()}
    if set(found) != set(LABELS) or len(id2label) != len(LABELS):
        names = ", ".join(str(name) for name in id2label.values())
        raise ConfigurationError(f"the model's labels must be {', '.join(LABELS)}, but they are {names}")
    return found["entailment"], found["contradiction"], found["neutral"]


def _tokenizer_and_config(model: str, revision: str | None) -> tuple[Any, Any]:
    config = load(AutoConfig.from_pretrained, model, revision)
    label_columns(config.id2label)
    return load_tokenizer(model, revision), config


def check_available(model: str, revision: str | None = None) -> None:
    """Raise what the constructor would raise for a model that cannot be had or has other labels.

    Reads the configuration and the tokenizer only, so it is cheap enough to run before any actor starts.
    """
    if is_directory(model):
        weight_files(model)
    _tokenizer_and_config(model, revision)


@dataclass
class _Prepared:
    """Pairs in the form the model is asked: one item an uncut pair or a window."""

    owner: list[int] = field(default_factory=list)
    number: list[int] = field(default_factory=list)
    texts: list[tuple[Ids, Ids]] = field(default_factory=list)
    windows: dict[int, int] = field(default_factory=dict)
    truncated: list[int] = field(default_factory=list)
    errors: dict[int, PairError] = field(default_factory=dict)

    def add(self, pair: int, premises: Mapping[int, Ids], hypothesis: Ids) -> None:
        self.owner += [pair] * len(premises)
        self.number += premises
        self.texts += [(premise, hypothesis) for premise in premises.values()]


class CrossEncoderScorer:
    """Entailment, contradiction and neutral from a sequence classification model with those three labels.

    Args:
        model: name on a hub, or a directory.
        revision: commit of the hub's model; None warns and records what was loaded. For a directory the
            recorded revision is the sha256 of its weights.
        device: ``auto``, ``cpu``, ``cuda``, ``cuda:1`` …
        dtype: ``auto`` (float32 on a CPU, bfloat16 on a GPU), ``float32``, ``bfloat16`` or ``float16``.
        token_budget: the most tokens of one batch, padding included; None is the engine's choice.
        too_long: for a premise that does not fit: ``window`` scores it in windows and keeps the triple of the
            window with the largest entailment or contradiction, the first on ties; ``truncate`` cuts its end;
            ``reject`` gives the pair no score.
        max_length: tokens of one input, special tokens included; None is the model's own limit.
        allow_cpu_fallback: run on the CPU, with a warning, where the GPU asked for is not there.

    Attributes:
        model, revision, dtype: what was loaded, as it stands in results.
        engine: runs the batches; counts tokens, padding and seconds.
        seconds_tokenizing: time spent so far; it overlaps the engine's in long calls.

    Raises:
        ConfigurationError: the model cannot be loaded, has other labels, or an argument does not fit it.
    """

    def __init__(
        self,
        model: str,
        revision: str | None = None,
        device: str = "auto",
        dtype: str = "auto",
        token_budget: int | None = None,
        too_long: TooLong = "window",
        max_length: int | None = None,
        allow_cpu_fallback: bool = False,
    ) -> None:
        check_settings({"device": device, "dtype": dtype, "token_budget": token_budget, "too_long": too_long})
        self._device = resolve_device(device, allow_cpu_fallback)
        self.dtype = resolve_dtype(dtype, self._device)
        self._read(model, revision, too_long, max_length)
        network = load_weights(AutoModelForSequenceClassification.from_pretrained, model, self.revision, self.dtype)
        self._network: Any = network.to(self._device)
        warn_unpinned(model, revision, self.revision)
        pads = self._tokenizer.pad_token_id or 0, int(self._tokenizer.pad_token_type_id)
        self.engine = TokenEngine(self._logits, self._device, token_budget, *pads)

    def _read(self, model: str, revision: str | None, too_long: TooLong, max_length: int | None) -> None:
        """Read everything but the weights."""
        self.model, self.too_long = model, too_long
        self.revision = pinned(model, revision)
        self._tokenizer, self._config = _tokenizer_and_config(model, self.revision)
        self._columns = list(label_columns(self._config.id2label))
        self._backend = self._tokenizer.backend_tokenizer
        self._template = PairTemplate.of(self._backend)
        self._types = "token_type_ids" in self._tokenizer.model_input_names
        self.max_length = length_limit(self._tokenizer, self._config, max_length)
        self.seconds_tokenizing = 0.0

    @classmethod
    def sizer(
        cls,
        model: str,
        revision: str | None = None,
        too_long: TooLong = "window",
        max_length: int | None = None,
        **settings: Any,
    ) -> Sizer:
        """Counts what the scorer would read, without its weights."""
        unloaded = cls.__new__(cls)
        unloaded._read(model, revision, too_long, max_length)
        return UnloadedSizer(unloaded, forward_flops(unloaded._config))

    @classmethod
    def identify(cls, model: str, revision: str | None = None, **settings: Any) -> dict[str, str]:
        """Model and resolved revision without loading weights; raises what the constructor would."""
        check_settings(settings)
        check_available(model, revision)
        return {"model": model, "revision": pinned(model, revision)}

    def score(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        """Probabilities of (premise, hypothesis) pairs, shape (n, 3): entailment, contradiction, neutral.

        Raises PairTooLong where a pair does not fit the model, VerificationError where the model fails.
        """
        scores = self.score_detailed(pairs)
        raise_first(scores.errors)
        return scores.values

    def score_detailed(self, pairs: Sequence[tuple[str, str]]) -> Scores:
        """Like ``score``, with windows, cuts and errors per pair; a pair with an error has NaN values.

        Raises VerificationError where the device runs out of memory with a single input.
        """
        n = len(pairs)
        scores = Scores(np.full((n, 3), np.nan), np.ones(n, np.int32), np.zeros(n, np.int32), np.zeros(n, np.bool_), {})
        owners, numbers, logits = list[NDArray[np.int64]](), list[NDArray[np.int64]](), list[torch.Tensor]()
        errors: dict[int, PairError] = {}
        chunks: list[_Prepared] = []

        def inputs() -> Iterator[Sequences]:
            memo = TokenMemo(self._backend)
            for prepared in prepared_ahead(pairs, lambda chunk: self._prepare(pairs, chunk, memo)):
                errors.update(prepared.errors)
                scores.truncated[prepared.truncated] = True
                scores.windows[list(prepared.windows)] = list(prepared.windows.values())
                chunks.append(prepared)
                yield self._sequences(prepared.texts)

        for chunk, items, output in self.engine.run(inputs()):
            owners.append(np.asarray(chunks[chunk].owner, np.int64)[items])
            numbers.append(np.asarray(chunks[chunk].number, np.int64)[items])
            logits.append(output)
        if logits:
            probabilities = self.engine.to_numpy(logits)
            owner = np.concatenate(owners)
            broken = owner[~np.isfinite(probabilities).all(axis=1)]
            errors.update(dict.fromkeys(broken.tolist(), NOT_FINITE))
            _keep_decisive(scores, owner, np.concatenate(numbers), probabilities)
        return Scores(scores.values, scores.windows, scores.window, scores.truncated, errors)

    def _prepare(self, pairs: Sequence[tuple[str, str]], chunk: NDArray[np.int64], memo: TokenMemo) -> _Prepared:
        started = time.perf_counter()
        prepared = _Prepared()
        memo.add([text for index in chunk for text in pairs[index]])
        for index in chunk.tolist():
            premise, hypothesis = pairs[index]
            self._prepare_pair(prepared, index, premise, memo.ids(hypothesis), memo)
        self.seconds_tokenizing += time.perf_counter() - started
        return prepared

    def _prepare_pair(self, prepared: _Prepared, index: int, premise: str, hypothesis: Ids, memo: TokenMemo) -> None:
        ids = memo.ids(premise)
        room = self.max_length - self._template.special_tokens - len(hypothesis)
        if len(ids) <= room:
            prepared.add(index, {0: ids}, hypothesis)
        elif room < 1:
            prepared.errors[index] = pair_too_long(
                f"the hypothesis has {len(hypothesis)} tokens and leaves no room for a premise in the model's"
                f" {self.max_length}"
            )
        elif self.too_long == "truncate":
            cut = ids[-room:] if self._tokenizer.truncation_side == "left" else ids[:room]
            prepared.add(index, {0: cut}, hypothesis)
            prepared.truncated.append(index)
        elif self.too_long == "reject":
            prepared.errors[index] = pair_too_long(
                f"the premise has {len(ids)} tokens where {room} fit beside the hypothesis, and too_long is reject"
            )
        else:
            try:
                windows = split_windows(premise, memo.offsets, room, memo.count)
            except PairTooLong as error:
                prepared.errors[index] = pair_too_long(str(error))
            else:
                # Equal windows are asked once: their scores would differ in the last bits and break ties at random.
                first = {window: number for number, window in reversed(list(enumerate(windows)))}
                prepared.add(index, {number: memo.ids(window) for window, number in first.items()}, hypothesis)
                prepared.windows[index] = len(windows)

    def _sequences(self, texts: Sequence[tuple[Ids, Ids]]) -> Sequences:
        ids = [self._template.ids(*pair) for pair in texts]
        return Sequences(ids, [self._template.type_ids(*pair) for pair in texts] if self._types else None)

    def _logits(self, inputs: Mapping[str, torch.Tensor]) -> torch.Tensor:
        logits: torch.Tensor = self._network(**inputs).logits
        return logits[:, self._columns]


def _keep_decisive(
    scores: Scores, owner: NDArray[np.int64], number: NDArray[np.int64], probabilities: NDArray[np.float64]
) -> None:
    """Give each pair the triple of its window with the largest entailment or contradiction, the first on ties."""
    order = np.lexsort((number, -probabilities[:, :2].max(axis=1), owner))
    pairs, first = np.unique(owner[order], return_index=True)
    scores.values[pairs] = probabilities[order[first]]
    scores.window[pairs] = number[order[first]]
