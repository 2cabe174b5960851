"""The figures of a report on answers: small aggregates of results and rejects, computed lazily."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from verifier.answers.results import scan_answers
from verifier.fusion.verdicts import Verdict
from verifier.report.figures import BINS, CATEGORIES_SHOWN, reject_codes, rejected_rows

FUSION_VERDICTS = tuple(verdict.value for verdict in Verdict)
RECEIPT_VERDICTS = ("supported", "contradicted", "conflicting", "unverified")
WORST_FIRST = ("contradicted", "conflicting", "unsupported", "unverified", "evidence_redacted", "partial", "supported")
SHARES = ("none", "under 25 %", "25 % to 50 %", "50 % to 75 %", "75 % to 100 %", "all")
"""Bins of a grounded fraction: 0 and 1 stand for themselves, the others hold their lower end."""

STATE = (
    pl.when(pl.col("outcome") == "unscored")
    .then(pl.lit("unavailable"))
    .when(pl.col("outcome") == "rejected")
    .then(pl.lit("rejected"))
    .when(pl.col("verification").str.starts_with("unknown"))
    .then(pl.lit("unknown"))
    .otherwise(pl.lit("verified"))
    .alias("state")
)
"""What became of an answer: verified, unknown (a receipt without claims), unavailable or rejected."""

_CATEGORY = pl.col("category").fill_null("(none)")


@dataclass(frozen=True, slots=True)
class AnswerCategory:
    """One category: its answers, how many of them are not verified, and its claims by verdict."""

    name: str
    answers: int
    not_verified: int
    claims: int
    verdicts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class AnswerFigures:
    """Everything a report on answers counts.

    Attributes:
        receipts: whether the answers got receipts; else they were matched with their own evidence plans.
        answers: answers of results and rejects together.
        states: verified, unknown, unavailable and rejected answers.
        claims, pairs, truncated: claims, pairs that a scorer was asked, texts that the embedder cut.
        redacted, withheld: answers delivered without some of their claims; not delivered at all.
        is_grounded: answers whose receipts say so.
        verdicts: verdict to claims; every verdict of this kind of run stands, with 0 if need be.
        histograms: verdict to claims for each of ``BINS`` equal bins of [0, 1]; only verdicts that occur.
        grounded: bin of the grounded fraction (``SHARES``, then unknown) to answers; empty without receipts.
        categories: largest first; none where no answer has one.
        rejected_lines, rejects: see ``Figures``.
    """

    receipts: bool
    answers: int
    states: Mapping[str, int]
    claims: int
    pairs: int
    truncated: int
    redacted: int
    withheld: int
    is_grounded: int
    verdicts: Mapping[str, int]
    histograms: Mapping[str, list[int]]
    grounded: Mapping[str, int]
    categories: tuple[AnswerCategory, ...]
    categories_left_out: int
    rejected_lines: int
    rejects: tuple[Mapping[str, Any], ...]


def gather_answers(run_dir: str | Path, receipts: bool) -> AnswerFigures:
    """Compute the figures of a run directory; ``receipts`` says whether its answers got receipts."""
    answers = scan_answers(run_dir)
    totals = answers.select(
        pl.col("claims", "pairs").list.len().sum(),
        pl.col("truncated").sum(),
        redacted=(pl.col("delivered") != pl.col("answer")).sum(),
        withheld=pl.col("delivered").is_null().sum(),
        is_grounded=(pl.col("receipt").str.json_path_match("$.is_grounded") == "true").sum(),
    )
    (found,) = totals.collect(engine="streaming").to_dicts()
    states = dict(answers.group_by(STATE).len().collect(engine="streaming").iter_rows())
    rejected, lines = rejected_rows(run_dir)
    states = {name: states.get(name, 0) for name in ("verified", "unknown", "unavailable")} | {
        "rejected": states.get("rejected", 0) + rejected
    }
    histograms = _histograms(answers)
    expected = RECEIPT_VERDICTS if receipts else FUSION_VERDICTS
    verdicts = dict.fromkeys(expected, 0) | {verdict: sum(counts) for verdict, counts in histograms.items()}
    categories, left_out = _categories(answers)
    return AnswerFigures(
        **found,
        receipts=receipts,
        answers=sum(states.values()),
        states=states,
        verdicts=verdicts,
        histograms={verdict: histograms[verdict] for verdict in verdicts if verdict in histograms},
        grounded=_grounded(answers) if receipts else {},
        categories=categories,
        categories_left_out=left_out,
        rejected_lines=lines,
        rejects=reject_codes(run_dir, answers.rename({"answer_id": "claim_id"})),
    )


def _claims(answers: pl.LazyFrame) -> pl.LazyFrame:
    claims = answers.select(_CATEGORY, "claims").explode("claims").filter(pl.col("claims").is_not_null())
    return claims.select("category", *(pl.col("claims").struct.field(name) for name in ("verdict", "score")))


def _histograms(answers: pl.LazyFrame) -> dict[str, list[int]]:
    """Every claim counts: a cosine below 0 stands in the first bin."""
    position = (pl.col("score") * BINS).floor().fill_nan(0).fill_null(0).clip(0, BINS - 1).cast(pl.Int32).alias("bin")
    counts = _claims(answers).group_by("verdict", position).len().collect(engine="streaming")
    histograms: dict[str, list[int]] = {}
    for verdict, place, n in counts.iter_rows():
        histograms.setdefault(verdict, [0] * BINS)[place] += n
    return histograms


def _grounded(answers: pl.LazyFrame) -> dict[str, int]:
    fraction = pl.col("grounded_fraction")
    position = pl.when(fraction >= 1).then(5).when(fraction > 0).then((fraction * 4).floor() + 1).otherwise(0)
    counts = (
        answers.filter(STATE.is_in(["verified", "unknown"]))
        .group_by(pl.when(fraction.is_not_null()).then(position).cast(pl.Int32).alias("bin"))
        .len()
        .collect(engine="streaming")
    )
    by_bin = dict(counts.iter_rows())
    return {name: by_bin.get(place, 0) for place, name in enumerate(SHARES)} | {"unknown": by_bin.get(None, 0)}


def _categories(answers: pl.LazyFrame) -> tuple[tuple[AnswerCategory, ...], int]:
    """The largest categories with their claims, and how many others there are."""
    counts = (
        answers.group_by("category")
        .agg(pl.len().alias("answers"), (STATE != "verified").sum().alias("not_verified"))
        .collect(engine="streaming")
    )
    if counts["category"].is_null().all():
        return (), 0
    shown = counts.with_columns(_CATEGORY).sort("answers", "category", descending=[True, False]).head(CATEGORIES_SHOWN)
    cells = (
        _claims(answers)
        .filter(pl.col("category").is_in(shown["category"].to_list()))
        .group_by("category", "verdict")
        .len()
        .collect(engine="streaming")
    )
    verdicts: dict[str, dict[str, int]] = {}
    for name, verdict, n in cells.iter_rows():
        verdicts.setdefault(name, {})[verdict] = n
    categories = tuple(
        AnswerCategory(name, n, not_verified, sum(verdicts.get(name, {}).values()), verdicts.get(name, {}))
        for name, n, not_verified in shown.select("category", "answers", "not_verified").iter_rows()
    )
    return categories, counts.height - len(categories)
