"""What is calibrated: scored claims with labels, from a finished run or from a plain table."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from verifier.assays.sealing import refuse_sealed_texts
from verifier.calibration.selection import Bools, Comparison, Floats
from verifier.digests import sha256_file
from verifier.errors import ConfigurationError
from verifier.report.rendering import read_run, section
from verifier.results import parquet_files, scan_folder, scan_results
from verifier.schemas import WORK_SCHEMA
from verifier.sweep.decisions import ClaimKinds
from verifier.sweep.runs import RunTable, open_runs, read_claims
from verifier.sweep.settings import Setting

_GROUPS_NOTE = (
    "the score is the best entailment that the guards of the run's own policy let count; a policy takes thresholds"
    " from 0.5 on"
)
_COMPRESSED = {
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x78\x01": "zlib",
    b"\x78\x5e": "zlib",
    b"\x78\x9c": "zlib",
    b"\x78\xda": "zlib",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
}
_NAMES = ("score", "label", "group", "domain", "claim", "evidence")


@dataclass(frozen=True)
class Columns:
    """The names of a table's columns; all but score and label may be absent while they have their default names."""

    score: str = "score"
    label: str = "label"
    group: str = "group"
    domain: str = "domain"
    claim: str = "claim"
    evidence: str = "evidence"


@dataclass(frozen=True)
class Input:
    """A run directory or a table (parquet or JSON lines), and which text label is positive."""

    run: str | None = None
    table: str | None = None
    positive: str = "supported"
    columns: Columns = field(default_factory=Columns)


@dataclass(frozen=True)
class Labelled:
    """Scored claims with labels.

    Attributes:
        scores: in [0, 1], shape (n,).
        positive: whether a claim is labelled as the positive label, shape (n,).
        groups: integer codes of documents, shape (n,); claims of one document may depend on each other.
        domains: a name for each claim, or None.
        texts: (evidence, claim) of each claim, passages one a line; None where they are not known.
        comparison: what a score does to the threshold where the scores come from.
        source: where that is, with digests.
        notes: what a reader of the figures should know.
    """

    scores: Floats
    positive: Bools
    groups: NDArray[np.int64]
    domains: list[str | None]
    texts: list[tuple[str, str]] | None
    comparison: Comparison
    source: dict[str, Any]
    notes: list[str]


def read_input(spec: Input, texts: bool = False, ledger: str | None = None) -> Labelled:
    """Read the run or the table that ``spec`` names, with texts if asked; ConfigurationError says what is wrong.

    SealedCohort where a table has the claim and evidence texts of what ``ledger`` says is sealed (None: not checked).
    """
    if (spec.run is None) == (spec.table is None):
        raise ConfigurationError("give one of input.run, a finished run, and input.table, a parquet or JSONL file")
    if spec.run is not None:
        frame, comparison, source, notes = _of_run(spec.run, texts)
    else:
        frame, comparison, source, notes = _of_table(str(spec.table), spec.columns, ledger)
    if texts and not {"claim", "evidence"} <= set(frame.columns):
        raise ConfigurationError("the stack reads texts: give a table with the columns claim and evidence, or a run")
    return _labelled(frame, spec.positive, texts, comparison, source, notes)


def _of_run(run_dir: str, texts: bool) -> tuple[pl.DataFrame, Comparison, dict[str, Any], list[str]]:
    rows = scan_results(run_dir).filter(pl.col("outcome") == "decided")
    columns = ["row_id", "claim_id", "document_id", "category", "label", "support"]
    frame = rows.select(columns).sort("row_id").collect()
    if frame.is_empty():
        raise ConfigurationError(f"input.run is {run_dir}, which holds no decided claims: name a finished run")
    run, notes = read_run(run_dir), []
    if frame["support"].null_count() == len(frame):
        frame = frame.drop("support").join(_support_of_groups(run_dir), on="row_id", how="left", maintain_order="left")
        notes.append(_GROUPS_NOTE)
    if texts:
        frame = frame.join(_run_texts(run_dir), on="row_id", how="left", maintain_order="left")
    group = pl.coalesce(pl.lit("d:") + pl.col("document_id"), pl.lit("c:") + pl.col("row_id").cast(pl.String))
    frame = frame.with_columns(group=group).rename({"support": "score", "category": "domain"})
    policy = section(section(run, "config"), "policy")
    source = {"run": run_dir, "model": run.get("model"), "inputs": section(run, "input").get("inputs")}
    return frame, ">" if policy.get("comparison") == ">" else ">=", source, notes


def _support_of_groups(run_dir: str) -> pl.DataFrame:
    """How far the evidence supports each claim that a scorer was asked about, under the run's own policy."""
    runs = open_runs([run_dir])
    claims = read_claims(runs)
    own = Setting({}, runs.policy_type(**runs.policy), {})
    score = RunTable(runs, claims, [own]).decide(own).score
    score[~ClaimKinds.of(claims).asked] = np.nan
    row_ids = scan_folder(run_dir, "work", WORK_SCHEMA).select("row_id").sort("row_id").collect()
    return row_ids.with_columns(support=pl.Series(score))


def _run_texts(run_dir: str) -> pl.DataFrame:
    files = parquet_files(run_dir, "work")
    if not files:
        raise ConfigurationError(f"the run {run_dir} has no work/ folder, which holds the texts that the stack reads")
    joined = pl.col("evidence").list.eval(pl.element().struct.field("text")).list.join("\n")
    return pl.scan_parquet(files, glob=False).select("row_id", "claim", evidence=joined).collect()


