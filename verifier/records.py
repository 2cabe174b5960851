"""The types that cross module borders: claims and evidence in, verifications and scored pairs out."""

import uuid
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

import pydantic
from pydantic import BaseModel, ConfigDict, Field, Strict, StringConstraints, TypeAdapter

from verifier.digests import canonical_json, sha256_json, sha256_text
from verifier.errors import InputError

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]

SourceType = Literal["user_stated", "user_demonstrated", "system_inferred", "external_document", "tool_output"]
EpistemicType = Literal["observed", "asserted", "inferred", "hypothetical", "conditional", "deprecated", "unverified"]
LifecycleState = Literal["tentative", "stable", "contested", "superseded", "deprecated", "archived"]

DEFAULT_MODEL = "cross-encoder/nli-deberta-v3-base"
DEFAULT_REVISION = "6c749ce3425cd33b46d187e45b92bbf96ee12ec7"
MEMORY_ID_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "claim-verifier:memory-id")


class Status(StrEnum):
    """What the evidence does to a claim."""

    SUPPORTED = "supported"
    REFUTED = "refuted"
    CONTESTED = "contested"
    INSUFFICIENT = "insufficient"
    INCOMPLETE = "incomplete"


class Basis(StrEnum):
    """What a decision rests on."""

    MODEL_ENTAILMENT = "model_entailment"
    LOCALIZED_MODEL_ENTAILMENT = "localized_model_entailment"
    MODEL_CONTRADICTION = "model_contradiction"
    EXPLICIT_NEGATION_OVERLAP = "explicit_negation_overlap"


class Limitation(StrEnum):
    """Why a verification says less than its scores seem to (a closed list)."""

    COMPLETE_SET = "complete_set_requires_structured_aggregation"
    ENTAILMENT = "uncorroborated_model_entailment"
    CONTRADICTION = "uncorroborated_model_contradiction"


_DATACLASS = ConfigDict(extra="forbid")


@pydantic.dataclasses.dataclass(frozen=True, config=_DATACLASS)
class Evidence:
    """One passage that a claim may rest on.

    ``reference`` and ``text`` are stripped and must not be empty. Types and times are optional provenance;
    an unknown enumeration value or field raises ``pydantic.ValidationError`` (a ``ValueError``).
    """

    reference: Text
    text: Text
    memory_id: uuid.UUID | None = None
    source_type: SourceType | None = None
    epistemic_type: EpistemicType | None = None
    lifecycle_state: LifecycleState | None = None
    event_time: datetime | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None


@pydantic.dataclasses.dataclass(frozen=True, config=_DATACLASS)
class Claim:
    """A declarative claim with the evidence it is checked against.

    An evidence item without a ``memory_id`` gets ``uuid5(MEMORY_ID_NAMESPACE, canonical JSON of
    [claim_id, reference])``, so the same input always has the same identities. ``label`` is the expected
    status where one is known; ``category`` and ``document_id`` only group reports and folds. ``subclaims`` are
    statements that the claim is made of, for methods that verify each of them.
    """

    claim_id: Text
    claim: Text
    evidence: tuple[Evidence, ...] = ()
    requires_complete_set: Annotated[bool, Strict()] = False
    label: str | None = None
    category: str | None = None
    document_id: str | None = None
    subclaims: tuple[Text, ...] = ()

    def __post_init__(self) -> None:
        if any(item.memory_id is None for item in self.evidence):
            identified = tuple(
                item if item.memory_id is not None else _identified(self.claim_id, item) for item in self.evidence
            )
            object.__setattr__(self, "evidence", identified)


def _identified(claim_id: str, item: Evidence) -> Evidence:
    return replace(item, memory_id=uuid.uuid5(MEMORY_ID_NAMESPACE, canonical_json([claim_id, item.reference])))


class VerificationPolicy(BaseModel):
    """How scores become decisions; every field is part of the configuration digest.

    Thresholds are model probabilities in [0.5, 1] and compare with ``>=``. ``batch_size`` is kept for the
    digest alone: how pairs are batched on a device is a scorer's setting. Unknown fields, NaN, blank names
    and values out of range raise ``pydantic.ValidationError`` (a ``ValueError``).
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    model: Text = DEFAULT_MODEL
    revision: Text = DEFAULT_REVISION
    entailment_threshold: float = Field(0.80, ge=0.5, le=1.0)
    contradiction_threshold: float = Field(0.80, ge=0.5, le=1.0)
    batch_size: int = Field(32, ge=1, le=256)
    max_evidence: int = Field(64, ge=1, le=256)
    max_group_size: int = Field(2, ge=1, le=3)
    group_candidate_limit: int = Field(8, ge=2, le=16)
    entailment_policy: Literal["speech_act_guarded", "model_only"] = "speech_act_guarded"
    refutation_policy: Literal["explicit_corroboration", "model_only"] = "explicit_corroboration"

    def digest(self) -> str:
        """The configuration sha256 of a record."""
        return sha256_json(self.model_dump(mode="json"))


@dataclass(frozen=True, slots=True)
class GroupScore:
    """The probabilities of a claim given one evidence group, references and ids in the caller's order."""

    references: tuple[str, ...]
    memory_ids: tuple[str, ...]
    entailment: float
    contradiction: float
    neutral: float


