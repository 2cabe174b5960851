"""A run directory's results: the schema of a row, how a row is made, and how rows are read back."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
from pyarrow.fs import FileSelector, FileSystem, FileType

from verifier.protocol import Outcome, ScoredPair
from verifier.records import Verification, read_verification
from verifier.schemas import REJECT_SCHEMA

_STRINGS = pa.list_(pa.string())

PAIR = pa.struct(
    {
        "method": pa.string(),
        "kind": pa.string(),
        "references": _STRINGS,
        "premise_sha256": pa.string(),
        "hypothesis_sha256": pa.string(),
        "window": pa.int32(),
        "windows": pa.int32(),
        "truncated": pa.bool_(),
        "member": pa.string(),
        "entailment": pa.float64(),
        "contradiction": pa.float64(),
        "neutral": pa.float64(),
        "support": pa.float64(),
        "cosine": pa.float64(),
        "lexical": pa.float64(),
        "gate_tripped": pa.bool_(),
        "model": pa.string(),
        "revision": pa.string(),
        "dtype": pa.string(),
    }
)

_PROBABILITIES = {"entailment": pa.float64(), "contradiction": pa.float64(), "neutral": pa.float64()}
_GROUP_SCORE = pa.struct({"references": _STRINGS, "memory_ids": _STRINGS} | _PROBABILITIES)
_LOCALIZED_ASSESSMENT = pa.struct(
    {
        "references": _STRINGS,
        "memory_ids": _STRINGS,
        "included_segment_numbers": pa.list_(pa.list_(pa.int32())),
        "premise_sha256": pa.string(),
        "model_called": pa.bool_(),
    }
    | _PROBABILITIES
)

RECORD = pa.struct(
    {
        "claim": pa.string(),
        "status": pa.string(),
        "model": pa.string(),
        "requested_revision": pa.string(),
        "resolved_revision": pa.string(),
        "model_called": pa.bool_(),
        "configuration_sha256": pa.string(),
        "claim_sha256": pa.string(),
        "evidence_sha256": pa.string(),
        "evaluation_id": pa.string(),
        "result_sha256": pa.string(),
        "supporting_group": _STRINGS,
        "refuting_group": _STRINGS,
        "supporting_basis": pa.string(),
        "refuting_basis": pa.string(),
        "group_scores": pa.list_(_GROUP_SCORE),
        "localized_assessments": pa.list_(_LOCALIZED_ASSESSMENT),
        "limitations": _STRINGS,
        "schema_version": pa.int32(),
    }
)

RESULT_SCHEMA = pa.schema(
    {
        "row_id": pa.int64(),
        "claim_id": pa.string(),
        "document_id": pa.string(),
        "category": pa.string(),
        "label": pa.string(),
        "outcome": pa.string(),
        "status": pa.string(),
        "support": pa.float64(),
        "error_code": pa.string(),
        "error_message": pa.string(),
        "seconds": pa.float64(),
        "premises_windowed": pa.int32(),
        "premises_truncated": pa.int32(),
        "pairs": pa.list_(PAIR),
        "record": RECORD,
    }
)

_VALUES = ("entailment", "contradiction", "neutral", "support", "cosine", "lexical")
# A file may have narrower numbers or lack a field that a later version added: read it all the same.
_TOLERANT = pl.ScanCastOptions(
    integer_cast="upcast", float_cast="upcast", missing_struct_fields="insert", extra_struct_fields="ignore"
)


DECIDED_STATUS = pl.when(pl.col("outcome") == "decided").then("status").alias("status")
"""A row's status where the claim was decided, else null: an unscored claim's ``insufficient`` is no verdict."""


def result_row(
    row: Mapping[str, Any], outcome: Outcome, *, method: str, model: str, revision: str, dtype: str, seconds: float
) -> dict[str, Any]:
    """One row of ``RESULT_SCHEMA``.

    Args:
        row: the claim's row_id and claim_id and, where known, document_id, category and label.
        outcome: what became of the claim.
        method: name of the method that planned the pairs.
        model: the scorer's model id.
        revision: the scorer's resolved revision.
        dtype: the number type the model ran in.
        seconds: this claim's share of the time spent on its batch.
    """
    verification, error = outcome.verification, outcome.error
    scorer = {"model": model, "revision": revision, "dtype": dtype}
    return {
        "row_id": row["row_id"],
        "claim_id": row["claim_id"],
        "document_id": row.get("document_id"),
        "category": row.get("category"),
        "label": row.get("label"),
        "outcome": error.outcome if error else "decided",
        "status": verification.status.value if verification else None,
        "support": outcome.support,
        "error_code": error.code if error else None,
        "error_message": error.message if error else None,
        "seconds": seconds,
        "premises_windowed": sum(pair.windows > 1 for pair in outcome.pairs),
        "premises_truncated": sum(pair.truncated for pair in outcome.pairs),
        "pairs": [{"method": method, **pair_row(pair), **scorer} for pair in outcome.pairs],
        "record": verification.to_dict() if verification else None,
    }


def pair_row(pair: ScoredPair) -> dict[str, Any]:
    """A scored pair as the fields of ``PAIR``, without method and scorer."""
    gate = pair.values.get("gate_tripped")
    return {
        "kind": pair.kind,
        "references": list(pair.references),
        "premise_sha256": pair.premise_sha256,
        "hypothesis_sha256": pair.hypothesis_sha256,
        "window": pair.window,
        "windows": pair.windows,
        "truncated": pair.truncated,
        "member": pair.member,
        **{name: pair.values.get(name) for name in _VALUES},
        "gate_tripped": None if gate is None else bool(gate),
    }


def results_table(rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Result rows as an Arrow table of ``RESULT_SCHEMA``."""
    return pa.Table.from_pylist(list(rows), schema=RESULT_SCHEMA)


