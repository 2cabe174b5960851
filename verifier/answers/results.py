"""Reading the results of a run on answers."""

from pathlib import Path

import polars as pl

from verifier.answers.schemas import CHECKED_SCHEMA
from verifier.results import scan_folder


def scan_answers(run_dir: str | Path) -> pl.LazyFrame:
    """One row an answer (CHECKED_SCHEMA), lazily; a run without results has none."""
    return scan_folder(run_dir, "results", CHECKED_SCHEMA)


def read_answers(run_dir: str | Path) -> pl.DataFrame:
    """The rows of a run's answers in the order of the input."""
    return scan_answers(run_dir).sort("row_id").collect()