@dataclass(frozen=True, slots=True)
class LocalizedAssessment:
    """A second look at a group whose guard failed, with the guarded segments left out.

    ``included_segment_numbers`` has one tuple of one-based segment numbers a reference, empty for a dropped
    passage. Nothing left means no model call, no digest and no probabilities.
    """

    references: tuple[str, ...]
    memory_ids: tuple[str, ...]
    included_segment_numbers: tuple[tuple[int, ...], ...]
    premise_sha256: str | None = None
    model_called: bool = False
    entailment: float | None = None
    contradiction: float | None = None
    neutral: float | None = None


_FIELDS_ADDED = {  # schema version in which a field of the record first stands
    "supporting_basis": 2,
    "refuting_basis": 2,
    "localized_assessments": 3,
}
_BOUND_BY_RESULT = (
    "evaluation_id group_scores limitations localized_assessments refuting_basis refuting_group status"
    " supporting_basis supporting_group"
).split()


@dataclass(frozen=True, slots=True)
class Verification:
    """The complete record of one decision, digests included; ``to_dict`` is its JSON form."""

    claim: str
    status: Status
    model: str
    requested_revision: str
    resolved_revision: str | None
    model_called: bool
    configuration_sha256: str
    claim_sha256: str
    evidence_sha256: str
    evaluation_id: str = ""
    result_sha256: str = ""
    supporting_group: tuple[str, ...] = ()
    refuting_group: tuple[str, ...] = ()
    supporting_basis: Basis | None = None
    refuting_basis: Basis | None = None
    group_scores: tuple[GroupScore, ...] = ()
    localized_assessments: tuple[LocalizedAssessment, ...] = ()
    limitations: tuple[Limitation, ...] = ()
    schema_version: Literal[1, 2, 3] = 3

    def to_dict(self) -> dict[str, Any]:
        """The record as JSON values; fields that its schema version lacks are left out."""
        names = (name for name in self.__dataclass_fields__ if _FIELDS_ADDED.get(name, 1) <= self.schema_version)
        return {name: _plain(getattr(self, name)) for name in names}

    def computed_evaluation_id(self) -> str:
        """sha256 of what was asked: claim, configuration, evidence and (from schema 2) the schema version."""
        identity: dict[str, Any] = {
            "claim_sha256": self.claim_sha256,
            "configuration_sha256": self.configuration_sha256,
            "evidence_sha256": self.evidence_sha256,
        }
        if self.schema_version >= 2:
            identity["schema_version"] = self.schema_version
        return sha256_json(identity)

    def computed_result_sha256(self) -> str:
        """sha256 of what was answered, bound to the evaluation id."""
        bound = (name for name in _BOUND_BY_RESULT if _FIELDS_ADDED.get(name, 1) <= self.schema_version)
        return sha256_json({name: _plain(getattr(self, name)) for name in bound})


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [str(item) if isinstance(item, str) else _plain_score(item) for item in value]
    return value.value if isinstance(value, StrEnum) else value


def _plain_score(item: GroupScore | LocalizedAssessment) -> dict[str, Any]:
    """A score as JSON values; most of a record, so spelled out for speed."""
    plain: dict[str, Any] = {
        "references": list(item.references),
        "memory_ids": list(item.memory_ids),
        "entailment": item.entailment,
        "contradiction": item.contradiction,
        "neutral": item.neutral,
    }
    if isinstance(item, LocalizedAssessment):
        plain["included_segment_numbers"] = [list(numbers) for numbers in item.included_segment_numbers]
        plain["premise_sha256"] = item.premise_sha256
        plain["model_called"] = item.model_called
    return plain


def sealed(verification: Verification) -> Verification:
    """The same verification with its evaluation id and result digest filled in."""
    complete = copy(verification)
    # A record is frozen once its digests are in it; two ``replace`` would check and copy all fields again.
    object.__setattr__(complete, "evaluation_id", complete.computed_evaluation_id())
    object.__setattr__(complete, "result_sha256", complete.computed_result_sha256())
    return complete


_EVIDENCE = TypeAdapter(tuple[Evidence, ...])
_VERIFICATION = TypeAdapter(Verification)


def evidence_to_json(evidence: Sequence[Evidence]) -> list[dict[str, Any]]:
    """The evidence records as JSON values: all nine fields, null where absent, times as ISO strings."""
    dumped: list[dict[str, Any]] = _EVIDENCE.dump_python(tuple(evidence), mode="json")
    return dumped


def evidence_digest(evidence: Sequence[Evidence]) -> str:
    """The evidence sha256 of a record."""
    return sha256_json(evidence_to_json(evidence))


def claim_digest(claim: Claim) -> str:
    """The claim sha256 of a record: of the text itself."""
    return sha256_text(claim.claim)


def check_evidence(claim: Claim, max_evidence: int) -> None:
    """Raise InputError for more than ``max_evidence`` items, a repeated reference or a repeated memory_id."""
    if len(claim.evidence) > max_evidence:
        raise InputError(
            "too_much_evidence",
            f"claim {claim.claim_id!r} has {len(claim.evidence)} evidence items; policy.max_evidence is {max_evidence}",
        )
    for name, code in (("reference", "repeated_reference"), ("memory_id", "repeated_memory_id")):
        values = [getattr(item, name) for item in claim.evidence]
        if len(set(values)) < len(values):
            repeated = next(value for index, value in enumerate(values) if value in values[:index])
            raise InputError(code, f"claim {claim.claim_id!r} repeats the evidence {name} {str(repeated)!r}")


def read_verification(obj: Mapping[str, Any]) -> Verification:
    """Read a schema 1, 2 or 3 record from its JSON form; a malformed one raises ``pydantic.ValidationError``."""
    known = {name: value for name, value in obj.items() if name in Verification.__dataclass_fields__}
    return _VERIFICATION.validate_python(known)
