"""What decides a claim under the method ``groups``, one row a claim and group: worked out once, for every policy."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import isnan, nan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from verifier.digests import sha256_text
from verifier.garbage import rare_collection
from verifier.records import Claim
from verifier.search.guards import Passage, contradiction_corroborated, negation_overlap
from verifier.search.premises import localize, premise
from verifier.sweep.decisions import Bools, Floats, Ints
from verifier.sweep.scores import Labels
from verifier.text.features import TextFeatures

LOWEST_THRESHOLD = 0.5
"""Below it no policy's threshold lies, so nothing that takes a score from there on is worked out."""
_BATCH = 4096
_UNKNOWN = (nan, nan)


class Reach(NamedTuple):
    """The largest groups and candidate lists that any of the policies asks for."""

    max_group_size: int
    group_candidate_limit: int


class _Row(NamedTuple):
    """One group of one claim, see ``GroupFacts``."""

    claim: int
    size: int
    rank: int
    order: int
    entailment: float
    contradiction: float
    localized: float
    admitted: bool
    corroborated: bool
    overlap: bool
    has_localized: bool
    pair: int
    localized_pair: int
    members: tuple[int, ...]


@dataclass(frozen=True)
class GroupFacts:
    """Groups of passages, by claim, then by size, then in the order in which they are asked; arrays of shape (rows,).

    Attributes:
        claim: position of the claim.
        size: passages of the group.
        rank: of its last candidate, from 0: the group is asked where ``group_candidate_limit`` is above it.
        order: its place among the claim's groups of this size by the ids of its passages, which breaks ties.
        entailment, contradiction, localized: NaN where no score was recorded; ``localized`` is the entailment of the
            recheck, known where one can be called for.
        admitted: whether the entailment guard lets it support the claim.
        corroborated: whether something besides the model speaks for its contradiction; known from 0.5 on.
        overlap: whether it negates the claim word for word.
        has_localized: whether the guard leaves something to be read again.
        pair, localized_pair: numbers of the pairs of texts, equal where a claim asks the same pair twice.
        members: positions of its passages in the claim's evidence.
    """

    claim: Ints
    size: NDArray[np.int8]
    rank: NDArray[np.int16]
    order: Ints
    entailment: Floats
    contradiction: Floats
    localized: Floats
    admitted: Bools
    corroborated: Bools
    overlap: Bools
    has_localized: Bools
    pair: Ints
    localized_pair: Ints
    members: Sequence[tuple[int, ...]]

    @classmethod
    def of(cls, claims: Sequence[Claim], labels: Labels, reach: Reach) -> "GroupFacts":
        """The facts of claims; groups of two and more only for claims whose single passages are all scored."""
        rows: list[_Row] = []
        with rare_collection():
            for start in range(0, len(claims), _BATCH):
                batch = claims[start : start + _BATCH]
                texts = (text for claim in batch for text in (claim.claim, *(item.text for item in claim.evidence)))
                features = TextFeatures.of(texts)
                for index, claim in enumerate(batch, start):
                    if claim.evidence and not claim.requires_complete_set:
                        rows += _ClaimGroups(index, claim, features, labels, len(rows)).rows(reach)
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(_Row._fields)
        kinds = (np.int64, np.int8, np.int16, np.int64, *(np.float64,) * 3, *(np.bool_,) * 4, np.int64, np.int64)
        arrays: list[Any] = [np.array(column, kind) for column, kind in zip(columns[:-1], kinds, strict=True)]
        return cls(*arrays, *columns[-1:])


class _ClaimGroups:
    """The groups of one claim; ``first_pair`` is a number from which on its pairs have theirs to themselves."""

    def __init__(
        self, index: int, claim: Claim, features: Mapping[str, TextFeatures], labels: Labels, first_row: int
    ) -> None:
        self.index = index
        self.features = features[claim.claim]
        self.passages = [Passage(self.features, item, features[item.text]) for item in claim.evidence]
        self.hypothesis = sha256_text(claim.claim)
        self.labels = labels
        self.negated = any(passage.negates_claim for passage in self.passages)
        self.first_pair = 2 * first_row  # a row has two pairs at the most
        self.pairs: dict[str, int] = {}

    def rows(self, reach: Reach) -> Iterator[_Row]:
        """Singles, then combinations of the best candidates that any policy keeps."""
        singles = list(self._of_size(1, [(place,) for place in range(len(self.passages))], {}))
        yield from singles
        if any(isnan(row.entailment) for row in singles):
            return
        ranks = self._ranks(singles, reach.group_candidate_limit)
        for size in range(2, reach.max_group_size + 1):
            yield from self._of_size(size, list(combinations(sorted(ranks), size)), ranks)

    def _ranks(self, singles: Sequence[_Row], limit: int) -> dict[int, int]:
        """Passage to its rank, of those that are kept."""
        ranked = sorted(
            range(len(singles)),
            key=lambda place: (
                -max(singles[place].entailment, singles[place].contradiction),
                self.passages[place].memory_id,
            ),
        )
        return {place: rank for rank, place in enumerate(ranked[:limit])}

    def _of_size(self, size: int, groups: Sequence[tuple[int, ...]], ranks: Mapping[int, int]) -> Iterator[_Row]:
        ids = [tuple(self.passages[place].memory_id for place in group) for group in groups]
        order = {place: rank for rank, place in enumerate(sorted(range(len(groups)), key=ids.__getitem__))}
        for place, members in enumerate(groups):
            rank = max(ranks[member] for member in members) if size > 1 else 0
            yield self._row(size, rank, order[place], members)

    def _row(self, size: int, rank: int, order: int, members: tuple[int, ...]) -> _Row:
        group = [self.passages[member] for member in members]
        key = sha256_text(premise([passage.evidence.text for passage in group]))
        entailment, contradiction = self.labels.get((key, self.hypothesis), _UNKNOWN)
        admitted = all(passage.may_support for passage in group)
        localized, local_key = nan, ""
        if entailment >= LOWEST_THRESHOLD and not admitted:
            text, _ = localize(group)
            local_key = sha256_text(text) if text else ""
            localized = self.labels.get((local_key, self.hypothesis), _UNKNOWN)[0]
        return _Row(
            claim=self.index,
            size=size,
            rank=rank,
            order=order,
            entailment=entailment,
            contradiction=contradiction,
            localized=localized,
            admitted=admitted,
            corroborated=contradiction >= LOWEST_THRESHOLD and contradiction_corroborated(self.features, group),
            overlap=self.negated and negation_overlap(group),
            has_localized=bool(local_key),
            pair=self._pair(key),
            localized_pair=self._pair(local_key) if local_key else -1,
            members=members,
        )

    def _pair(self, key: str) -> int:
        return self.first_pair + self.pairs.setdefault(key, len(self.pairs))