def _of_table(
    path: str, columns: Columns, ledger: str | None
) -> tuple[pl.DataFrame, Comparison, dict[str, Any], list[str]]:
    try:
        if path.endswith(".parquet"):
            frame = pl.read_parquet(path)
        else:
            _refuse_compressed(path)
            frame = pl.read_ndjson(path, infer_schema_length=None)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise ConfigurationError(
            f"input.table is {path}, which cannot be read as parquet or JSON lines: {str(error).splitlines()[0]}"
        ) from error
    notes, chosen = [], []
    for name in _NAMES:
        column = getattr(columns, name)
        if column in frame.columns:
            chosen.append(pl.col(column).alias(name))
        elif name in ("score", "label") or column != name:
            raise ConfigurationError(
                f"{path} has no column {column!r}: set input.columns.{name} to one of {', '.join(frame.columns)}"
            )
    table = frame.select(chosen)
    if ledger is not None and {"claim", "evidence"} <= set(table.columns):
        refuse_sealed_texts(_claims_of(table), ledger)
    if "group" not in table.columns:
        notes.append("there is no column group: every claim counts as a document of its own")
    for name in ("score", "evidence"):
        if name in table.columns and isinstance(table.schema[name], pl.List):
            column = pl.col(name).list
            table = table.with_columns((column.max() if name == "score" else column.join("\n")).alias(name))
    return table, ">", {"table": path, "sha256": sha256_file(Path(path))}, notes


def _refuse_compressed(path: str) -> None:
    """Raise ConfigurationError for text that a reader would unpack and the check for sealed cohorts does not see."""
    with Path(path).open("rb") as file:
        start = file.read(len(max(_COMPRESSED, key=len)))
    if start.startswith(tuple(_COMPRESSED)):
        name = next(name for magic, name in _COMPRESSED.items() if start.startswith(magic))
        raise ConfigurationError(f"input.table is {path}, which is compressed as {name}: unpack it, or use gzip")


def _claims_of(table: pl.DataFrame) -> Iterator[tuple[str, list[str]]]:
    """Each claim's text with its passages; text of several lines may be one passage, or one a line."""
    for claim, evidence in table.select("claim", "evidence").iter_rows():
        passages = evidence if isinstance(evidence, list) else [evidence]
        texts = [str(text) for text in passages if text is not None]
        yield str(claim), texts
        if len(lines := [line for text in texts for line in text.split("\n")]) > len(texts):
            yield str(claim), lines


def _labelled(
    frame: pl.DataFrame, label: str, texts: bool, comparison: Comparison, source: dict[str, Any], notes: list[str]
) -> Labelled:
    if not frame.schema["score"].is_numeric():
        raise ConfigurationError(f"the scores are {frame.schema['score']}, no numbers: set input.columns.score")
    frame = frame.with_columns(pl.col("score").cast(pl.Float64))
    kept = frame.filter(pl.col("score").is_finite() & pl.col("label").is_not_null())
    if len(kept) < len(frame):
        notes = [*notes, f"{len(frame) - len(kept)} claims without a label or a score are left out"]
    scores = kept["score"].to_numpy()
    if len(scores) and not (scores.min() >= 0 and scores.max() <= 1):
        raise ConfigurationError(f"the scores reach from {scores.min():g} to {scores.max():g}: [0, 1] expected")
    positive = _positive(kept["label"], label)
    groups = kept["group"] if "group" in kept.columns else pl.Series(range(len(kept)))
    if groups.null_count():
        raise ConfigurationError("the column group has empty values: give every claim a document")
    if texts and kept.select("claim", "evidence").null_count().sum_horizontal().sum():
        raise ConfigurationError("claims without a text are there, and the stack reads texts")
    codes = np.unique(groups.cast(pl.String).to_numpy(), return_inverse=True)[1].astype(np.int64)
    digest = hashlib.sha256(scores.tobytes() + positive.tobytes() + codes.tobytes()).hexdigest()
    return Labelled(
        scores,
        positive,
        codes,
        kept["domain"].cast(pl.String).to_list() if "domain" in kept.columns else [None] * len(kept),
        list(kept.select("evidence", "claim").iter_rows()) if texts else None,
        comparison,
        {**source, "scores_sha256": digest},
        notes,
    )


def _positive(labels: pl.Series, label: str) -> Bools:
    """Booleans, and numbers 0 and 1, as they are; any other label is positive where it equals ``label``."""
    numeric = labels.dtype.is_numeric() and labels.cast(pl.Float64).is_in([0.0, 1.0]).all()
    found = labels == 1 if numeric else labels if labels.dtype == pl.Boolean else labels.cast(pl.String) == label
    positive = found.to_numpy().astype(np.bool_)
    if positive.all() or not positive.any():
        raise ConfigurationError(
            f"{positive.sum()} of {len(positive)} labelled claims are {label!r}, and both kinds are needed:"
            f" the labels are {_shown(labels.unique().sort().to_list())}; set input.positive"
        )
    return positive


def _shown(labels: Sequence[Any]) -> str:
    return ", ".join(str(label)[:40] for label in labels[:6]) or "none"
