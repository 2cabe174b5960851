"""The example rows of a report: a few of each (label, status), the slowest, and the evidence behind them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from verifier.results import DECIDED_STATUS, parquet_files, scan_results

EACH = 2  # of one label and status
UNLABELLED = 4  # of one status, where nothing has a label
AT_MOST = 60
PASSAGES_SHOWN = 6
TEXT_SHOWN = 700  # characters of a passage
SCORES_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Picked:
    """The rows to show, and the first of each (label, status) for links into them."""

    row_ids: Sequence[int]
    first: Mapping[tuple[str | None, str | None], int]


def pick_examples(run_dir: str | Path, also: Sequence[int] = ()) -> Picked:
    """Choose the first rows of every (label, status), by row_id, and the rows in ``also``."""
    decided = scan_results(run_dir).with_columns(DECIDED_STATUS)
    rows = decided.select("row_id", "label", pl.coalesce("status", "outcome").alias("verdict"))
    cells = (
        rows.group_by("label", "verdict")
        .agg(pl.col("row_id").bottom_k(UNLABELLED).sort())
        .collect(engine="streaming")
        .sort("label", "verdict", nulls_last=True)
    )
    each = UNLABELLED if cells["label"].is_null().all() else EACH
    chosen = {(label, verdict): ids[:each] for label, verdict, ids in cells.iter_rows()}
    # One of every cell before a second of any, so that the limit costs the repeats.
    in_turn = [ids[turn] for turn in range(each) for ids in chosen.values() if turn < len(ids)]
    shown = list(dict.fromkeys([*also, *in_turn]))[:AT_MOST]
    kept = set(shown)
    return Picked(shown, {cell: ids[0] for cell, ids in chosen.items() if ids[0] in kept})


def read_examples(run_dir: str | Path, row_ids: Sequence[int]) -> dict[str, list[dict[str, Any]]]:
    """The rows to show by verdict (status, or outcome of an undecided claim), each with its evidence text."""
    frame = scan_results(run_dir).filter(pl.col("row_id").is_in(row_ids)).sort("row_id").collect(engine="streaming")
    work = _read_work(run_dir, row_ids)
    by_verdict: dict[str, list[dict[str, Any]]] = {}
    for row in frame.iter_rows(named=True):
        verdict = row["status"] if row["outcome"] == "decided" else row["outcome"]
        by_verdict.setdefault(verdict, []).append(_example(row, work.get(row["row_id"], {})))
    return by_verdict


def _example(row: Mapping[str, Any], work: Mapping[str, Any]) -> dict[str, Any]:
    record = row["record"] or {}
    references = {item["memory_id"]: item["reference"] for item in work.get("evidence") or []}
    supporting, refuting = (
        [references.get(name, name) for name in record.get(f"{role}_group") or []]
        for role in ("supporting", "refuting")
    )
    scores = sorted(
        record.get("group_scores") or [],
        key=lambda score: max(score["entailment"], score["contradiction"]),
        reverse=True,
    )
    roles = dict.fromkeys(supporting, "supports") | dict.fromkeys(refuting, "refutes")
    roles |= dict.fromkeys(set(supporting) & set(refuting), "supports and refutes")
    passages = [
        {"reference": item["reference"], "text": cut(item["text"]), "role": roles.get(item["reference"])}
        for item in work.get("evidence") or []
    ]
    passages.sort(key=lambda passage: passage["role"] is None)  # stable: the deciding ones first
    return {
        **{name: row[name] for name in ("row_id", "claim_id", "label", "category", "document_id", "seconds")},
        "claim": cut(record.get("claim") or work.get("claim") or ""),
        "error": cut(f"{row['error_code']}: {row['error_message']}") if row["error_code"] else None,
        "supporting_group": supporting,
        "refuting_group": refuting,
        "supporting_basis": record.get("supporting_basis"),
        "refuting_basis": record.get("refuting_basis"),
        "limitations": record.get("limitations") or [],
        "scores": scores[:SCORES_SHOWN],
        "support": row["support"],
        "pairs": len(row["pairs"] or []),
        "windowed": row["premises_windowed"],
        "truncated": row["premises_truncated"],
        "evaluation_id": record.get("evaluation_id"),
        "result_sha256": record.get("result_sha256"),
        "passages": passages[:PASSAGES_SHOWN],
        "passages_left_out": len(passages[PASSAGES_SHOWN:]),
        "misjudged": row["label"] is not None and row["status"] is not None and row["label"] != row["status"],
    }


def _read_work(run_dir: str | Path, row_ids: Sequence[int]) -> dict[int, dict[str, Any]]:
    """The claim and evidence of some rows of the validated input, nothing where the run keeps none."""
    files = parquet_files(run_dir, "work")
    if not files:
        return {}
    rows = pl.scan_parquet(files, glob=False, missing_columns="insert", extra_columns="ignore")
    names = [name for name in ("row_id", "claim", "evidence") if name in rows.collect_schema()]
    found = rows.filter(pl.col("row_id").is_in(row_ids)).select(names).collect(engine="streaming")
    return {row["row_id"]: row for row in found.iter_rows(named=True)}


def cut(text: str) -> str:
    """The beginning of a text that is too long to show."""
    return text if len(text) <= TEXT_SHOWN else text[:TEXT_SHOWN] + "…"
