"""The figures of a report: small aggregates of a run's results and rejects, computed lazily."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from verifier.metrics import STATUSES, Metrics, measure_cells
from verifier.results import DECIDED_STATUS, scan_pairs, scan_rejects, scan_results

BINS = 40
SCORES = ("entailment", "contradiction", "support", "cosine", "lexical")
CATEGORIES_SHOWN = 60
SLOWEST_SHOWN = 10
RAW_SHOWN = 400  # characters of a rejected row


@dataclass(frozen=True, slots=True)
class Category:
    """One category: its claims, how many became what, and how often the label was met."""

    name: str
    claims: int
    verdicts: Mapping[str, int]
    metrics: Metrics | None


@dataclass(frozen=True, slots=True)
class Figures:
    """Everything a report counts.

    Attributes:
        claims: claims of results and rejects together.
        rejected_lines: rejected lines of the input that belong to no claim; not in ``claims`` or ``verdicts``.
        verdicts: status → count, then ``rejected`` and ``unscored``; every status stands, with 0 if need be.
        histograms: score → count for each of ``BINS`` equal bins of [0, 1]; only scores that occur.
        rejects: stage, code, count and example rows, most frequent first.
        slowest: the rows of most seconds, slowest first.
    """

    claims: int
    decided: int
    verdicts: Mapping[str, int]
    metrics: Metrics | None
    categories: tuple[Category, ...]
    categories_left_out: int
    histograms: Mapping[str, list[int]]
    pairs: int
    windowed: int
    truncated: int
    rejected_lines: int
    rejects: tuple[Mapping[str, Any], ...]
    slowest: pl.DataFrame


def gather(run_dir: str | Path) -> Figures:
    """Compute the figures of a run directory."""
    results = scan_results(run_dir)
    decided = results.with_columns(DECIDED_STATUS)
    cells = decided.group_by("category", "label", "outcome", "status").len("n").collect(engine="streaming")
    totals = results.select(
        pl.col("premises_windowed", "premises_truncated").sum(),
        pairs=pl.col("pairs").list.len().sum(),
    ).collect(engine="streaming")
    windowed, truncated, pairs = totals.row(0)
    rejected_in_input, rejected_lines = rejected_rows(run_dir)
    outcomes = _counts(cells, pl.coalesce("status", "outcome"))
    verdicts = {status: outcomes[status] for status in STATUSES}
    verdicts |= {"rejected": outcomes["rejected"] + rejected_in_input, "unscored": outcomes["unscored"]}
    categories = _categories(cells)
    return Figures(
        claims=sum(verdicts.values()),
        decided=sum(verdicts[status] for status in STATUSES),
        verdicts=verdicts,
        metrics=_metrics(cells),
        categories=tuple(categories[:CATEGORIES_SHOWN]),
        categories_left_out=len(categories[CATEGORIES_SHOWN:]),
        histograms=_histograms(run_dir),
        pairs=pairs,
        windowed=windowed,
        truncated=truncated,
        rejected_lines=rejected_lines,
        rejects=reject_codes(run_dir, results),
        slowest=results.select(
            "row_id", "claim_id", "category", "outcome", "status", "seconds", pl.col("pairs").list.len()
        )
        .filter(pl.col("seconds").is_not_null())
        .top_k(SLOWEST_SHOWN, by="seconds")
        .sort("seconds", "row_id", descending=[True, False])
        .collect(engine="streaming"),
    )


def _counts(cells: pl.DataFrame, key: pl.Expr) -> Counter[str]:
    return Counter(dict(cells.group_by(key.alias("key")).agg(pl.col("n").sum()).iter_rows()))


def _metrics(cells: pl.DataFrame) -> Metrics | None:
    counts = cells.group_by("label", "status").agg(pl.col("n").sum())
    return measure_cells({(label, status): n for label, status, n in counts.iter_rows()})


def _categories(cells: pl.DataFrame) -> list[Category]:
    """Largest first; nothing where no claim has a category."""
    if cells["category"].is_null().all():
        return []
    found = [
        Category(
            "(none)" if name is None else str(name),
            int(own["n"].sum()),
            _counts(own, pl.coalesce("status", "outcome")),
            _metrics(own),
        )
        for (name,), own in cells.group_by("category")
    ]
    return sorted(found, key=lambda category: (-category.claims, category.name))


def _histograms(run_dir: str | Path) -> dict[str, list[int]]:
    """Of single pairs where the method asks for such, of all pairs where it does not."""
    pairs = scan_pairs(run_dir).filter(pl.col("kind").is_in(["group", "localized", "window"]).not_())
    counts = (
        pairs.select(SCORES)
        .unpivot(variable_name="score")
        .filter(pl.col("value").is_finite())
        .group_by("score", (pl.col("value") * BINS).floor().clip(0, BINS - 1).cast(pl.Int32).alias("bin"))
        .len("n")
        .collect(engine="streaming")
    )
    histograms: dict[str, list[int]] = {}
    for score, position, n in counts.iter_rows():
        histograms.setdefault(score, [0] * BINS)[position] += n
    return {score: histograms[score] for score in SCORES if score in histograms}


def rejected_rows(run_dir: str | Path) -> tuple[int, int]:
    """How many rows of the input were rejected, and how many lines that belong to no row (of an evidence table)."""
    rows = pl.col("row_id")
    counts = scan_rejects(run_dir).select(rows.drop_nulls().n_unique(), lines=rows.null_count())
    return counts.collect(engine="streaming").row(0)


def reject_codes(run_dir: str | Path, results: pl.LazyFrame) -> tuple[Mapping[str, Any], ...]:
    """Stage, code, count and example rows of what was not decided, most frequent first.

    Args:
        run_dir: the run directory, whose ``rejects/`` are read.
        results: its result rows, with row_id, claim_id, outcome, error_code and error_message.
    """
    raw = pl.col("raw").str.slice(0, RAW_SHOWN)
    of_input = scan_rejects(run_dir).with_columns(raw, stage=pl.lit("input"))
    of_models = results.filter(pl.col("outcome") != "decided").select(
        "row_id",
        "claim_id",
        pl.lit(None, pl.String).alias("source"),
        pl.col("error_code").alias("code"),
        pl.col("error_message").alias("message"),
        pl.lit(None, pl.String).alias("raw"),
        pl.col("outcome").alias("stage"),
    )
    fields = ("row_id", "claim_id", "source", "message", "raw")
    found = (
        pl.concat([of_input, of_models])
        .group_by("stage", "code")
        .agg(pl.len().alias("count"), pl.struct(fields).head(3).alias("examples"))
        .collect(engine="streaming")
    )
    return tuple(found.sort("count", "code", descending=[True, False]).to_dicts())
