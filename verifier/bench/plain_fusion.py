"""The fusion matcher in plain Python, as one writes it at first: dictionaries, sets, a loop over pairs.

What the benchmark puts beside ``verifier.fusion``: the formulas of shared/seeds/fusion-matcher.txt and SPEC.md, written
down a second time with no line of that package. Nothing in it is slow on purpose: a text is read once, sums run inside
``sum``, weights are looked up once a claim.
"""

import math
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from operator import mul
from typing import NamedTuple

import regex

_BORDER = regex.compile(r"\b", regex.WORD | regex.VERSION1)
_ALPHANUMERIC = regex.compile(r"[\p{Alphabetic}\p{N}]")
_ATOM_BORDER = regex.compile("[-/:]")
_NUMBER = regex.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_MONTHS = dict(
    zip(
        "january february march april may june july august september october november december".split(),
        map(float, range(1, 13)),
        strict=True,
    )
)


class PlainText(NamedTuple):
    """A text that was read: its tokens with their counts, its numbers, its vector."""

    counts: Counter[str]
    numbers: set[float]
    vector: Sequence[float]


@dataclass(frozen=True)
class PlainPlan:
    """One draft with its evidence.

    Attributes:
        claims: in order.
        cited: of each claim, positions of the spans that it cites.
        spans: in order, all of the truth class.
    """

    claims: Sequence[PlainText]
    cited: Sequence[Sequence[int]]
    spans: Sequence[PlainText]


class PlainPair(NamedTuple):
    """A claim and a candidate: the span's position and the values of ``verifier.fusion.records.Candidate``."""

    span: int
    cosine: float
    lexical: float
    gate_tripped: bool
    score: float


class PlainVerdict(NamedTuple):
    """The verdict on a claim, its score, the position of its best span, and all candidates in plan order."""

    verdict: str
    score: float
    best: int
    pairs: list[PlainPair]


def read(text: str, vector: Sequence[float]) -> PlainText:
    """Read one text."""
    tokens = tokenize(text)
    return PlainText(Counter(tokens), {number for token in tokens for number in numbers_of(token)}, vector)


def tokenize(text: str) -> list[str]:
    """NFC, UAX 29 words, each character lower-cased on its own; words without an alphanumeric character are dropped."""
    # Lower-cased as a whole, which differs for a final capital sigma only.
    whole = unicodedata.normalize("NFC", text).replace("Σ", "σ").lower()
    return [piece for piece in _BORDER.split(whole) if piece.isalnum() or _ALPHANUMERIC.search(piece)]


def numbers_of(token: str) -> list[float]:
    """The numbers in a token."""
    if token in _MONTHS:
        return [_MONTHS[token]]
    if token.isalpha():
        return []
    pieces = (piece.replace(",", "") for piece in _ATOM_BORDER.split(token))
    return [float(piece) for piece in pieces if _NUMBER.fullmatch(piece)]


def match_plan(
    plan: PlainPlan,
    beta: float = 0.65,
    candidates_m: int = 8,
    cap: float = 0.2,
    supported: float = 0.75,
    partial: float = 0.5,
) -> list[PlainVerdict]:
    """One verdict a claim of the plan."""
    idf = plan_idf(plan.spans)
    unseen = math.log(1 + len(plan.spans))
    verdicts = []
    for claim, cited in zip(plan.claims, plan.cited, strict=True):
        cosines = [cosine(claim.vector, span.vector) for span in plan.spans]
        nearest = nlargest(candidates_m, range(len(cosines)), key=cosines.__getitem__)
        wanted = [(token, count, idf.get(token, unseen)) for token, count in claim.counts.items()]
        whole = sum(count * weight for _, count, weight in wanted)
        pairs = []
        for position in sorted({*nearest, *cited}):
            span = plan.spans[position]
            lexical = coverage(wanted, whole, span.counts)
            tripped = not claim.numbers <= span.numbers
            score = pair_score(cosines[position], lexical, beta, tripped, cap)
            pairs.append(PlainPair(position, cosines[position], lexical, tripped, score))
        best = max(pairs, key=lambda pair: pair.score)
        verdicts.append(PlainVerdict(band(best.score, supported, partial), best.score, best.span, pairs))
    return verdicts


def plan_idf(spans: Sequence[PlainText]) -> dict[str, float]:
    """The weight of every token of the plan."""
    frequency: Counter[str] = Counter()
    for span in spans:
        frequency.update(span.counts.keys())
    return {token: math.log(1 + len(spans) / count) for token, count in frequency.items()}


def cosine(one: Sequence[float], two: Sequence[float]) -> float:
    """The product of two unit vectors."""
    product: float = sum(map(mul, one, two))
    return min(max(product, -1.0), 1.0)


def coverage(wanted: Sequence[tuple[str, int, float]], whole: float, held: Mapping[str, int]) -> float:
    """The share of the claim's weight that the span holds; ``wanted`` are its tokens, counts and weights."""
    if not whole:
        return 0.0
    return sum(min(count, held[token]) * weight for token, count, weight in wanted if token in held) / whole


def pair_score(near: float, lexical: float, beta: float, tripped: bool, cap: float) -> float:
    """clamp01(cosine)^beta · coverage^(1 - beta), capped where a number of the claim is missing."""
    near = max(near, 0.0)
    score: float
    if beta == 0:
        score = lexical
    elif beta == 1:
        score = near
    else:
        score = near**beta * lexical ** (1 - beta)
    return min(score, cap) if tripped else score


def band(score: float, supported: float, partial: float) -> str:
    """The name of the score's band."""
    if score >= supported:
        return "supported"
    return "partial" if score >= partial else "unsupported"
