"""How the texts of an evidence group become one premise (SPEC, "Premises")."""

from collections.abc import Sequence

from verifier.search.guards import Passage, types_allow
from verifier.text.features import TextFeatures


def premise(texts: Sequence[str]) -> str:
    """One text as it is; several one a line, marked ``[E1]``, ``[E2]`` … in order."""
    if len(texts) == 1:
        return texts[0]
    return "\n".join(f"[E{number}] {text}" for number, text in enumerate(texts, start=1))


def localize(claim: TextFeatures, group: Sequence[Passage]) -> tuple[str, tuple[tuple[int, ...], ...]]:
    """The premise of the segments that may support the claim, and their numbers passage by passage.

    The premise is empty where nothing is left.
    """
    numbers = []
    texts = []
    for passage in group:
        kept = _supporting_segments(claim, passage)
        numbers.append(tuple(number for number, _ in kept))
        if kept:
            texts.append("\n".join(text for _, text in kept))
    return (premise(texts) if texts else ""), tuple(numbers)


def _supporting_segments(claim: TextFeatures, passage: Passage) -> list[tuple[int, str]]:
    """The numbered segments that pass the entailment guard."""
    if not types_allow(claim, passage.evidence):
        return []
    return passage.features.segments_without(~claim.modes, negation=not claim.has_negated_clause)
