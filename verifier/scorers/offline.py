"""The embedded default three-label scorer: a heuristic over MiniLM cosines and words, no download needed.

It is not an entailment model. It reads a premise as segments and asks: how much of the claim's word weight do
the best segments hold, how close are they in embedding space, and does a segment that says nearly the same
thing differ in a number, a weekday, a month or its polarity? It cannot see who did what to whom, synonyms
beyond what the cosine gives, or arithmetic. README gives its measured quality.
"""

import math
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier.fusion import fuse
from verifier.protocol import Scores
from verifier.scorers.loading import parse_device, weights_digest
from verifier.scorers.offline_features import TextFeatures, features, premise_segments, word_weight

MODEL = "offline/minilm-coverage-heuristic"
FORMULA_VERSION = 2

# Tuned on the WiCE dev split and a few examples of our own.
BETA = 0.5  # weight of the cosine in the strength cos^BETA · coverage^(1 - BETA)
SLOPE, MIDPOINT = 10.0, 0.55  # logistic map of a strength to a probability: 0.8 at 0.689, 0.99 at 1
MAX_SEGMENTS = 3  # segments that may carry a claim together
MIN_GAIN = 0.05  # share of the claim's weight that a further segment must add
MIN_COSINE = 0.2  # and how close to the claim it must be
MIN_OVERLAP = 0.6  # share of the claim's weight that a segment must hold to disagree with it
GATED = 0.2  # the most a strength can be when a number or a name of the claim is missing
FLOOR = 0.02  # probability of a label that nothing speaks for

_CONTENT_WEIGHT = 0.3  # lighter words do not place a claim inside a segment
_CUE_REACH = 4  # words before the shared ones in which a negator still counts: "it is not true that …"


def _revision(weights: str) -> str:
    return f"{weights}+formula-{FORMULA_VERSION}"