def scan_results(run_dir: str | Path) -> pl.LazyFrame:
    """The result rows of a run, lazily; a run without results has none."""
    return scan_folder(run_dir, "results", RESULT_SCHEMA)


def read_results(run_dir: str | Path, columns: Sequence[str] | None = None) -> pl.DataFrame:
    """The result rows of a run by row_id, all columns or the named ones."""
    rows = scan_results(run_dir).sort("row_id")
    return (rows if columns is None else rows.select(columns)).collect()


def scan_pairs(run_dir: str | Path) -> pl.LazyFrame:
    """Every scored pair of a run, lazily: row_id, claim_id and the fields of ``PAIR``, one row a pair."""
    fields = [pl.col("pairs").struct.field(field.name) for field in PAIR]
    rows = scan_results(run_dir).select("row_id", "claim_id", "pairs").explode("pairs")
    return rows.filter(pl.col("pairs").is_not_null()).select("row_id", "claim_id", *fields)


def scored_pairs(run_dir: str | Path) -> pl.DataFrame:
    """Every scored pair of a run as one flat frame by row_id, in the order in which a claim asked for them."""
    return scan_pairs(run_dir).sort("row_id", maintain_order=True).collect()


def scan_rejects(run_dir: str | Path) -> pl.LazyFrame:
    """The rejected input rows of a run, lazily."""
    return scan_folder(run_dir, "rejects", REJECT_SCHEMA)


def read_rejects(run_dir: str | Path) -> pl.DataFrame:
    """The rejected input rows of a run."""
    return scan_rejects(run_dir).collect()


def record_of(row: Mapping[str, Any]) -> Verification:
    """The verification of a decided result row, equal to the one that was written, digests and floats included."""
    record = row["record"]
    if record is None:
        raise ValueError(f"claim {row.get('claim_id')!r} was not decided, so it has no record")
    # A struct column holds every field: what an older schema lacks comes back as null.
    lacking = {name for name in ("localized_assessments",) if record[name] is None}
    return read_verification({name: value for name, value in record.items() if name not in lacking})


def parquet_files(run_dir: str | Path, folder: str) -> list[str]:
    """The parquet files of one folder of a run directory, local or s3:// or gs://, sorted by name."""
    root = str(run_dir)
    scheme = root.split("://")[0] + "://" if "://" in root else ""
    filesystem, path = FileSystem.from_uri(root if scheme else Path(root).resolve().as_uri())
    found = filesystem.get_file_info(FileSelector(f"{path.rstrip('/')}/{folder}", allow_not_found=True, recursive=True))
    names = (info.path for info in found if info.type == FileType.File and info.extension == "parquet")
    # Names with a dot or underscore in front are files that a writer has not finished.
    return sorted(f"{scheme}{name}" for name in names if not name.rsplit("/", 1)[-1].startswith((".", "_")))


def scan_folder(run_dir: str | Path, folder: str, schema: pa.Schema) -> pl.LazyFrame:
    """The rows of one folder of a run directory with the columns of ``schema``, lazily; none where it is empty."""
    columns = pl.DataFrame(schema.empty_table()).schema
    files = parquet_files(run_dir, folder)
    if not files:
        return pl.LazyFrame(schema=columns)
    return pl.scan_parquet(
        files,
        schema=columns,
        glob=False,
        missing_columns="insert",
        extra_columns="ignore",
        cast_options=_TOLERANT,
    )
