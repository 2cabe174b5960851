"""What a run on answers hands out: claims, delivered texts, and traces or receipts, each a file of its own."""

from collections.abc import Iterator
from contextlib import ExitStack

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from verifier.answers.schemas import CLAIM_TYPE
from verifier.fusion.trace import TRACE_SCHEMA, read_trace
from verifier.pipeline.storage import open_filesystem
from verifier.results import parquet_files

CLAIMS_FILE, DELIVERED_FILE, TRACES_FILE, TRACE_LINES, RECEIPT_LINES = (
    "claims.parquet",
    "delivered.parquet",
    "traces.parquet",
    "traces.jsonl",
    "receipts.jsonl",
)

CLAIMS_SCHEMA = pa.schema(
    [
        pa.field("row_id", pa.int64()),
        pa.field("answer_id", pa.string()),
        pa.field("number", pa.int32()),
        *[pa.field(field.name, field.type) for field in CLAIM_TYPE],
    ]
)
"""``claims.parquet``: one row a claim, ``number`` from 0 in its answer; ``start`` and ``end`` are its draft span."""

DELIVERED_SCHEMA = pa.schema(
    {
        "row_id": pa.int64(),
        "answer_id": pa.string(),
        "category": pa.string(),
        "verification": pa.string(),
        "grounded_fraction": pa.float64(),
        "answer": pa.string(),
        "delivered": pa.string(),
    }
)
"""``delivered.parquet``: one row an answer, as generated and as it may go out (null: it may not)."""


def write_tables(run_dir: str, with_traces: bool) -> list[str]:
    """Write the tables of a finished run and return their names.

    Answers stand in the order of the input, but for those that a later session asked again. One result file is in
    memory at a time.
    """
    filesystem, root = open_filesystem(run_dir)
    names = [CLAIMS_FILE, DELIVERED_FILE, *([TRACES_FILE, TRACE_LINES] if with_traces else [RECEIPT_LINES])]
    with ExitStack() as stack:
        streams = {name: stack.enter_context(filesystem.open_output_stream(f"{root}/{name}")) for name in names}

        def writer(name: str, schema: pa.Schema) -> pq.ParquetWriter:
            return stack.enter_context(pq.ParquetWriter(streams[name], schema, compression="zstd"))

        claims, delivered = writer(CLAIMS_FILE, CLAIMS_SCHEMA), writer(DELIVERED_FILE, DELIVERED_SCHEMA)
        traces = writer(TRACES_FILE, TRACE_SCHEMA) if with_traces else None
        for table in _tables(run_dir):
            claims.write_table(_claims(table))
            delivered.write_table(table.select(DELIVERED_SCHEMA.names).cast(DELIVERED_SCHEMA))
            if traces is None:
                lines = [line for line in table["receipt"].to_pylist() if line is not None]
                streams[RECEIPT_LINES].write("".join(f"{line}\n" for line in lines).encode())
                continue
            rows = [row for row in table["trace"].to_pylist() if row is not None]
            traces.write_table(pa.Table.from_pylist(rows, TRACE_SCHEMA))
            streams[TRACE_LINES].write("".join(f"{read_trace(row).to_json()}\n" for row in rows).encode())
    return names


def _tables(run_dir: str) -> Iterator[pa.Table]:
    """The result files, each by row_id, the file with the smallest first."""
    firsts = {}
    for path in parquet_files(run_dir, "results"):
        smallest = pc.min(_read(path, ["row_id"])["row_id"]).as_py()
        if smallest is not None:
            firsts[path] = smallest
    for path in sorted(firsts, key=lambda path: firsts[path]):
        yield _read(path, None).sort_by("row_id")


def _read(path: str, columns: list[str] | None) -> pa.Table:
    filesystem, inside = open_filesystem(path)
    with filesystem.open_input_file(inside) as file:
        return pq.read_table(file, columns=columns)


def _claims(table: pa.Table) -> pa.Table:
    rows = [
        {"row_id": row_id, "answer_id": answer_id, "number": number, **claim}
        for row_id, answer_id, claims in zip(
            *(table[name].to_pylist() for name in ("row_id", "answer_id", "claims")), strict=True
        )
        for number, claim in enumerate(claims or ())
    ]
    return pa.Table.from_pylist(rows, CLAIMS_SCHEMA)
