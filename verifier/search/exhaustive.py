"""The method ``groups`` with more pairs asked than it needs: all that any policy of a range would need."""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from verifier.errors import ConfigurationError
from verifier.protocol import Outcome, Pair, Plan, ScoredPair, Scores, scored_rows
from verifier.records import Claim, VerificationPolicy
from verifier.search.groups import EvidenceGroups
from verifier.search.guards import Passage, contradiction_corroborated, negation_overlap
from verifier.search.premises import localize, premise
from verifier.text.features import TextFeatures
from verifier.validation import built

_LOWEST, _HIGHEST = 0.5, 1.0  # thresholds of a policy lie between


@dataclass(frozen=True)
class SearchRange:
    """The policies whose pairs are asked beside those of the run's own: any thresholds, both guards on or off.

    Attributes:
        exhaustive: whether any are asked.
        max_group_size: up to this one, 1 to 3.
        group_candidate_limit: up to this one, 2 to 16.
    """

    exhaustive: bool = False
    max_group_size: int = 3
    group_candidate_limit: int = 16

    def __post_init__(self) -> None:
        for name, least, most in (("max_group_size", 1, 3), ("group_candidate_limit", 2, 16)):
            if not least <= getattr(self, name) <= most:
                raise ConfigurationError(
                    f"search.{name} is {getattr(self, name)}: a number from {least} to {most} expected"
                )


class ExhaustiveGroups(EvidenceGroups):
    """``EvidenceGroups``; where ``search`` says so it goes on to ask all that a policy of the range could need.

    The records are those of ``EvidenceGroups``: what is asked further stands in ``Outcome.pairs`` alone, where a sweep
    finds it. A further pair that has no score is left out, and costs the claim nothing.

    Args:
        policy, revision: see ``EvidenceGroups``.
        search: fields of ``SearchRange``.
    """

    def __init__(self, policy: VerificationPolicy, revision: str, search: Mapping[str, Any] | None = None) -> None:
        super().__init__(policy, revision)
        self.range = built(SearchRange, search or {}, "search")

    def plan(self, claims: Sequence[Claim]) -> Plan:
        """See ``verifier.protocol.Method``."""
        outcomes = yield from super().plan(claims)
        if self.range.exhaustive:
            return (yield from _explored(claims, outcomes, self.range))
        return outcomes


class _Exploration:
    """What was asked for one claim so far, and what any policy of the range could ask next."""

    def __init__(self, row: int, claim: Claim, outcome: Outcome, features: Mapping[str, TextFeatures]) -> None:
        self.row, self.claim, self.outcome = row, claim, outcome
        self.features = features[claim.claim]
        self.passages = [Passage(self.features, item, features[item.text]) for item in claim.evidence]
        self.values = {pair.premise: pair.values for pair in outcome.pairs if pair.member is None}
        self.further: list[ScoredPair] = []
        self.ranked: list[int] = list(range(len(claim.evidence)))

    def groups(self, size: int) -> list[tuple[Passage, ...]]:
        """The groups of one size among the candidates that are still of use."""
        return list(combinations([self.passages[place] for place in sorted(self.ranked)], size))

    def ask(self, group: Sequence[Passage], localized: bool, size: int) -> list[Pair]:
        """The pair of a group, or of its recheck where some policy could call for one; nothing that was asked."""
        text = localize(group)[0] if localized else premise([passage.evidence.text for passage in group])
        if not text or text in self.values or (localized and not self._may_be_rechecked(group)):
            return []
        references = tuple(passage.evidence.reference for passage in group)
        kind = "localized" if localized else "single" if size == 1 else "group"
        return [Pair(self.row, kind, references, text, self.claim.claim)]

    def narrow(self, size: int, limit: int) -> None:
        """Keep the candidates that a larger group can be made of under some policy that found nothing yet."""
        if size == 1:
            singles = [self._values([passage]) for passage in self.passages]
            if any(values is None for values in singles):
                self.ranked = []
                return
            best = [max(values["entailment"], values["contradiction"]) for values in singles if values is not None]
            self.ranked = sorted(self.ranked, key=lambda place: (-best[place], self.passages[place].memory_id))[:limit]
            if any(self._always_decides([passage]) for passage in self.passages):
                self.ranked = []
            return
        # A policy keeps the first candidates by rank: one that keeps a group that always decides looks no further.
        for last in range(size - 1, len(self.ranked)):
            earlier = combinations(self.ranked[:last], size - 1)
            if any(self._always_decides(self._in_order((*places, self.ranked[last]))) for places in earlier):
                self.ranked = self.ranked[:last]
                return

    def _in_order(self, places: Sequence[int]) -> list[Passage]:
        return [self.passages[place] for place in sorted(places)]

    def _values(self, group: Sequence[Passage]) -> Mapping[str, float] | None:
        return self.values.get(premise([passage.evidence.text for passage in group]))

    def _may_be_rechecked(self, group: Sequence[Passage]) -> bool:
        values = self._values(group)
        held_back = not all(passage.may_support for passage in group)
        return values is not None and values["entailment"] >= _LOWEST and held_back

    def _always_decides(self, group: Sequence[Passage]) -> bool:
        """Whether every policy of the range takes a decision from this group (some that do are not seen)."""
        values = self._values(group)
        if values is None:
            return False
        supports = values["entailment"] >= _HIGHEST and all(passage.may_support for passage in group)
        refutes = values["contradiction"] >= _HIGHEST and contradiction_corroborated(self.features, group)
        return supports or refutes or negation_overlap(group)


def _explored(
    claims: Sequence[Claim], outcomes: Sequence[Outcome], reach: SearchRange
) -> Generator[list[Pair], Scores, list[Outcome]]:
    """The outcomes with all further pairs; claims without a decision are left as they are."""
    texts = (text for claim in claims for text in (claim.claim, *(item.text for item in claim.evidence)))
    features = TextFeatures.of(texts)
    explorations = {
        row: _Exploration(row, claim, outcome, features)
        for row, (claim, outcome) in enumerate(zip(claims, outcomes, strict=True))
        if outcome.error is None and claim.evidence and not claim.requires_complete_set
    }
    for size in range(1, reach.max_group_size + 1):
        for localized in (False, True):
            asked = {
                (row, pair.premise): pair
                for row, one in explorations.items()
                for group in one.groups(size)
                for pair in one.ask(group, localized, size)
            }
            pairs = list(asked.values())
            if pairs:
                _take(explorations, pairs, (yield pairs))
        for one in explorations.values():
            one.narrow(size, reach.group_candidate_limit)
    return [
        replace(outcome, pairs=(*outcome.pairs, *explorations[row].further)) if row in explorations else outcome
        for row, outcome in enumerate(outcomes)
    ]


def _take(explorations: Mapping[int, _Exploration], pairs: Sequence[Pair], scores: Scores) -> None:
    for index, (pair, row) in enumerate(zip(pairs, scores.values.tolist(), strict=True)):
        if index not in scores.errors:
            one = explorations[pair.row]
            values = dict(zip(("entailment", "contradiction", "neutral"), row, strict=True))
            one.values[pair.premise] = values
            one.further += scored_rows(pair, values, scores, index)
