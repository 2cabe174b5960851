"""A registration: everything that an assay depends on, written down with its digest before anything is scored."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import pydantic
from pydantic import BaseModel, ConfigDict, Field, JsonValue, field_validator, model_validator

from verifier.assays.gates import Bound, check_gates
from verifier.assays.methods import built_policy
from verifier.digests import canonical_json, sha256_json, sha256_text
from verifier.errors import ConfigurationError
from verifier.records import Text

Form = Literal["authored", "wice", "wice_subclaims", "ragtruth", "aggrefact", "fever"]
Sha256 = str
SHA256_SUFFIX = ".sha256"


class Part(BaseModel):
    """What all parts of a registration have in common: no unknown field, no NaN, nothing changes."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class CohortFile(Part):
    """A file of a cohort: where it was found, and the sha256 of its bytes."""

    path: Text
    sha256: str = Field(pattern="^[0-9a-f]{64}$")


class Shape(Part):
    """What a cohort must hold: rows of its files (None: not counted), claims, and claims of each label.

    Labels are expected statuses; of the WiCE forms they are the labels of the data set.
    """

    rows: int | None = None
    claims: int
    labels: dict[str, int]


class Sampler(Part):
    """A deterministic sample: in each category and label the ``per_stratum`` claims that come first by digest.

    The digest is the sha256 of ``seed``, NUL, ``split``, NUL and the claim's id. ``exclude_observed`` leaves out
    claims that an earlier assay has observed, before anything is drawn.
    """

    seed: Text
    split: Text
    per_stratum: int = Field(ge=1)
    exclude_observed: bool = True


class Cohort(Part):
    """The claims of an assay.

    Attributes:
        name: as people call it.
        form: which loader reads it, see ``verifier.assays.cohorts``.
        files: its files by role, for instance ``claims``.
        shape: what it must hold.
        options: what its loader can be told, for instance ``split`` of RAGTruth.
        sampler: how it was drawn; None is all claims.
        selected: the ids that were drawn.
    """

    name: Text
    form: Form
    files: dict[str, CohortFile] = Field(min_length=1)
    shape: Shape
    options: dict[str, str] = {}
    sampler: Sampler | None = None
    selected: tuple[str, ...] | None = None

    @model_validator(mode="after")
    def _drawn(self) -> "Cohort":
        if (self.sampler is None) != (self.selected is None):
            raise ValueError("a sampler and the ids that it has selected go together")
        return self

    def digest(self) -> str:
        """sha256 of what it is, wherever its files lie."""
        content = self.model_dump(mode="json") | {"files": self.digests()}
        return sha256_json(content)

    def content_digest(self) -> str:
        """sha256 of what says which claims it has, with which labels; names and samplers do not count."""
        names = sorted(self.selected) if self.selected is not None else None
        return sha256_json({"form": self.form, "files": self.digests(), "options": self.options, "selected": names})

    def digests(self) -> dict[str, str]:
        """The sha256 of each file, by role."""
        return {role: file.sha256 for role, file in self.files.items()}


class Scorer(Part):
    """The scorer: model, revision as resolved, further digests of ``identify``, and settings that change scores."""

    model: Text
    revision: Text
    identity: dict[str, str] = {}
    settings: dict[str, JsonValue] = {}


class InputLimit(Part):
    """The longest input that is allowed: claim and premise together, in ``characters``, ``words`` or ``tokens``."""

    unit: Literal["characters", "words", "tokens"]
    maximum: int = Field(ge=1)


class Calibration(Part):
    """What must hold on another cohort before a sealed one is opened.

    ``chooses`` names the fields of the policy that the calibration decides, for instance ``threshold``.
    """

    cohort: Cohort
    gates: dict[str, Bound]
    chooses: tuple[str, ...] = ()

    @field_validator("gates")
    @classmethod
    def _known_gates(cls, gates: dict[str, Bound]) -> dict[str, Bound]:
        check_gates(gates)
        return gates


