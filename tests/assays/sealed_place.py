"""A sealed cohort in a folder, with its calibration, registration and ledger."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.assays.assay_files import EXECUTE, SCORER, cohort, fever_rows, form, registered
from verifier.assays.cohorts.fever import load
from verifier.assays.registration import Registration
from verifier.assays.running import run_assay
from verifier.records import Claim

GATES = {"supported_precision_min": 0.9, "supported_recall_min": 0.6}
RIGHT = {row["id"]: "supported" if row["label"] == "SUPPORTS" else "refuted" for row in fever_rows("blue")}
WRONG = RIGHT | {"blue1": "supported"}  # precision 3 of 4


def calibration(folder: Path, **fields: Any) -> dict[str, Any]:
    return {"cohort": cohort(folder / "calibration.jsonl"), "gates": GATES} | fields


def sealing(folder: Path, name: str, **fields: Any) -> Registration:
    asked = {"sealed": True, "calibration": calibration(folder)} | fields
    return registered(folder, name, form(folder / "sealed.jsonl", **asked))


@dataclass
class Place:
    """A folder with a sealed cohort, its registration and ledger."""

    folder: Path
    registration: Registration

    @property
    def ledger(self) -> Path:
        return self.folder / "ledger.jsonl"

    @property
    def file(self) -> Path:
        return self.folder / "sealed.jsonl"

    def claims(self) -> list[Claim]:
        return list(load({"claims": self.file}, {}).claims)

    def run(self, registration: Registration | None = None) -> int:
        return run_assay(registration or self.registration, EXECUTE, SCORER, self.ledger).exit_status
