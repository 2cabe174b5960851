"""Which answers of a run with ``data=cited`` go out: one row an answer, from the results of its sentences."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import polars as pl
import pyarrow as pa

from verifier.grounding.cited import Strictness, VerificationResult, decide_answer
from verifier.results import scan_results

ANSWER_SCHEMA = pa.schema(
    {
        "answer_id": pa.string(),
        "sentences": pa.int32(),
        "delivered": pa.bool_(),
        "reason": pa.string(),
        "unsupported": pa.list_(pa.int32()),
        "unscored": pa.list_(pa.int32()),
    }
)
"""``unsupported`` and ``unscored`` are positions of sentences, from 0; the text of an answer stays in the input."""


@dataclass(frozen=True)
class AnswerRules:
    """How much of an answer must be supported for it to go out, see ``decide_answer``."""

    strictness: Strictness = "balanced"


def decided_answers(run_dir: str, strictness: Strictness) -> pa.Table:
    """The decision on every answer of a finished run, as a table of ``ANSWER_SCHEMA`` by answer_id."""
    rows = (
        scan_results(run_dir)
        .select("document_id", "claim_id", "outcome", "status", "support", pl.col("record").struct.field("claim"))
        .with_columns(pl.col("claim_id").str.split("#").list.last().cast(pl.Int32).alias("index"))
        .sort("document_id", "index")
        .collect()
    )
    answers = rows.group_by("document_id", maintain_order=True)
    return pa.Table.from_pylist([_row(str(name), part, strictness) for (name,), part in answers], schema=ANSWER_SCHEMA)


def _row(answer_id: str, sentences: pl.DataFrame, strictness: Strictness) -> dict[str, Any]:
    results = list(_results(sentences))
    return {"answer_id": answer_id, "sentences": len(results), **asdict(decide_answer(results, strictness))}


def _results(sentences: pl.DataFrame) -> Iterator[VerificationResult]:
    for row in sentences.iter_rows(named=True):
        decided = row["outcome"] == "decided"
        # A sentence that cites nothing is decided without a score: its support is 0.
        score = (row["support"] or 0.0) if decided else None
        yield VerificationResult(row["index"], row["claim"] or "", decided and row["status"] == "supported", score)
