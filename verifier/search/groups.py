"""The method ``groups``: the smallest evidence group that supports or refutes each claim of a batch.

Rounds, all claims of the batch together: singles, then combinations of two and of three of the best
candidates, each followed by the localized recheck of groups whose entailment a guard held back. A claim
leaves at the first group size with a decision.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Literal, NamedTuple

from verifier.digests import sha256_text
from verifier.protocol import Outcome, Pair, PairError, Plan, ScoredPair, Scores
from verifier.records import (
    Basis,
    Claim,
    GroupScore,
    Limitation,
    LocalizedAssessment,
    Status,
    Verification,
    VerificationPolicy,
    check_evidence,
    claim_digest,
    evidence_digest,
    sealed,
)
from verifier.search.guards import Passage, contradiction_corroborated, negation_overlap
from verifier.search.premises import localize, premise
from verifier.text.features import TextFeatures
from verifier.text.lazy import lazy

Group = tuple[Passage, ...]
Candidate = tuple[float, tuple[str, ...], Basis]


class _ClaimSearch:
    """The state of one claim's search."""

    def __init__(self, claim: Claim, features: Mapping[str, TextFeatures]) -> None:
        self.claim = claim
        self.claim_sha256 = claim_digest(claim)
        self.features = features[claim.claim]
        self.passages = [Passage(self.features, item, features[item.text]) for item in claim.evidence]
        self.scores: list[GroupScore] = []
        self.localized: list[LocalizedAssessment] = []
        self.limitations: set[Limitation] = set()
        self.pairs: list[ScoredPair] = []
        self.supporting: Candidate | None = None
        self.refuting: Candidate | None = None
        self.error: PairError | None = None

    @property
    def open(self) -> bool:
        """Whether a further group size is to be tried."""
        return self.error is None and self.supporting is None and self.refuting is None

    @lazy
    def negates(self) -> bool:
        """Whether any passage negates the claim; where none does no group needs to be looked at."""
        return any(passage.negates_claim for passage in self.passages)

    def groups(self, size: int, candidate_limit: int) -> list[Group]:
        """The groups of ``size`` passages to score: every passage alone, or combinations of the best candidates."""
        if size == 1:
            return [(passage,) for passage in self.passages]
        ranked = sorted(
            range(len(self.passages)),
            key=lambda index: (
                -max(self.scores[index].entailment, self.scores[index].contradiction),
                self.passages[index].memory_id,
            ),
        )
        kept = sorted(ranked[:candidate_limit])
        return list(combinations([self.passages[index] for index in kept], size))


class _Question(NamedTuple):
    """A group put to the scorer, and the claim it is for."""

    search: _ClaimSearch
    group: Group
    pair: Pair
    segment_numbers: tuple[tuple[int, ...], ...] = ()


