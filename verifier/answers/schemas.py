"""Arrow schemas of a run on answers, and how records become rows and back."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

import pyarrow as pa
from pydantic import TypeAdapter

from verifier.answers.records import Answer, CheckedAnswer
from verifier.digests import canonical_json
from verifier.factuality.corpus import Passage
from verifier.fusion.trace import SPAN_TYPE, TRACE_SCHEMA, traces_table
from verifier.results import PAIR, pair_row

_STRINGS = pa.list_(pa.string())

ANSWER_SCHEMA = pa.schema(
    [
        pa.field("row_id", pa.int64(), nullable=False),
        pa.field("answer_id", pa.string(), nullable=False),
        pa.field("answer", pa.string(), nullable=False),
        pa.field("category", pa.string()),
        pa.field("scope", pa.string()),
        pa.field("spans", pa.list_(SPAN_TYPE), nullable=False),
        pa.field(
            "claims",
            pa.list_(pa.struct({"text": pa.string(), "draft_span": pa.list_(pa.int64()), "cited_markers": _STRINGS})),
        ),
        pa.field("generation", pa.string(), nullable=False),
    ]
)
"""``work/`` of answers: the validated input, one row an answer; ``generation`` is JSON, ``claims`` null where they are
to be found."""

PASSAGE_SCHEMA = pa.schema(
    [
        pa.field("row_id", pa.int64(), nullable=False),
        pa.field("passage_id", pa.string(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("scope", pa.string()),
    ]
)
"""``work/`` of a corpus: one row a passage."""

INDEX_SCHEMA = PASSAGE_SCHEMA.append(pa.field("vector", pa.list_(pa.float32()), nullable=False)).append(
    pa.field("truncated", pa.bool_(), nullable=False)
)
"""``results/`` of a corpus: its passages with their unit vectors; ``truncated`` where the embedder cut the text."""

_CITED = pa.struct({"evidence_id": pa.string(), "role": pa.string(), "score": pa.float64(), "text": pa.string()})
CLAIM_TYPE = pa.struct(
    {
        "text": pa.string(),
        "start": pa.int64(),
        "end": pa.int64(),
        "verdict": pa.string(),
        "score": pa.float64(),
        "numeric_gated": pa.bool_(),
        "cited_markers": _STRINGS,
        "unresolved_markers": _STRINGS,
        "evidence": pa.list_(_CITED),
    }
)
"""A checked claim, see ``CheckedClaim``."""

CHECKED_SCHEMA = pa.schema(
    {
        "row_id": pa.int64(),
        "answer_id": pa.string(),
        "category": pa.string(),
        "scope": pa.string(),
        "outcome": pa.string(),
        "error_code": pa.string(),
        "error_message": pa.string(),
        "seconds": pa.float64(),
        "verification": pa.string(),
        "answer": pa.string(),
        "delivered": pa.string(),
        "truncated": pa.int32(),
        "grounded_fraction": pa.float64(),
        "claims": pa.list_(CLAIM_TYPE),
        "pairs": pa.list_(PAIR),
        "receipt": pa.string(),
        "trace": pa.struct(list(TRACE_SCHEMA)),
    }
)
"""``results/`` of answers: one row an answer. ``outcome`` is ``decided``, ``unscored`` (asked again by the next run)
or ``rejected``."""

_ANSWER = TypeAdapter(Answer)
_PASSAGE = TypeAdapter(Passage)


def answer_row(row_id: int, answer: Answer) -> dict[str, Any]:
    """An answer as a row of ANSWER_SCHEMA."""
    fields = _ANSWER.dump_python(answer, mode="json")
    return {"row_id": row_id, **fields, "generation": canonical_json(fields["generation"])}


def answer_from_row(row: Mapping[str, Any]) -> Answer:
    """The answer of a row of ANSWER_SCHEMA, equal to the one that ``answer_row`` was given."""
    fields = {name: row[name] for name in Answer.__dataclass_fields__}
    return _ANSWER.validate_python({**fields, "generation": json.loads(row["generation"])})


def passage_row(row_id: int, passage: Passage) -> dict[str, Any]:
    """A passage as a row of PASSAGE_SCHEMA."""
    fields = asdict(passage)
    return {"row_id": row_id, "passage_id": fields.pop("id"), **fields}


def passage_from_row(row: Mapping[str, Any]) -> Passage:
    """The passage of a row of PASSAGE_SCHEMA or INDEX_SCHEMA."""
    return Passage(row["passage_id"], row["text"], row["kind"], row["scope"])


def checked_row(
    row: Mapping[str, Any], checked: CheckedAnswer, *, method: str, scorer: Mapping[str, str], seconds: float
) -> dict[str, Any]:
    """One row of CHECKED_SCHEMA.

    Args:
        row: the answer's row of ANSWER_SCHEMA.
        checked: what became of it.
        method: how it was checked.
        scorer: model, revision and dtype of the scorer that its pairs were asked.
        seconds: this answer's share of the time spent on its batch.
    """
    error = checked.error
    return {
        **{name: row[name] for name in ("row_id", "answer_id", "category", "scope", "answer")},
        "outcome": error.outcome if error else "decided",
        "error_code": error.code if error else None,
        "error_message": error.message if error else None,
        "seconds": seconds,
        "verification": checked.verification,
        "delivered": checked.delivered,
        "truncated": checked.truncated,
        "grounded_fraction": checked.grounded_fraction,
        "claims": [asdict(claim) for claim in checked.claims],
        "pairs": [{"method": method, **pair_row(pair), **scorer} for pair in checked.pairs],
        "receipt": checked.receipt,
        "trace": traces_table([checked.trace]).to_pylist()[0] if checked.trace else None,
    }


def checked_table(rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Rows as an Arrow table of CHECKED_SCHEMA."""
    return pa.Table.from_pylist(list(rows), schema=CHECKED_SCHEMA)
