"""The one machine behind every local grounding family: documents cut to fit, prompts scored, windows put together.

A family is a subclass of ``GroundingScorer`` that says what it asks (``prompt``) and, where it is no sequence
classification with two labels, how its network is loaded and which logits are the answer.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from inspect import signature
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoConfig, AutoModelForSequenceClassification

from verifier.errors import ConfigurationError, PairTooLong
from verifier.protocol import PairError, Part, Scores
from verifier.scorers.base import AGGREGATIONS, NOT_FINITE, raise_first
from verifier.scorers.engine import Sequences, TokenEngine, prepared_ahead
from verifier.scorers.loading import (
    TooLong,
    check_settings,
    length_limit,
    load,
    load_tokenizer,
    load_weights,
    pinned,
    resolve_device,
    resolve_dtype,
    warn_unpinned,
)
from verifier.scorers.sizing import Sizer, UnloadedSizer, forward_flops
from verifier.scorers.tokenization import Prompt, PromptMemo, TokenMemo, pair_too_long
from verifier.text.packing import pack_lines, pack_sentences, pack_words
from verifier.text.windows import split_windows

PACKINGS = ("sentences", "minicheck", "factcg", "hhem")
_MINICHECK_LIMIT = {"words": 500, "tokens": 400}
_FACTCG_WORDS = 550


@dataclass(eq=False, repr=False)
class GroundingScorer:
    """Support of premises (documents) for hypotheses (claims) from one model.

    Args:
        model: name on a hub, or a directory.
        revision: commit of the hub's model; None warns and records what was loaded. For a directory the recorded
            revision is the sha256 of its weights.
        device: ``auto``, ``cpu``, ``cuda``, ``cuda:1`` …
        dtype: ``auto`` (float32 on a CPU, bfloat16 on a GPU), ``float32``, ``bfloat16`` or ``float16``.
        token_budget: the most tokens of one batch, padding included; None is the engine's choice.
        packing: how every document is cut before it is read: ``sentences`` (not at all while it fits), or a
            published rule: ``minicheck``, ``factcg``, ``hhem`` (see ``verifier.text.packing``).
        too_long: for a chunk that still does not fit: ``window`` cuts it between sentences, then between words;
            ``truncate`` does what the tokenizer's ``truncation="only_first"`` does, which for a prompt of one string
            cuts its end, claim included, as the published protocols do; ``reject`` gives the pair no score.
        aggregation: the ``max``, ``min`` or ``mean`` over a document's windows.
        max_length: tokens of one prompt, special tokens included; None is the model's own limit.
        allow_cpu_fallback: run on the CPU, with a warning, where the GPU asked for is not there.

    Attributes:
        model, revision, dtype: what was loaded, as it stands in results.
        engine: runs the batches; counts tokens, padding and seconds.
        seconds_tokenizing: time spent so far; it overlaps the engine's in long calls.

    Raises:
        ConfigurationError: the model cannot be loaded, has other labels, or an argument does not fit it.
    """

    model: str
    revision: str | None = None
    device: str = "auto"
    dtype: str = "auto"
    token_budget: int | None = None
    packing: str = "sentences"
    too_long: TooLong = "window"
    aggregation: str = "max"
    max_length: int | None = None
    allow_cpu_fallback: bool = False

    minicheck_unit: ClassVar[str] = "tokens"
    """What ``packing=minicheck`` counts: 400 ``tokens`` of the tokenizer or 500 ``words`` a chunk."""

    def __post_init__(self) -> None:
        asked = self.revision
        self._limit = self._read()
        device = resolve_device(self.device, self.allow_cpu_fallback)
        self.dtype = resolve_dtype(self.dtype, device)
        self._network: Any = self._load().to(device)
        warn_unpinned(self.model, asked, str(self.revision))
        pads = self._tokenizer.pad_token_id or 0, int(self._tokenizer.pad_token_type_id)
        self.engine = TokenEngine(self._logits, device, self.token_budget, *pads)
        self.seconds_tokenizing = 0.0

    @classmethod
    def identify(cls, model: str, revision: str | None = None, **settings: Any) -> dict[str, str]:
        """Model and resolved revision without loading weights; raises what the constructor would."""
        return cls._unloaded(model, revision, **settings)._identity()

    @classmethod
    def sizer(cls, model: str, revision: str | None = None, **settings: Any) -> Sizer:
        """Counts what the scorer would read, without its weights."""
        unloaded = cls._unloaded(model, revision, **settings)
        return UnloadedSizer(unloaded, forward_flops(unloaded._config))

    @classmethod
    def _unloaded(cls, model: str, revision: str | None, **settings: Any) -> Self:
        """A scorer that has read everything but its weights."""
        bound = signature(cls).bind(model, revision, **settings)
        bound.apply_defaults()
        unloaded = cls.__new__(cls)
        vars(unloaded).update(bound.arguments)
        unloaded._limit = unloaded._read()
        unloaded.seconds_tokenizing = 0.0
        return unloaded

    def prompt(self, document: str, claim: str) -> Prompt:
        """What the model is asked: one string, or a pair for the tokenizer to join."""
        raise NotImplementedError

    def _source(self) -> tuple[str, str | None]:
        """Model and revision that the tokenizer and the configuration come from."""
        return self.model, self.revision

    def _check(self, config: Any) -> None:
        """Raise ConfigurationError for a configuration of another kind of model."""
        if config.num_labels != 2:
            raise ConfigurationError(f"the model {self.model} has {config.num_labels} labels, expected 2")

    def _load(self) -> Any:
        """The network in evaluation mode."""
        return load_weights(AutoModelForSequenceClassification.from_pretrained, self.model, self.revision, self.dtype)

    def _logits(self, inputs: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Logits of shape (batch, columns); the softmax of the last column is the support."""
        logits: torch.Tensor = self._network(**inputs).logits
        return logits

    def _identity(self) -> dict[str, str]:
        return {"model": self.model, "revision": str(self.revision)}

    def _eos(self) -> str:
        """The tokenizer's end-of-text token, which some prompts hold; ConfigurationError where it has none."""
        if self._tokenizer.eos_token is None:
            raise ConfigurationError(f"the tokenizer of {self.model} has no end-of-text token, which the prompt needs")
        return str(self._tokenizer.eos_token)

    def _read(self) -> int:
        """Check the settings, read everything but the weights; the most tokens of a prompt."""
        check_settings(vars(self))
        for name, known in (("packing", PACKINGS), ("aggregation", tuple(AGGREGATIONS))):
            if vars(self)[name] not in known:
                raise ConfigurationError(f"{name} is {vars(self)[name]!r}: use one of {', '.join(known)}")
        self.revision = pinned(self.model, self.revision)
        self._config = load(AutoConfig.from_pretrained, *self._source())
        self._check(self._config)
        self._tokenizer = load_tokenizer(*self._source())
        pair = isinstance(self.prompt("", ""), tuple)
        self._with_types = pair and "token_type_ids" in self._tokenizer.model_input_names
        return length_limit(self._tokenizer, self._config, self.max_length)

    def score_pairs(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Support in [0, 1] of each (premise, hypothesis); 0.0 where either is blank, without asking the model.

        Raises PairTooLong where a pair does not fit the model, VerificationError where the model fails.
        """
        scores = self.score_detailed(pairs)
        raise_first(scores.errors)
        values: list[float] = scores.values.tolist()
        return values

    def score_detailed(self, pairs: Sequence[tuple[str, str]]) -> Scores:
        """Like ``score_pairs``, with windows, parts, cuts and errors per pair; a pair with an error has NaN.

        Raises VerificationError where the device runs out of memory with a single input.
        """
        backend = self._tokenizer.backend_tokenizer
        call = _Call(PromptMemo(backend), TokenMemo(backend))
        firsts, places, logits = list[int](), list[NDArray[np.int64]](), list[torch.Tensor]()

        def inputs() -> Iterator[Sequences]:
            for first, sequences in prepared_ahead(pairs, lambda chunk: self._prepare(call, pairs, chunk)):
                firsts.append(first)
                yield sequences

        for chunk, items, output in self.engine.run(inputs()):
            places.append(firsts[chunk] + items)
            logits.append(output)
        support = np.full(len(call.prompts), np.nan)
        if logits:
            support[np.concatenate(places)] = self.engine.to_numpy(logits)[:, -1]
        return call.scores(len(pairs), support.tolist(), self.aggregation)

    def _prepare(
        self, call: "_Call", pairs: Sequence[tuple[str, str]], chunk: NDArray[np.int64]
    ) -> tuple[int, Sequences]:
        """The prompts of a chunk of pairs that are new in this call, and how many were before."""
        started = time.perf_counter()
        first = len(call.prompts)
        pieces: dict[int, list[str]] = {}
        for index in chunk.tolist():
            document, claim = pairs[index]
            if document.strip() and claim.strip():
                with call.rejecting(index):
                    pieces[index] = self._pieces(call, document, claim)
        call.memo.add([self.prompt(piece, pairs[index][1]) for index, of in pieces.items() for piece in of])
        for index, of_pair in pieces.items():
            with call.rejecting(index):
                prompts = [prompt for piece in of_pair for prompt in self._fitted(call, piece, pairs[index][1])]
                call.windows[index] = [call.ask(prompt) for prompt in prompts]
        new = call.prompts[first:]
        types = [call.memo.types(prompt) for prompt in new] if self._with_types else None
        self.seconds_tokenizing += time.perf_counter() - started
        return first, Sequences([call.memo.ids(prompt) for prompt in new], types)

    def _pieces(self, call: "_Call", document: str, claim: str) -> list[str]:
        """The document as the packing cuts it, whatever fits the model."""
        if self.packing == "sentences":
            return [document]
        if self.packing == "hhem":
            normal = " ".join(document.split())
            if len(call.memo.ids(self.prompt(normal, claim))) <= self._limit:
                return [normal]
            return pack_words(normal, call.texts.offsets, *self._room(call, claim))
        if document not in call.chunks:
            call.chunks[document] = self._chunks(call, document)
        return call.chunks[document]

    def _chunks(self, call: "_Call", document: str) -> list[str]:
        if self.packing == "factcg":
            return pack_sentences(document, _FACTCG_WORDS)
        count = call.texts.count if self.minicheck_unit == "tokens" else lambda text: len(text.split())
        return pack_lines(document, _MINICHECK_LIMIT[self.minicheck_unit], count)

    def _fitted(self, call: "_Call", piece: str, claim: str) -> list[Prompt]:
        """The prompts of a piece of a document: one where it fits, else what ``too_long`` makes of it."""
        whole = self.prompt(piece, claim)
        tokens = len(call.memo.ids(whole))
        if tokens <= self._limit:
            return [whole]
        count, room = self._room(call, claim)
        if self.too_long == "reject":
            raise PairTooLong(f"the prompt has {tokens} tokens where {self._limit} fit, and too_long is reject")
        if self.too_long == "truncate":
            call.memo.cut(whole, self._limit, self._tokenizer.truncation_side)
            call.cut.add(whole)
            return [whole]
        return [self.prompt(window, claim) for window in split_windows(piece, call.texts.offsets, room, count)]

    def _room(self, call: "_Call", claim: str) -> tuple[Callable[[str], int], int]:
        """How to count the tokens that a text adds to the claim's prompt, and how many may be added."""
        used = len(call.memo.ids(self.prompt("", claim)))
        if used >= self._limit:
            raise PairTooLong(f"the prompt has {used} tokens without a premise, where {self._limit} fit")
        return lambda text: len(call.memo.ids(self.prompt(text, claim))) - used, self._limit - used


@dataclass
class _Call:
    """What one call has prepared so far. Distinct prompts are asked once: equal windows must tie exactly."""

    memo: PromptMemo
    texts: TokenMemo
    prompts: list[Prompt] = field(default_factory=list)
    places: dict[Prompt, int] = field(default_factory=dict)
    windows: dict[int, list[int]] = field(default_factory=dict)
    chunks: dict[str, list[str]] = field(default_factory=dict)
    cut: set[Prompt] = field(default_factory=set)
    errors: dict[int, PairError] = field(default_factory=dict)

    def ask(self, prompt: Prompt) -> int:
        """The place of a prompt among those that the model is asked."""
        if prompt not in self.places:
            self.places[prompt] = len(self.prompts)
            self.prompts.append(prompt)
        return self.places[prompt]

    @contextmanager
    def rejecting(self, index: int) -> Iterator[None]:
        """Turn PairTooLong into the error of a pair."""
        try:
            yield
        except PairTooLong as error:
            self.errors[index] = pair_too_long(str(error))

    def scores(self, n: int, support: Sequence[float], aggregation: str) -> Scores:
        """The scores of n pairs from the support at each place; a pair that was not asked and has no error gets 0."""
        scores, errors, parts = Scores.whole(np.zeros(n)), dict(self.errors), dict[int, tuple[Part, ...]]()
        for index, places in self.windows.items():
            each = [support[place] for place in places]
            scores.windows[index] = len(each)
            scores.truncated[index] = any(self.prompts[place] in self.cut for place in places)
            if not np.isfinite(each).all():
                errors[index] = NOT_FINITE
                continue
            scores.values[index] = AGGREGATIONS[aggregation](each)
            if len(each) > 1:
                scores.window[index] = 0 if aggregation == "mean" else each.index(scores.values[index])
                parts[index] = tuple(Part(None, window, len(each), value) for window, value in enumerate(each))
        scores.values[list(errors)] = np.nan
        return replace(scores, errors=errors, parts=parts)