class OfflineScorer:
    """A heuristic three-label scorer that needs no download; the module's text says what it cannot do.

    With x = cos^0.5 · coverage^0.5 of the best up to three segments that do not disagree with the claim,
    entailment is logistic(10 (x - 0.55)); x is capped at 0.2 when a number, weekday, month or name of the claim
    stands in no such segment. With y = the same of the strongest segment that holds most of the claim but
    disagrees in a number, weekday, month or polarity, contradiction is logistic(10 (y - 0.55)). Neutral is the
    rest. Coverage is Σ weight over the claim's words that the segments hold / Σ weight over the claim's words;
    a weight is an IDF read off the embedder's vocabulary, whose order is that of word frequency, because a lone
    passage has no plan of spans to count documents in.

    Args:
        device: where MiniLM runs: a torch device or ``auto``.
        cache_size: distinct segments and claims kept between calls (about 6 KB each).

    Attributes:
        model: its name, which says that it is a heuristic.
        revision: sha256 of the MiniLM weights and the version of the formula.
        dtype: ``float32``.
    """

    dtype = "float32"

    def __init__(self, device: str = "auto", cache_size: int = 20_000) -> None:
        self.model = MODEL
        # Here, not above: embedders take their loading from this package.
        from verifier.embedders import TransformerEmbedder

        self._embedder = TransformerEmbedder(device=device)
        self._ranks = self._embedder.vocabulary()
        self.revision = _revision(self._embedder.revision)
        self.cache_size = cache_size
        self._cache: OrderedDict[str, TextFeatures] = OrderedDict()

    @classmethod
    def identify(cls, device: str = "auto", **_: Any) -> dict[str, str]:
        """Model and revision without loading the embedder; ConfigurationError where its package is missing."""
        from verifier.embedders import minilm_directory

        parse_device(device)
        return {"model": MODEL, "revision": _revision(weights_digest(str(minilm_directory())))}

    def score(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        """Probabilities of (premise, hypothesis) pairs, float64 of shape (n, 3).

        Columns are entailment, contradiction and neutral. A row is the same within 1e-5 whatever it is scored
        with.
        """
        cut = {premise: premise_segments(premise) for premise in dict.fromkeys(premise for premise, _ in pairs)}
        texts = self._read([claim for _, claim in pairs] + [piece for pieces in cut.values() for piece in pieces])
        rows = [self._row(texts[claim], [texts[piece] for piece in cut[premise]]) for premise, claim in pairs]
        return np.array(rows, dtype=np.float64).reshape(len(pairs), 3)

    def score_detailed(self, pairs: Sequence[tuple[str, str]]) -> Scores:
        """The scores of ``score``; every premise is read uncut."""
        return Scores.whole(self.score(pairs))

    def _read(self, wanted: Iterable[str]) -> dict[str, TextFeatures]:
        distinct = list(dict.fromkeys(wanted))
        missing = [text for text in distinct if text not in self._cache]
        vectors = self._embedder.embed(missing)
        self._cache.update((text, features(text, vector)) for text, vector in zip(missing, vectors, strict=True))
        # Evicted after the call's texts are gathered: one call may hold more of them than the cache.
        texts = {text: self._cache[text] for text in distinct}
        for text in distinct:
            self._cache.move_to_end(text)
        while len(self._cache) > self.cache_size:
            self._cache.popitem(last=False)
        return texts

    def _row(self, claim: TextFeatures, pieces: Sequence[TextFeatures]) -> tuple[float, float, float]:
        weights = {stem: word_weight(word, self._ranks) for stem, (word, _) in claim.words.items()}
        total = sum(weights.values())
        if not pieces or total <= 0:
            return FLOOR, FLOOR, 1 - 2 * FLOOR
        # Rounded, so that the last bits, which depend on the batch, reach no decision below.
        cosines = [round(float(value), 6) for value in np.stack([piece.vector for piece in pieces]) @ claim.vector]
        overlaps = [_overlap(weights, claim.stems & piece.stems) for piece in pieces]
        against = [
            overlap >= MIN_OVERLAP and _disagrees(claim, piece, weights)
            for piece, overlap in zip(pieces, overlaps, strict=True)
        ]
        agreeing = [index for index, disagreeing in enumerate(against) if not disagreeing]
        contradiction = max(
            (fuse(cosines[index], overlaps[index], BETA) for index, flag in enumerate(against) if flag), default=0.0
        )
        entailment = self._support(claim, pieces, agreeing, cosines, overlaps, weights)
        return _distribution(entailment, contradiction)

    def _support(
        self,
        claim: TextFeatures,
        pieces: Sequence[TextFeatures],
        agreeing: Sequence[int],
        cosines: Sequence[float],
        overlaps: Sequence[float],
        weights: Mapping[str, float],
    ) -> float:
        """The strength x of the class's text, in [0, 1]."""
        if not agreeing:
            return 0.0
        chosen = [max(agreeing, key=lambda index: (fuse(cosines[index], overlaps[index], BETA), cosines[index]))]
        held = claim.stems & pieces[chosen[0]].stems
        near = [index for index in agreeing if cosines[index] >= MIN_COSINE]
        while len(chosen) < MAX_SEGMENTS and near:
            gains = {index: _overlap(weights, (claim.stems & pieces[index].stems) - held) for index in near}
            best = max(near, key=lambda index: (gains[index], cosines[index]))
            if gains[best] < MIN_GAIN:
                break
            chosen.append(best)
            held |= claim.stems & pieces[best].stems
        mean = np.mean([pieces[index].vector for index in chosen], axis=0)
        cosine = max(cosines[chosen[0]], round(float(mean @ claim.vector / max(np.linalg.norm(mean), 1e-9)), 6))
        strength = fuse(cosine, _overlap(weights, held), BETA)
        return min(strength, GATED) if _missing(claim, [pieces[index] for index in agreeing]) else strength


def _overlap(weights: Mapping[str, float], shared: Iterable[str]) -> float:
    # Sorted: sets have no order that two processes share, and sums depend on it.
    return min(1.0, sum(weights[stem] for stem in sorted(shared)) / sum(weights.values()))


def _missing(claim: TextFeatures, pieces: Sequence[TextFeatures]) -> bool:
    """Whether a number, weekday, month or name of the claim stands in none of the pieces."""
    numbers, months, dated, weekdays, stems = (
        frozenset[str]().union(*(getattr(piece, name) for piece in pieces))
        for name in ("numbers", "months", "dated", "weekdays", "stems")
    )
    kinds = (
        (claim.numbers, numbers | (claim.dated & months)),
        (claim.months, months | dated),
        (claim.weekdays, weekdays),
        (claim.names, stems),
    )
    return not all(asked <= known for asked, known in kinds)


def _disagrees(claim: TextFeatures, piece: TextFeatures, weights: Mapping[str, float]) -> bool:
    """Whether a segment that says nearly the same as the claim differs in a value or in polarity."""
    kinds = (
        (claim.numbers, piece.numbers, piece.numbers | (claim.dated & piece.months)),
        (claim.months, piece.months, piece.months | piece.dated),
        (claim.weekdays, piece.weekdays, piece.weekdays),
    )
    if any(asked - known and told - asked for asked, told, known in kinds):
        return True
    return bool(claim.negators) != _negated(claim, piece, weights)


def _negated(claim: TextFeatures, piece: TextFeatures, weights: Mapping[str, float]) -> bool:
    """Whether a negator stands among the words that the segment shares with the claim, or close before them."""
    shared = sorted(piece.words[stem][1] for stem in claim.stems & piece.stems if weights[stem] >= _CONTENT_WEIGHT)
    if not shared:
        return False
    first, last = shared[0], shared[-1]
    return any(
        first <= position <= last
        or (first - _CUE_REACH <= position < first and piece.clauses[position] == piece.clauses[first])
        for position in piece.negators
    )


def _distribution(support: float, refutation: float) -> tuple[float, float, float]:
    """Strengths in [0, 1] as probabilities of entailment, contradiction and neutral."""
    entailment, contradiction = (_probability(strength) for strength in (support, refutation))
    excess = max(1.0, entailment + contradiction)
    entailment, contradiction = entailment / excess, contradiction / excess
    return entailment, contradiction, max(0.0, 1 - entailment - contradiction)


def _probability(strength: float) -> float:
    return max(FLOOR, 1 / (1 + math.exp(-SLOPE * (strength - MIDPOINT)))) if strength > 0 else FLOOR