class EvidenceGroups:
    """The method ``groups``.

    ``revision`` is the scorer's resolved revision, which the records carry. Claims must have passed
    ``check_evidence``.
    """

    name = "groups"
    asks: Literal["labels", "support"] = "labels"
    policy_type = VerificationPolicy

    def __init__(self, policy: VerificationPolicy, revision: str) -> None:
        self.policy = policy
        self.revision = revision
        self._configuration_sha256 = policy.digest()

    def plan(self, claims: Sequence[Claim]) -> Plan:
        """Yield the pairs of each round, receive their scores, return one outcome a claim."""
        for claim in claims:
            check_evidence(claim, self.policy.max_evidence)
        features = TextFeatures.of(
            text for claim in claims for text in (claim.claim, *(item.text for item in claim.evidence))
        )
        searches = [_ClaimSearch(claim, features) for claim in claims]
        for size in range(1, self.policy.max_group_size + 1):
            questions = [
                _question(index, search, group, "single" if size == 1 else "group")
                for index, search in enumerate(searches)
                if search.open and not search.claim.requires_complete_set
                for group in search.groups(size, self.policy.group_candidate_limit)
            ]
            if not questions:
                continue
            scores = yield [question.pair for question in questions]
            rechecks = self._judge(questions, scores)
            asked = [recheck.pair for recheck in rechecks if recheck.pair.premise]
            self._judge_localized(rechecks, (yield asked) if asked else None)
        return [self._outcome(search) for search in searches]

    def _judge(self, questions: Sequence[_Question], scores: Scores) -> list[_Question]:
        """Take the scores of a round; return the localized rechecks that they call for."""
        rechecks = []
        rows, how = scores.values.tolist(), _how(scores)
        for index, question in enumerate(questions):
            search, group = question.search, question.group
            if _failed(question, scores, index):
                continue
            entailment, contradiction, neutral = rows[index]
            search.pairs.append(_scored(question, how[index], rows[index]))
            ids = tuple(passage.memory_id for passage in group)
            search.scores.append(GroupScore(question.pair.references, ids, entailment, contradiction, neutral))
            if entailment >= self.policy.entailment_threshold:
                if self._entailment_allowed(group):
                    search.supporting = _better(search.supporting, (entailment, ids, Basis.MODEL_ENTAILMENT))
                else:
                    rechecks.append(_localized_question(question))
            self._judge_contradiction(search, group, ids, contradiction)
        return rechecks

    def _entailment_allowed(self, group: Group) -> bool:
        return self.policy.entailment_policy == "model_only" or all(passage.may_support for passage in group)

    def _judge_contradiction(self, search: _ClaimSearch, group: Group, ids: tuple[str, ...], score: float) -> None:
        if score >= self.policy.contradiction_threshold:
            if self.policy.refutation_policy == "model_only" or contradiction_corroborated(search.features, group):
                search.refuting = _better(search.refuting, (score, ids, Basis.MODEL_CONTRADICTION))
                return
            search.limitations.add(Limitation.CONTRADICTION)
        if search.negates and negation_overlap(group):
            search.refuting = _better(search.refuting, (score, ids, Basis.EXPLICIT_NEGATION_OVERLAP))

    def _judge_localized(self, rechecks: Sequence[_Question], scores: Scores | None) -> None:
        """Take the second look at each held-back group; ``scores`` has those with a premise left, in order."""
        rows, how = (scores.values.tolist(), _how(scores)) if scores else ([], [])
        index = -1
        for recheck in rechecks:
            search = recheck.search
            if scores is None or not recheck.pair.premise:
                search.localized.append(_assessment(recheck))
                search.limitations.add(Limitation.ENTAILMENT)
                continue
            index += 1
            if _failed(recheck, scores, index):
                continue
            search.pairs.append(_scored(recheck, how[index], rows[index]))
            assessment = _assessment(recheck, rows[index])
            search.localized.append(assessment)
            entailment = rows[index][0]
            if entailment >= self.policy.entailment_threshold:
                candidate = (entailment, assessment.memory_ids, Basis.LOCALIZED_MODEL_ENTAILMENT)
                search.supporting = _better(search.supporting, candidate)
            else:
                search.limitations.add(Limitation.ENTAILMENT)

    def _outcome(self, search: _ClaimSearch) -> Outcome:
        pairs = tuple(search.pairs)
        if search.error is not None and search.error.outcome == "rejected":
            return Outcome(None, pairs, search.error)
        # A claim with a pair that has no score establishes nothing, whatever its other pairs say.
        supporting, refuting = (None, None) if search.error else (search.supporting, search.refuting)
        called = bool(search.scores)
        limitations = {Limitation.COMPLETE_SET} if search.claim.requires_complete_set else search.limitations
        verification = Verification(
            claim=search.claim.claim,
            status=_status(search.claim, supporting, refuting),
            model=self.policy.model,
            requested_revision=self.policy.revision,
            resolved_revision=self.revision if called else None,
            model_called=called,
            configuration_sha256=self._configuration_sha256,
            claim_sha256=search.claim_sha256,
            evidence_sha256=evidence_digest(search.claim.evidence),
            supporting_group=supporting[1] if supporting else (),
            refuting_group=refuting[1] if refuting else (),
            supporting_basis=supporting[2] if supporting else None,
            refuting_basis=refuting[2] if refuting else None,
            group_scores=tuple(search.scores),
            localized_assessments=tuple(search.localized),
            limitations=tuple(limitation for limitation in Limitation if limitation in limitations),
        )
        return Outcome(sealed(verification), pairs, search.error)


def _question(row: int, search: _ClaimSearch, group: Group, kind: str) -> _Question:
    references = tuple(passage.evidence.reference for passage in group)
    text = premise([passage.evidence.text for passage in group])
    return _Question(search, group, Pair(row, kind, references, text, search.claim.claim))


def _localized_question(question: _Question) -> _Question:
    text, numbers = localize(question.group)
    pair = question.pair._replace(kind="localized", premise=text)
    return question._replace(pair=pair, segment_numbers=numbers)


def _failed(question: _Question, scores: Scores, index: int) -> bool:
    error = scores.errors.get(index)
    if error is not None:
        question.search.error = error
    return error is not None


def _scored(question: _Question, how: tuple[int, int, bool], row: Sequence[float]) -> ScoredPair:
    pair = question.pair
    return ScoredPair(
        kind=pair.kind,
        references=pair.references,
        premise=pair.premise,
        hypothesis=pair.hypothesis,
        values={"entailment": row[0], "contradiction": row[1], "neutral": row[2]},
        window=how[0],
        windows=how[1],
        truncated=how[2],
    )


def _how(scores: Scores) -> list[tuple[int, int, bool]]:
    """The deciding window, the number of windows and whether it was cut, pair by pair."""
    return list(zip(scores.window.tolist(), scores.windows.tolist(), scores.truncated.tolist(), strict=True))


def _assessment(recheck: _Question, row: Sequence[float] | None = None) -> LocalizedAssessment:
    ids = tuple(passage.memory_id for passage in recheck.group)
    if row is None:
        return LocalizedAssessment(recheck.pair.references, ids, recheck.segment_numbers)
    digest = sha256_text(recheck.pair.premise)
    return LocalizedAssessment(recheck.pair.references, ids, recheck.segment_numbers, digest, True, *row)


def _better(best: Candidate | None, candidate: Candidate) -> Candidate:
    """The more probable of two candidates of one size; on a tie the smaller tuple of ids."""
    if best is None or (-candidate[0], candidate[1]) < (-best[0], best[1]):
        return candidate
    return best


def _status(claim: Claim, supporting: Candidate | None, refuting: Candidate | None) -> Status:
    if claim.requires_complete_set:
        return Status.INCOMPLETE
    if supporting and refuting:
        return Status.CONTESTED
    if supporting:
        return Status.SUPPORTED
    return Status.REFUTED if refuting else Status.INSUFFICIENT