class Registration(Part):
    """A registered assay; its digest is the sha256 of its file.

    Attributes:
        registered_at: time in UTC, ISO 8601.
        policy: every field of the method's policy.
        protocol: whatever else is to be on record, as JSON.
        input_limit: a longer input ends a run before any prediction.
        sealed: the cohort may not be looked at before ``calibration`` has passed and an unlock is recorded.
        observed: some of the cohort's claims had been observed when this was registered, ``observed_by`` what.
        ledger_head: digest of the last entry of the ledger at that time.
    """

    kind: Literal["claim-verifier-assay-registration"] = "claim-verifier-assay-registration"
    schema_version: Literal[1] = 1
    name: Text
    purpose: Text
    registered_at: Text
    cohort: Cohort
    method: Text
    policy: dict[str, JsonValue]
    scorer: Scorer
    protocol: dict[str, JsonValue] = {}
    input_limit: InputLimit | None = None
    gates: dict[str, Bound]
    calibration: Calibration | None = None
    sealed: bool = False
    observed: bool = False
    observed_by: tuple[str, ...] = ()
    ledger_head: str | None = None

    @field_validator("gates")
    @classmethod
    def _known_gates(cls, gates: dict[str, Bound]) -> dict[str, Bound]:
        check_gates(gates)
        return gates

    @model_validator(mode="after")
    def _consistent(self) -> "Registration":
        policy = built_policy(self.method, self.policy)
        if policy.model_dump(mode="json") != self.policy:
            raise ValueError("the policy lacks fields: all of them are part of a registration")
        if policy.model != self.scorer.model:
            raise ValueError(f"the policy's model is {policy.model} and the scorer's is {self.scorer.model}")
        unknown = set(self.calibration.chooses if self.calibration else ()) - set(self.policy)
        if unknown:
            raise ValueError(f"calibration.chooses names {min(unknown)}, which is no field of the policy")
        if self.sealed and self.calibration is None:
            raise ValueError("a sealed cohort needs a calibration that can open it")
        return self

    def text(self) -> str:
        """The canonical text, one line of JSON."""
        return canonical_json(self.model_dump(mode="json")) + "\n"

    def digest(self) -> str:
        """The sha256 of the canonical text."""
        return sha256_text(self.text())


def write_registration(registration: Registration, path: Path) -> str:
    """Write a registration, and beside it its sha256 in the form of sha256sum; return the sha256.

    Raises ConfigurationError where it cannot be written, and where the file is there already, because a registration
    is never rewritten.
    """
    digest = registration.digest()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(registration.text())
        _digest_file(path).write_text(f"{digest}  {path.name}\n", encoding="utf-8")
    except FileExistsError as error:
        raise ConfigurationError(f"{path} is there already: a registration is never rewritten, use another") from error
    except OSError as error:
        with suppress(OSError):
            path.unlink()  # without its digest it is not written
        raise ConfigurationError(f"the registration {path} cannot be written: {error}") from error
    return digest


def remove_registration(path: Path) -> None:
    """Take back a file that was just written, with its sha256."""
    path.unlink()
    _digest_file(path).unlink()


def read_registration(path: Path) -> Registration:
    """A registration in our own form; ConfigurationError where it is none or not in its canonical text."""
    try:
        text = path.read_text(encoding="utf-8")
        registration = Registration.model_validate_json(text)
        canonical = registration.text()
    except pydantic.ValidationError as error:
        raise ConfigurationError(f"{path} is no registration: {first_problem(error)}") from error
    except (OSError, ValueError) as error:  # ValueError: no UTF-8, or a number that JSON does not have
        raise ConfigurationError(f"{path} cannot be read as a registration: {error}") from error
    if canonical != text:
        raise ConfigurationError(f"{path} is not as it was registered: its text is not the canonical one")
    return registration


def _digest_file(path: Path) -> Path:
    return path.with_name(path.name + SHA256_SUFFIX)


def first_problem(error: pydantic.ValidationError) -> str:
    """The first problem of a validation, in one line."""
    first: Mapping[str, Any] = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    message = str(first["msg"]).removeprefix("Value error, ")
    return f"{where}: {message}" if where else message
