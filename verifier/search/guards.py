"""Which scores may decide: modality, the entailment guard and the corroboration of a contradiction."""

from collections.abc import Sequence

from verifier.records import Evidence
from verifier.text.features import TextFeatures
from verifier.text.speech import Mode

_RETIRED = frozenset({"superseded", "deprecated", "archived"})
_CLAIM_NEEDS = {  # epistemic type of an item: modes of which the claim must have at least one
    "hypothetical": int(Mode.UNCERTAINTY | Mode.CONDITIONAL),
    "conditional": int(Mode.CONDITIONAL),
    "unverified": int(Mode.UNVERIFIED | Mode.UNCERTAINTY),
    "deprecated": int(Mode.NONE),
}
MIN_OVERLAP_TOKENS = 2


class Passage:
    """An evidence item with the features of its text."""

    def __init__(self, evidence: Evidence, features: TextFeatures) -> None:
        self.evidence = evidence
        self.memory_id = str(evidence.memory_id)
        self.features = features


def types_allow(claim: TextFeatures, evidence: Evidence) -> bool:
    """Whether lifecycle and epistemic type let this item decide a claim of these modes."""
    if evidence.lifecycle_state in _RETIRED:
        return False
    needed = _CLAIM_NEEDS.get(evidence.epistemic_type or "")
    return needed is None or bool(claim.modes & needed)


def may_support(claim: TextFeatures, passage: Passage) -> bool:
    """The entailment guard: modality preserved and, for a claim without a negated clause, none in the passage."""
    if not modality_preserved(claim, (passage,)):
        return False
    return claim.has_negated_clause or not passage.features.has_negated_clause


def overlaps_negation(claim: TextFeatures, passage: Passage) -> bool:
    """Whether a negated clause of an allowed item holds every token of a claim that is not itself negated.

    A claim of two tokens needs a clause of exactly those two; a claim of fewer is never refuted this way.
    """
    if claim.has_negated_clause or not passage.features.has_negated_clause:
        return False
    tokens = claim.tokens
    if len(tokens) < MIN_OVERLAP_TOKENS:
        return False
    exact = len(tokens) == MIN_OVERLAP_TOKENS
    clauses = passage.features.negated_clause_tokens
    held = any(tokens == clause if exact else tokens <= clause for clause in clauses)
    return held and types_allow(claim, passage.evidence)


def modality_preserved(claim: TextFeatures, group: Sequence[Passage]) -> bool:
    """Whether every mode of the group's texts stands in the claim and every item's types allow it."""
    return all(types_allow(claim, item.evidence) and not item.features.modes & ~claim.modes for item in group)


def contradiction_corroborated(claim: TextFeatures, group: Sequence[Passage]) -> bool:
    """Whether something besides the model speaks for a contradiction.

    Modality must be preserved; then a correction cue in the claim, incompatible values of one kind, or a
    negation overlap will do.
    """
    if not modality_preserved(claim, group):
        return False
    if claim.has_correction_cue:
        return True
    return values_disagree(claim, group) or any(overlaps_negation(claim, passage) for passage in group)


def values_disagree(claim: TextFeatures, group: Sequence[Passage]) -> bool:
    """Whether claim and group both name values of one kind (numbers, weekdays, months), but not the same set."""
    for kind in ("numbers", "weekdays", "months"):
        claimed: frozenset[str] = getattr(claim, kind)
        if claimed:
            shown: frozenset[str] = frozenset().union(*(getattr(passage.features, kind) for passage in group))
            if shown and shown != claimed:
                return True
    return False
