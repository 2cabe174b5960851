"""Small corpora in the input forms; every claim's text is its own, so that a log of hypotheses names claims."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any


def claim_row(n: int) -> dict[str, Any]:
    evidence = [{"reference": f"m{k}", "text": f"Passage {k} of {n}."} for k in range(2)]
    return {"claim_id": f"c{n}", "claim": f"Claim {n} holds.", "evidence": evidence, "label": "supported"}


def write_lines(path: Path, rows: Iterable[object]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def write_form(folder: Path, form: str, claims: int, idle: int) -> tuple[str, ...]:
    """A corpus of one of the forms with ``claims`` good claims, and ``idle`` lines that only make reading it slow.

    Returns the overrides that read it.
    """
    rows = [claim_row(n) for n in range(claims)]
    if form == "claims":
        write_lines(folder / "claims.jsonl", [*rows, *({"claim_id": f"bad {n}"} for n in range(idle))])
        return "data=claims", "data.path=claims.jsonl"
    if form == "joined":
        table = [{"evidence_set": f"s{n}", **item} for n, row in enumerate(rows) for item in row["evidence"]]
        table += ({"evidence_set": f"idle {n}", "reference": "m", "text": "Nobody asks."} for n in range(idle))
        claim_rows = [{**row, "evidence_set": f"s{n}"} for n, row in enumerate(rows)]
        write_lines(folder / "evidence.jsonl", table)
        write_lines(
            folder / "claims.jsonl", ({name: row[name] for name in row if name != "evidence"} for row in claim_rows)
        )
        return "data=joined", "data.path=claims.jsonl", "data.evidence_path=evidence.jsonl"
    lines = [
        {
            "label": "supported",
            "claim": row["claim"],
            "evidence": [item["text"], "", "More."],
            "meta": {"id": row["claim_id"]},
        }
        for row in rows
        for item in row["evidence"]
    ]
    write_lines(folder / "wice.jsonl", [*lines, *({"label": "supported", "meta": {}} for _ in range(idle))])
    return "data=wice", "data.path=wice.jsonl"


def write_claims(path: Path, claims: int, broken: Mapping[int, Mapping[str, Any]] | None = None) -> None:
    """Form claims; ``broken`` rows, by their place among the lines, stand between the good ones."""
    rows = [claim_row(n) for n in range(claims)]
    for place, fault in (broken or {}).items():
        rows.insert(place, claim_row(1000 + place) | fault)
    write_lines(path, rows)
