"""Arrow schemas of a run directory's ``work/`` and ``rejects/``, and how a claim becomes a row and back."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pydantic import TypeAdapter

from verifier.records import Claim, Evidence, evidence_to_json

EVIDENCE_TYPE = pa.struct(
    [pa.field(name, pa.string(), name not in ("reference", "text")) for name in Evidence.__dataclass_fields__]
)
"""One evidence item; times in the ISO form that the digests are computed over."""

WORK_SCHEMA = pa.schema(
    [
        pa.field("row_id", pa.int64(), nullable=False),
        pa.field("claim_id", pa.string(), nullable=False),
        pa.field("claim", pa.string(), nullable=False),
        pa.field("requires_complete_set", pa.bool_(), nullable=False),
        pa.field("label", pa.string()),
        pa.field("category", pa.string()),
        pa.field("document_id", pa.string()),
        pa.field("subclaims", pa.list_(pa.string()), nullable=False),
        pa.field("evidence", pa.list_(EVIDENCE_TYPE), nullable=False),
    ]
)
"""The validated input, one row a claim. ``row_id`` is the claim's position in the input, counted from 0 with
rejected rows included, so it stays the same when another row is repaired."""

REJECT_SCHEMA = pa.schema(
    [
        pa.field("row_id", pa.int64()),
        pa.field("claim_id", pa.string()),
        pa.field("source", pa.string(), nullable=False),
        pa.field("code", pa.string(), nullable=False),
        pa.field("message", pa.string(), nullable=False),
        pa.field("raw", pa.string(), nullable=False),
    ]
)
"""What could not be used: ``row_id`` is null for a line that belongs to no claim (a bad line of an evidence table),
``source`` is ``file:line`` (``file:row`` for parquet, both from 1), ``raw`` the row as text, cut when very long."""

_CLAIM = TypeAdapter(Claim)


def table_slices(table: pa.Table, rows: int) -> list[pa.Table]:
    """A table in parts of ``rows`` rows, in order, the last one perhaps shorter; none of an empty table."""
    return [table.slice(start, rows) for start in range(0, table.num_rows, rows)]


def work_row(row_id: int, claim: Claim) -> dict[str, Any]:
    """A claim as a row of WORK_SCHEMA."""
    return {
        "row_id": row_id,
        "claim_id": claim.claim_id,
        "claim": claim.claim,
        "requires_complete_set": claim.requires_complete_set,
        "label": claim.label,
        "category": claim.category,
        "document_id": claim.document_id,
        "subclaims": list(claim.subclaims),
        "evidence": evidence_to_json(claim.evidence),
    }


def claim_from_row(row: Mapping[str, Any]) -> Claim:
    """The claim of a row of WORK_SCHEMA, equal to the one that ``work_row`` was given; other columns are left out."""
    return _CLAIM.validate_python({name: row[name] for name in Claim.__dataclass_fields__})
