"""Synthetic claims with passages of realistic lengths, in the words of the demo corpus."""

import random
from collections.abc import Sequence
from math import log

from verifier.bench.corpora import demo_lines, texts_of

Pairs = Sequence[tuple[str, str]]

DISTRIBUTION = "one to five passages a claim, their words log-normal: median 100, sigma 0.6, cut to 12 to 240"
_MEDIAN, _SIGMA, _FEWEST, _MOST = 100, 0.6, 12, 240


def synthetic_claims(count: int, seed: int = 0) -> list[Pairs]:
    """The (premise, hypothesis) pairs of each claim, no two alike.

    Lengths are drawn as ``DISTRIBUTION`` says; the longest pairs stay below the 512 tokens of the models.
    """
    rng = random.Random(seed)
    lines = demo_lines()
    texts, hypotheses = texts_of(lines), [line["claim"] for line in lines]
    claims: list[Pairs] = []
    for number in range(count):
        hypothesis = rng.choice(hypotheses)
        passages = [_passage(rng, texts, f"Entry {number}.{item}:") for item in range(rng.randint(1, 5))]
        claims.append([(passage, hypothesis) for passage in passages])
    return claims


def _passage(rng: random.Random, texts: Sequence[str], start: str) -> str:
    size = min(max(round(rng.lognormvariate(log(_MEDIAN), _SIGMA)), _FEWEST), _MOST)
    words = start.split()
    while len(words) < size:
        words += rng.choice(texts).split()
    return " ".join(words[:size])
