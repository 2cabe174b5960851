"""Which scores may decide: modality, the entailment guard and the corroboration of a contradiction."""

from collections.abc import Sequence

from verifier.records import Evidence
from verifier.text.features import TextFeatures
from verifier.text.lazy import lazy
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
    """An evidence item read for one claim: what its types and its text allow it to decide."""

    def __init__(self, claim: TextFeatures, evidence: Evidence, text: TextFeatures) -> None:
        self.claim = claim
        self.evidence = evidence
        self.text = text
        self.memory_id = str(evidence.memory_id)

    @lazy
    def types_allow(self) -> bool:
        """Whether lifecycle and epistemic type let this item decide a claim of these modes."""
        if self.evidence.lifecycle_state in _RETIRED:
            return False
        needed = _CLAIM_NEEDS.get(self.evidence.epistemic_type or "")
        return needed is None or bool(self.claim.modes & needed)

    @lazy
    def modality_preserved(self) -> bool:
        """Whether the types allow it and every speech-act mode of the text stands in the claim."""
        return self.types_allow and not self.text.modes & ~self.claim.modes

    @lazy
    def may_support(self) -> bool:
        """The entailment guard: modality preserved and, for a claim without a negated clause, none in the text."""
        return self.modality_preserved and (self.claim.has_negated_clause or not self.text.has_negated_clause)

    @lazy
    def negates_claim(self) -> bool:
        """Whether a negated clause of an allowed item holds every token of a claim that is not itself negated.

        A claim of two tokens needs a clause of exactly those two; a claim of fewer is never refuted this way.
        """
        claim = self.claim
        if claim.has_negated_clause or not self.text.has_negated_clause or len(claim.tokens) < MIN_OVERLAP_TOKENS:
            return False
        exact = len(claim.tokens) == MIN_OVERLAP_TOKENS
        clauses = self.text.negated_clause_tokens
        held = any(claim.tokens == clause if exact else claim.tokens <= clause for clause in clauses)
        return held and self.types_allow

    def supporting_segments(self) -> list[tuple[int, str]]:
        """The segments, numbered from one, that pass the entailment guard by themselves."""
        if not self.types_allow:
            return []
        return self.text.segments_without(~self.claim.modes, negation=not self.claim.has_negated_clause)


def negation_overlap(group: Sequence[Passage]) -> bool:
    """Whether a passage of the group negates the claim word for word while the group preserves its modality."""
    return any(passage.negates_claim for passage in group) and all(passage.modality_preserved for passage in group)


def contradiction_corroborated(claim: TextFeatures, group: Sequence[Passage]) -> bool:
    """Whether something besides the model speaks for a contradiction.

    Modality must be preserved; then a correction cue in the claim, values of one kind that are not the same, or
    a negation overlap will do.
    """
    if not all(passage.modality_preserved for passage in group):
        return False
    return claim.has_correction_cue or values_disagree(claim, group) or negation_overlap(group)


def values_disagree(claim: TextFeatures, group: Sequence[Passage]) -> bool:
    """Whether claim and group both name values of one kind (numbers, weekdays, months), but not the same set."""
    for kind in ("numbers", "weekdays", "months"):
        claimed: frozenset[str] = getattr(claim, kind)
        if claimed:
            shown: frozenset[str] = frozenset().union(*(getattr(passage.text, kind) for passage in group))
            if shown and shown != claimed:
                return True
    return False
