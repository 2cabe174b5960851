"""Synthetic drafts with their evidence plans, and unit vectors for their texts."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier.fusion.records import Draft, DraftClaim, PlanSpan

DIMENSION = 384  # of all-MiniLM-L6-v2
CLAIMS = 8  # of a draft

_LEXICON = 30_000  # words, drawn by Zipf's law
_SPAN_WORDS, _CLAIM_WORDS = (20, 80), (8, 20)
_NUMBERS = ("{}", "{},500", "{}.5", "2026-03-{}", "{} March 2026")
_ENDINGS = (*[""] * 10, ",", ".")  # what follows a word
_CONSONANTS = "b c d f g h j k l m n p r s t v w z br ch cl dr fl gr pl pr sh sp st th tr".split()
_VOWELS = "a e i o u ai ea ou".split()


@dataclass(frozen=True)
class Workload:
    """Drafts, and a unit vector for each of their texts, float32 of shape (``DIMENSION``,)."""

    drafts: Sequence[Draft]
    vectors: dict[str, NDArray[np.float32]]


def workload(spans_of_drafts: Sequence[int], seed: int = 0) -> Workload:
    """One draft of ``CLAIMS`` claims for each number of spans in its plan.

    A span has 20 to 80 words of a lexicon with Zipf's law, of twelve one is a number. A claim is a stretch of 8 to 20
    words of one span, with a quarter of them replaced in every second claim; its cosine with that span lies between
    0.3 and 1, and it cites one span, in most cases that one. Spans of a plan have cosines of about 0.35.
    """
    rng = np.random.default_rng(seed)
    lexicon = _lexicon(rng)
    drafts, vectors = [], dict[str, NDArray[np.float32]]()
    for number, count in enumerate(spans_of_drafts):
        spans = _texts(rng, lexicon, rng.integers(*_SPAN_WORDS, count, endpoint=True))
        sources = rng.integers(count, size=CLAIMS)
        claims = _claims(rng, lexicon, [spans[source] for source in sources.tolist()])
        near = _unit(0.75 * _unit(rng.normal(size=DIMENSION)) + _unit(rng.normal(size=(count, DIMENSION))))
        share = rng.uniform(0.3, 1, (CLAIMS, 1))
        own = share * near[sources] + np.sqrt(1 - share**2) * _unit(rng.normal(size=(CLAIMS, DIMENSION)))
        draft = _draft(f"draft-{number}", claims, spans, np.where(rng.random(CLAIMS) < 0.8, sources, 0).tolist())
        drafts.append(draft)
        vectors.update(zip((span.text for span in draft.spans), near.astype(np.float32), strict=True))
        vectors.update(zip((claim.text for claim in draft.claims), _unit(own).astype(np.float32), strict=True))
    return Workload(drafts, vectors)


def _lexicon(rng: np.random.Generator) -> NDArray[Any]:
    """Distinct words of two to eight letters or so, the shortest first."""
    syllables = [consonant + vowel for consonant in _CONSONANTS for vowel in _VOWELS]
    shuffled = [syllables[index] for index in rng.permutation(len(syllables))]
    longer = (first + second for first in shuffled for second in shuffled)
    return np.array([*shuffled, *islice(longer, _LEXICON - len(shuffled))], object)


def _words(rng: np.random.Generator, lexicon: NDArray[Any], count: int) -> list[str]:
    ranks = np.exp(rng.uniform(0, np.log(len(lexicon)), count)).astype(np.int64)  # a density of one over the rank
    words = lexicon[np.minimum(ranks, len(lexicon)) - 1].tolist()
    for place in np.flatnonzero(rng.random(count) < 1 / 12).tolist():
        words[place] = _NUMBERS[rng.integers(len(_NUMBERS))].format(rng.integers(10, 32))
    return [
        word + _ENDINGS[ending] for word, ending in zip(words, rng.integers(len(_ENDINGS), size=count), strict=True)
    ]


def _texts(rng: np.random.Generator, lexicon: NDArray[Any], sizes: NDArray[np.int64]) -> list[list[str]]:
    words = iter(_words(rng, lexicon, int(sizes.sum())))
    return [list(islice(words, size)) for size in sizes.tolist()]


def _claims(rng: np.random.Generator, lexicon: NDArray[Any], sources: Sequence[list[str]]) -> list[list[str]]:
    claims = []
    for number, source in enumerate(sources):
        size = int(rng.integers(*_CLAIM_WORDS, endpoint=True))
        start = int(rng.integers(max(1, len(source) - size)))
        claim = source[start : start + size]
        if number % 2:
            places = rng.integers(len(claim), size=len(claim) // 4).tolist()
            for place, word in zip(places, _words(rng, lexicon, len(places)), strict=True):
                claim[place] = word
        claims.append(claim)
    return claims


def _draft(name: str, claims: Sequence[list[str]], spans: Sequence[list[str]], cited: Sequence[int]) -> Draft:
    text, made = "", []
    for words, span in zip(claims, cited, strict=True):
        start, claim = len(text), " ".join(words)
        text += f"{claim} "
        made.append(DraftClaim(claim, (start, start + len(claim)), (f"[S{span + 1}]",)))
    plan = [PlanSpan(f"p{number}", " ".join(words)) for number, words in enumerate(spans, 1)]
    return Draft(name, text, tuple(made), tuple(plan))


def _unit(vectors: NDArray[Any]) -> NDArray[Any]:
    unit: NDArray[Any] = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    return unit
