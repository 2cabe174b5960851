"""Small cohorts in files, forms to register them, and an execution without a model."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from verifier.assays.methods import Execute, in_process
from verifier.assays.registering import AssayForm, register
from verifier.assays.registration import Registration, Scorer
from verifier.scorers.words import WordsScorer

SCORER = Scorer(model=WordsScorer.model, revision=WordsScorer.revision)
EXECUTE: Execute = in_process(WordsScorer())
PLACES = ("Oslo", "Lima", "Cairo", "Quito", "Perth", "Turin", "Delhi", "Osaka", "Accra", "Sofia", "Minsk", "Tunis")


def fever_rows(prefix: str, n: int = 6) -> list[dict[str, Any]]:
    """Rows of which every other one is supported, and the others refuted, as the words scorer finds."""
    return [
        {
            "id": f"{prefix}{number}",
            "claim": f"The {prefix} ferry to {PLACES[number]} left early.",
            "label": "REFUTES" if number % 2 else "SUPPORTS",
            "evidence": [f"The {prefix} ferry to {PLACES[number]} {'never left' if number % 2 else 'left'} early."],
        }
        for number in range(n)
    ]


def write_rows(path: Path, rows: Sequence[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def cohort(path: Path, **fields: Any) -> dict[str, Any]:
    return {"name": path.stem, "form": "fever", "files": {"claims": str(path)}} | fields


def form(path: Path, **fields: Any) -> AssayForm:
    """A form to register the FEVER-style file ``path`` with."""
    return AssayForm.model_validate(
        {
            "name": "trial",
            "purpose": "Show that the words heuristic finds plain support.",
            "cohort": cohort(path),
            "method": "groups",
            "policy": {"model": SCORER.model, "revision": SCORER.revision},
            "scorer": SCORER,
            "gates": {"supported_recall_min": 0.5},
        }
        | fields
    )


def registered(folder: Path, name: str, asked: AssayForm) -> Registration:
    """The registration that ``asked`` makes in ``folder`` with its ledger."""
    return register(asked, folder / "ledger.jsonl", folder / f"{name}.json")[0]
