"""Small inputs, and what a prepare phase made of them."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from verifier.schemas import REJECT_SCHEMA, WORK_SCHEMA


def claim(n: int, **changes: Any) -> dict[str, Any]:
    good = {"claim_id": f"c{n}", "claim": f"Claim {n}.", "evidence": [{"reference": "m1", "text": f"Passage {n}."}]}
    return {name: value for name, value in (good | changes).items() if value is not ...}


def write(path: Path, rows: list[Any], newline: bytes = b"\n") -> Path:
    lines = [row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows]
    path.write_bytes(b"".join(line + newline for line in lines))
    return path


def work(output: Path) -> list[dict[str, Any]]:
    tables = [pq.read_table(path) for path in sorted((output / "work").glob("*.parquet"))]
    assert all(table.schema.equals(WORK_SCHEMA) for table in tables)
    return [row for table in tables for row in table.to_pylist()]


def rejects(output: Path) -> list[dict[str, Any]]:
    tables = [pq.read_table(path) for path in sorted((output / "rejects").glob("*.parquet"))]
    assert all(table.schema.equals(REJECT_SCHEMA) for table in tables)
    return [row for table in tables for row in table.to_pylist()]


def digests(output: Path) -> dict[str, str]:
    found = [path for path in output.rglob("*") if path.is_file()]
    return {str(path.relative_to(output)): hashlib.sha256(path.read_bytes()).hexdigest() for path in found}
