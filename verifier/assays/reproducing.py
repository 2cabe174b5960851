"""Reproducing a published assay from its recorded scores: our figures beside the published ones, line by line."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from verifier.assays.cases import CaseResult
from verifier.assays.cohorts.loading import checked_digest
from verifier.assays.compare import Comparison, compare
from verifier.assays.gates import GateTable, judge
from verifier.assays.ledger import read_ledger
from verifier.assays.methods import built_policy, in_process
from verifier.assays.older import schema1_cases
from verifier.assays.opening import open_cohort
from verifier.assays.public_forms import read_document, read_public_registration
from verifier.assays.registration import Part, Registration
from verifier.assays.results import flattened
from verifier.assays.running import in_order, observe
from verifier.assays.sealing import refuse_sealed
from verifier.assays.summary import summarize
from verifier.digests import sha256_json
from verifier.errors import ConfigurationError
from verifier.protocol import LABELS
from verifier.records import Claim
from verifier.scorers.recorded import RecordedFileScorer
from verifier.scorers.recorded_support_files import RecordedSupportFileScorer

_ABSENT = "(absent)"
_PER_CASE = ("status", "evaluation_id", "result_sha256")


class PublishedAssay(Part):
    """A published assay and its figures, one file of ``conf/assay``.

    Attributes:
        name: as people call it.
        registration: the published registration's file.
        registration_sha256: its published digest, None where none was published.
        scores: the recorded scores.
        claims: the data set's file, where the registration does not hold its cases.
        schema_version: of the published records.
        tolerance: how far apart two numbers that are not counts may be and still count as equal.
        figures: ``summary`` and ``quality_gates`` as published.
    """

    name: str
    registration: str
    registration_sha256: str | None = None
    scores: str
    claims: str | None = None
    schema_version: Literal[1, 3] = 3
    tolerance: float = Field(0.0, ge=0)
    figures: dict[str, Any]


@dataclass(frozen=True)
class Line:
    """One figure: published, ours, and whether they are equal (numbers within ``tolerance``, None: exactly)."""

    name: str
    published: Any
    ours: Any
    tolerance: float | None
    equal: bool


@dataclass(frozen=True)
class Reproduction:
    """What came of it.

    Attributes:
        lines: every figure, published and ours.
        gates: the registered gates, judged by our figures.
        cases: our cases; of schema-1 records as they were decided then.
        decided_by: method, model, revision and the fields of the policy.
        under_schema_3: of schema-1 records, those beside what they are decided as now; else None.
    """

    name: str
    lines: tuple[Line, ...]
    gates: GateTable
    cases: tuple[CaseResult, ...]
    decided_by: Mapping[str, Any]
    under_schema_3: Comparison | None = None

    @property
    def differences(self) -> tuple[Line, ...]:
        """The lines that are not equal."""
        return tuple(line for line in self.lines if not line.equal)

    @property
    def exit_status(self) -> int:
        """0 when every line is equal and every gate has passed, else 1."""
        return int(bool(self.differences) or not self.gates.passed)

    def to_dict(self) -> dict[str, Any]:
        """The reproduction as JSON values, cases left out."""
        return {
            "name": self.name,
            "lines": [asdict(line) for line in self.lines],
            "differences": len(self.differences),
            "gates": self.gates.model_dump(mode="json"),
            "exit_status": self.exit_status,
            "under_schema_3": self.under_schema_3.to_dict() if self.under_schema_3 else None,
        }


def reproduce(assay: PublishedAssay, ledger: Path) -> Reproduction:
    """Decide the cohort anew from the recorded scores and compare every published figure.

    ConfigurationError where the registration or the data set is not the published file; SealedCohort where the
    cohort is sealed. What was looked at is recorded in the ledger.
    """
    path = Path(assay.registration)
    given = [name for name in (assay.registration, assay.scores, assay.claims) if name is not None]
    for name in given:
        if not Path(name).is_file():
            raise ConfigurationError(f"{name} of the assay {assay.name} is no file: check assay.folder")
    refuse_sealed(given, ledger)
    digest = checked_digest(path, assay.registration_sha256, "assay.registration")
    registration = read_public_registration(path, Path(assay.claims) if assay.claims else None)
    entries = read_ledger(ledger)
    claims = open_cohort(registration.cohort, entries)
    now = _decided(registration, assay, claims)
    cases, older = now, None
    if registration.cohort.form == "authored" and assay.schema_version == 1:
        cases = schema1_cases(claims, _recorded(assay.scores), _configuration(path))
        older = compare(cases, now, assay.tolerance)
    observe(digest, registration.cohort.name, claims, ledger, entries)
    gates = judge(registration.gates, cases)
    lines = tuple(_lines(assay, registration, cases, gates))
    names = {"method": registration.method, **registration.scorer.model_dump(include={"model", "revision"})}
    decided_by = {**registration.policy, **names}
    return Reproduction(assay.name, lines, gates, tuple(cases), decided_by, older)


def compared(published: Mapping[str, Any], ours: Mapping[str, Any], tolerance: float) -> list[Line]:
    """A line for each published figure, and for each of ours that was not published."""
    names = [*published, *(name for name in ours if name not in published)]
    return [_line(name, published.get(name, _ABSENT), ours.get(name, _ABSENT), tolerance) for name in names]


def _lines(
    assay: PublishedAssay, registration: Registration, cases: Sequence[CaseResult], gates: GateTable
) -> list[Line]:
    figures = {
        "summary": summarize(registration.cohort.form, cases),
        "quality_gates": gates.model_dump(mode="json"),
    }
    lines = compared(_named(assay.figures), _named(figures), assay.tolerance)
    if registration.cohort.form != "authored":
        return lines
    recorded = _recorded(assay.scores)
    for case in cases:
        ours = case.model_dump(mode="json")
        published = recorded.get(case.case_id, {})
        lines += [
            _line(f"cases/{case.case_id}/{name}", published.get(name, _ABSENT), ours[name], assay.tolerance)
            for name in _PER_CASE
        ]
        lines.append(_line(f"cases/{case.case_id}/scores_sha256", _published_scores(published), _scores(case), 0.0))
    extra = recorded.keys() - {case.case_id for case in cases}
    return lines + [_line(f"cases/{name}/status", recorded[name].get("status"), _ABSENT, 0.0) for name in sorted(extra)]


def _named(figures: Mapping[str, Any]) -> dict[str, Any]:
    """Published or own figures by path, those of gates under ``gates/``."""
    names = {"quality_gates/results/": "gates/", "quality_gates/": "gates/"}
    return {
        next((short + path.removeprefix(long) for long, short in names.items() if path.startswith(long)), path): value
        for path, value in flattened(figures).items()
    }


def _line(name: str, published: Any, ours: Any, tolerance: float) -> Line:
    numbers = [type(value) in (int, float) for value in (published, ours)]
    if all(numbers) and float in (type(published), type(ours)):
        return Line(name, published, ours, tolerance, abs(published - ours) <= tolerance)
    return Line(name, published, ours, None, type(published) is type(ours) and published == ours)


def _scores(case: CaseResult) -> str:
    """A digest of the raw scores of a case, so that one of them that was recorded otherwise shows."""
    return sha256_json([[score.references, [score.values[name] for name in LABELS]] for score in case.scores])


def _published_scores(record: Mapping[str, Any]) -> str:
    asked = [(references, values) for references, values in record.get("groups", ())]
    rechecked = [(references, values) for references, _, values in record.get("localized", ()) if values is not None]
    return sha256_json([*asked, *rechecked])


def _decided(registration: Registration, assay: PublishedAssay, claims: Sequence[Claim]) -> list[CaseResult]:
    model, revision = registration.scorer.model, registration.scorer.revision
    scorer: Any
    if registration.method == "groups":
        scorer = RecordedFileScorer(assay.scores, model, revision, assay.registration)
    else:
        scorer = RecordedSupportFileScorer(assay.scores, model, revision, assay.claims)
    policy = built_policy(registration.method, registration.policy)
    return in_order(claims, in_process(scorer)(registration.method, policy, claims))


def _recorded(path: str) -> dict[str, dict[str, Any]]:
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
        return {record["id"]: record for record in map(json.loads, filter(str.strip, lines))}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigurationError(f"{path} holds no recorded cases that can be read: {error}") from error


def _configuration(path: Path) -> dict[str, Any]:
    document = read_document(path)
    model = document["model"]
    return {"model": model["name"], "revision": model["revision"], **document["protocol"]["config"]}
