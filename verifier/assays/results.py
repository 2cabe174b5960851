"""The result of a registered assay: its file, and its figures under the names that a tracking server keeps."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import pydantic
from pydantic import BaseModel, ConfigDict, JsonValue

from verifier.assays.cases import CaseResult
from verifier.assays.gates import GateTable
from verifier.assays.registration import first_problem
from verifier.errors import ConfigurationError
from verifier.metrics import measure

RESULT_FILE = "result.json"


class AssayResult(BaseModel):
    """What came of an assay.

    Attributes:
        registration_sha256: of the registration that it belongs to.
        observed: whether the cohort had been observed when it was registered.
        started_at, completed_at: UTC, ISO 8601.
        model, revision: of the scorer, as resolved.
        policy: as decided by, with what a calibration has chosen.
        summary: see ``verifier.assays.summary``.
        gates: every registered gate.
        exit_status: 0 when all gates passed, else 1.
        cases: what became of each claim, in the cohort's order.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["claim-verifier-assay-result"] = "claim-verifier-assay-result"
    schema_version: Literal[1] = 1
    name: str
    registration_sha256: str
    observed: bool
    started_at: str
    completed_at: str
    method: str
    model: str
    revision: str
    policy: dict[str, JsonValue]
    summary: dict[str, JsonValue]
    gates: GateTable
    exit_status: Literal[0, 1]
    cases: tuple[CaseResult, ...]

    def flat(self) -> dict[str, float]:
        """The figures by slash-separated name, see ``flat_metrics``."""
        return flat_metrics(self.cases, self.gates)


def flat_metrics(cases: tuple[CaseResult, ...], gates: GateTable) -> dict[str, float]:
    """Figures of an assay by stable, slash-separated names.

    ``claims``, ``decided``, ``matched``; what ``verifier.metrics`` measures (``accuracy``, ``recall/refuted``,
    ``binary/precision``, …, over decided claims); ``status/<status>``; ``gate/<name>/observed``, ``/required`` and
    ``/passed`` (1 or 0), ``gates/passed``, ``gates/failed`` and ``passed``.
    """
    metrics = measure([case.status for case in cases], [case.label for case in cases])
    statuses: dict[str, float] = {}
    for case in cases:
        name = f"status/{case.status.value if case.status else case.outcome}"
        statuses[name] = statuses.get(name, 0.0) + 1
    figures: dict[str, float] = {
        "claims": len(cases),
        "decided": sum(case.status is not None for case in cases),
        "matched": sum(case.as_expected for case in cases),
        **(metrics.flat() if metrics else {}),
        **statuses,
        "gates/passed": sum(gate.passed for gate in gates.results.values()),
        "gates/failed": len(gates.failed),
        "passed": gates.passed,
    }
    for name, gate in gates.results.items():
        figures |= {f"gate/{name}/{field}": getattr(gate, field) for field in ("required", "observed", "passed")}
    return {name: float(value) for name, value in figures.items()}


def write_result(result: AssayResult, folder: Path) -> Path:
    """Write ``result.json`` into a folder and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / RESULT_FILE
    path.write_text(result.model_dump_json(indent=1) + "\n", encoding="utf-8")
    return path


def read_result(path: Path) -> AssayResult:
    """The result in a file, or in the ``result.json`` of a folder; ConfigurationError where it is none."""
    file = path / RESULT_FILE if path.is_dir() else path
    try:
        return AssayResult.model_validate_json(file.read_bytes())
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be read: {error.strerror}: name a result of an assay") from error
    except pydantic.ValidationError as error:
        raise ConfigurationError(f"{file} is no result of an assay: {first_problem(error)}") from error


def flattened(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested values by slash-separated path."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        path = f"{prefix}{name}"
        flat |= flattened(value, f"{path}/") if isinstance(value, Mapping) else {path: value}
    return flat
