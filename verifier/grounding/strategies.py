"""What a scorer reads of a claim's evidence: one generator a kind of premise.

Each yields the premises of a round, is sent their support, and returns the support of the hypothesis with the
evidence that gave it.
"""

from collections.abc import Callable, Generator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from verifier.grounding.lattice import POLICIES
from verifier.grounding.policy import GroundingPolicy
from verifier.grounding.premises import joined_premise
from verifier.records import Claim, Evidence
from verifier.search.premises import premise
from verifier.text.packing import pack_sentences
from verifier.text.segments import segment_spans

_CHUNK_WORDS, _CHUNKS_KEPT = 550, 2


class Ask(NamedTuple):
    """A premise to be scored: what it is made of, the references behind it, and its text."""

    kind: str
    references: tuple[str, ...]
    premise: str


class Found(NamedTuple):
    """The support of a hypothesis in [0, 1], and the memory_ids of the evidence that gave it."""

    support: float
    memory_ids: tuple[str, ...]


Rounds = Generator[list[Ask], Sequence[float], Found]
Strategy = Callable[[Claim, GroundingPolicy], Rounds]


def joined(claim: Claim, policy: GroundingPolicy) -> Rounds:
    """All evidence as one premise."""
    text = joined_premise(claim, " " if policy.joint == "space" else "\n")
    scores = yield [Ask("joined", _references(claim.evidence), text)]
    return Found(scores[0], _ids(claim.evidence))


def each(claim: Claim, policy: GroundingPolicy) -> Rounds:
    """Every passage alone; the one with most support counts, the first on ties."""
    scores = yield [Ask("single", (item.reference,), item.text) for item in claim.evidence]
    best = int(np.argmax(scores))
    return Found(scores[best], _ids(claim.evidence[best : best + 1]))


def groups(claim: Claim, policy: GroundingPolicy) -> Rounds:
    """Passages alone, then combinations of the best candidates; the first size with a group that passes decides.

    Candidates are ranked by their support alone, ties by memory_id. Of one size the most support counts, then the
    smallest tuple of ids; where no size passes, the best group of all.
    """
    singles: Sequence[float] = ()
    best: Found | None = None
    for size in range(1, policy.max_group_size + 1):
        candidates = claim.evidence if size == 1 else _candidates(claim.evidence, singles, policy.group_candidate_limit)
        sets = list(combinations(candidates, size))
        if not sets:
            break
        kind = "single" if size == 1 else "group"
        scores = yield [Ask(kind, _references(items), premise([item.text for item in items])) for items in sets]
        singles = singles or scores
        found = [Found(score, _ids(items)) for score, items in zip(scores, sets, strict=True)]
        top = min(found, key=lambda one: (-one.support, one.memory_ids))
        best = top if best is None or top.support > best.support else best
        if policy.passes(top.support):
            return top
    assert best is not None  # a claim without evidence is not searched
    return best


def lattice(claim: Claim, policy: GroundingPolicy) -> Rounds:
    """Single segments and the joined set in both orders, combined by ``policy.lattice`` (SPEC, "Evidence lattice").

    The evidence is packed into chunks; the best two stay, the first on ties, go back to the order of the document
    and are cut into segments.
    """
    references = _references(claim.evidence)
    chunks = pack_sentences(joined_premise(claim), _CHUNK_WORDS)
    kept = list(range(len(chunks)))
    if len(chunks) > _CHUNKS_KEPT:
        scores = yield [Ask("chunk", references, chunk) for chunk in chunks]
        kept = sorted(sorted(kept, key=lambda index: (-scores[index], index))[:_CHUNKS_KEPT])
    segments = [chunks[index][start:end] for index in kept for start, end in segment_spans(chunks[index])]
    both = [Ask("joined", references, "\n".join(segments)), Ask("reversed", references, "\n".join(segments[::-1]))]
    scores = yield [*(Ask("segment", references, segment) for segment in segments), *both]
    single, ordered, reversed_ = (np.asarray(value) for value in (max(scores[:-2]), scores[-2], scores[-1]))
    return Found(float(POLICIES[policy.lattice](single, ordered, reversed_)), _ids(claim.evidence))


STRATEGIES: dict[str, Strategy] = {"joined": joined, "each": each, "groups": groups, "lattice": lattice}


def _candidates(evidence: Sequence[Evidence], support: Sequence[float], limit: int) -> list[Evidence]:
    """The passages with most support, in the caller's order."""
    ranked = sorted(range(len(evidence)), key=lambda index: (-support[index], str(evidence[index].memory_id)))
    return [evidence[index] for index in sorted(ranked[:limit])]


def _references(evidence: Sequence[Evidence]) -> tuple[str, ...]:
    return tuple(item.reference for item in evidence)


def _ids(evidence: Sequence[Evidence]) -> tuple[str, ...]:
    return tuple(str(item.memory_id) for item in evidence)
