"""LLM-AggreFact: parquet with the columns dataset, doc, claim and label (1 supported, 0 not)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from verifier.assays.cohorts.reading import Loaded, at, claim_of, status_of
from verifier.digests import sha256_text
from verifier.errors import ConfigurationError
from verifier.pipeline.parquet import open_parquet
from verifier.records import Claim, Status

ROLES = ("claims",)
COLUMNS = ("dataset", "doc", "claim", "label")
_LABELS = {1: Status.SUPPORTED, 0: Status.INSUFFICIENT}


def load(paths: Mapping[str, Path], options: Mapping[str, str]) -> Loaded:
    """One claim a row, its document the only evidence; category is the data set it came from.

    The id is ``<dataset>-<row number from 0>``, as the published files have none. Claims on the same text share a
    ``document_id``, so that folds keep them together.
    """
    path = paths["claims"]
    try:
        open_parquet(path, str(path)).close()  # Polars too would go down a deep schema by recursion
        table = pl.read_parquet(path, columns=list(COLUMNS))
    except ConfigurationError:
        raise
    except (OSError, ValueError, pa.ArrowException, pl.exceptions.PolarsError) as error:
        raise ConfigurationError(f"{path} is no parquet file with the columns {', '.join(COLUMNS)}: {error}") from error
    rows = enumerate(table.iter_rows(named=True))
    return Loaded(len(table), [at(path, f"row {number}", _claim, number, row) for number, row in rows])


def _claim(number: int, row: Mapping[str, Any]) -> Claim:
    document = row["doc"]
    return claim_of(
        claim_id=f"{row['dataset']}-{number}",
        claim=row["claim"],
        evidence=[{"reference": "doc", "text": document}],
        label=status_of(row["label"], _LABELS),
        category=row["dataset"],
        document_id=sha256_text(document)[:16] if isinstance(document, str) else None,
    )
