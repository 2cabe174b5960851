"""Support as the cosine of two embeddings: how near a passage is to a claim, and not whether it entails it."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from verifier.errors import PairTooLong
from verifier.fusion.scoring import DECIMALS
from verifier.fusion.vectors import RememberingEmbedder
from verifier.protocol import PairError, Part, Scores
from verifier.scorers.base import raise_first
from verifier.scorers.loading import (
    TooLong,
    check_settings,
    pinned,
    warn_unpinned,
)
from verifier.scorers.tokenization import TokenMemo, pair_too_long
from verifier.text.windows import split_windows

_CHUNK = 8192  # pairs whose vectors are held side by side


class CosineScorer:
    """Support of premises for hypotheses: the cosine of their embeddings, negative ones being 0.

    Each distinct text is embedded once. A blank premise or hypothesis has support 0, without asking the model.

    Args:
        model: name on a hub, or a directory; None is the embedded all-MiniLM-L6-v2.
        revision: commit of the hub's model; None warns and records what was loaded. For a directory the recorded
            revision is the sha256 of its weights.
        device: ``auto``, ``cpu``, ``cuda``, ``cuda:1`` …
        too_long: for a premise that does not fit: ``window`` cuts it between sentences and the nearest window counts,
            the first on ties; ``truncate`` cuts its end; ``reject`` gives the pair no score. A hypothesis that does
            not fit is cut under ``truncate``, else the pair has no score.
        max_length: word pieces of one text, special ones included (256 for all-MiniLM-L6-v2).
        token_budget: padded word pieces a batch; None fits the device.
        cache_size: distinct texts whose vectors are kept between calls (about 1.5 KB each).

    Attributes:
        model, revision: the embedder's, as they stand in results.
        dtype: ``float32``.

    Raises:
        ConfigurationError: the model cannot be loaded, or an argument does not fit it.
    """

    dtype = "float32"

    def __init__(
        self,
        model: str | None = None,
        revision: str | None = None,
        device: str = "auto",
        too_long: TooLong = "window",
        max_length: int = 256,
        token_budget: int | None = None,
        cache_size: int = 20_000,
    ) -> None:
        # Here, not above: embedders take their loading from this package.
        from verifier.embedders.transformer import TransformerEmbedder, reading

        check_settings({"device": device, "too_long": too_long, "token_budget": token_budget})
        source, resolved = _resolved(model, revision)
        self._too_long = too_long
        self._tokenizer, self._room = reading(source, resolved, max_length)
        embedder = TransformerEmbedder(model, resolved, device, max_length, token_budget)
        warn_unpinned(source, revision, resolved)
        self._embedder = RememberingEmbedder(embedder, cache_size)
        self.model, self.revision = self._embedder.model, self._embedder.revision

    @classmethod
    def identify(
        cls,
        model: str | None = None,
        revision: str | None = None,
        device: str = "auto",
        too_long: TooLong = "window",
        max_length: int = 256,
        token_budget: int | None = None,
        cache_size: int = 20_000,
    ) -> dict[str, str]:
        """Model and resolved revision without loading weights; raises what the constructor would."""
        from verifier.embedders.transformer import MINILM, reading

        check_settings({"device": device, "too_long": too_long, "token_budget": token_budget})
        source, resolved = _resolved(model, revision)
        reading(source, resolved, max_length)
        return {"model": MINILM if model is None else str(model), "revision": resolved}

    def score_pairs(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Support in [0, 1] of each (premise, hypothesis); PairTooLong where one does not fit."""
        scores = self.score_detailed(pairs)
        raise_first(scores.errors)
        values: list[float] = scores.values.tolist()
        return values

    def score_detailed(self, pairs: Sequence[tuple[str, str]]) -> Scores:
        """Like ``score_pairs``, with windows, parts, cuts and errors per pair; a pair with an error has NaN.

        A support is rounded to 12 places. It is the same within 1e-5 whatever it is scored with.
        """
        memo = TokenMemo(self._tokenizer.backend_tokenizer)
        memo.add([text for pair in pairs for text in pair])
        windows: dict[str, list[str]] = {}
        asked: list[tuple[str, str]] = []
        places: dict[int, slice] = {}
        errors: dict[int, PairError] = {}
        for index, (premise, hypothesis) in enumerate(pairs):
            if not premise.strip() or not hypothesis.strip():
                continue
            try:
                self._check_fits(memo, "hypothesis", hypothesis, self._too_long != "truncate")
                self._check_fits(memo, "premise", premise, self._too_long == "reject")
                if premise not in windows:
                    windows[premise] = self._windows(memo, premise)
            except PairTooLong as error:
                errors[index] = pair_too_long(str(error))
                continue
            places[index] = slice(len(asked), len(asked) + len(windows[premise]))
            asked += [(window, hypothesis) for window in windows[premise]]
        support = self._support(asked)
        scores, parts = Scores.whole(np.zeros(len(pairs))), dict[int, tuple[Part, ...]]()
        for index, place in places.items():
            each = support[place]
            best = each.index(max(each))
            scores.values[index], scores.window[index], scores.windows[index] = each[best], best, len(each)
            if self._too_long == "truncate":
                scores.truncated[index] = any(memo.count(text) > self._room for text in pairs[index])
            if len(each) > 1:
                parts[index] = tuple(Part(None, number, len(each), value) for number, value in enumerate(each))
        scores.values[list(errors)] = np.nan
        return replace(scores, errors=errors, parts=parts)

    def _check_fits(self, memo: TokenMemo, name: str, text: str, needed: bool) -> None:
        if needed and memo.count(text) > self._room:
            raise PairTooLong(f"the {name} has {memo.count(text)} word pieces where {self._room} fit")

    def _windows(self, memo: TokenMemo, premise: str) -> list[str]:
        """What is embedded of a premise; under ``truncate`` the embedder cuts it."""
        if self._too_long == "truncate":
            return [premise]
        return split_windows(premise, memo.offsets, self._room, memo.count)

    def _support(self, asked: Sequence[tuple[str, str]]) -> list[float]:
        """The clamped cosine of each pair of texts."""
        if not asked:
            return []
        place: dict[str, int] = {}
        rows = np.array([[place.setdefault(text, len(place)) for text in pair] for pair in asked])
        vectors = self._embedder.embed(list(place)).astype(np.float64)
        support: list[float] = []
        for start in range(0, len(rows), _CHUNK):
            one, two = rows[start : start + _CHUNK].T
            products = np.einsum("ij,ij->i", vectors[one], vectors[two])
            support += np.round(np.clip(products, 0, 1), DECIMALS).tolist()
        return support


def _resolved(model: str | None, revision: str | None) -> tuple[str, str]:
    """Where the model's files are, and what it is right now."""
    from verifier.embedders import minilm_directory

    source = str(minilm_directory()) if model is None else str(model)
    return source, pinned(source, revision)
