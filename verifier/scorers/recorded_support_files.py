"""Recorded support from files: a run's scored pairs, tables of pairs, and scores by claim id."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from verifier.digests import sha256_file, sha256_json, sha256_text
from verifier.errors import ConfigurationError
from verifier.grounding.premises import joined_premise
from verifier.pipeline.forms import claim_from_wice, wice_id
from verifier.protocol import Part
from verifier.records import Claim
from verifier.results import parquet_files, scan_pairs
from verifier.scorers.recorded_support import RecordedSupportScorer, check_choices

_KEYS = ("premise", "hypothesis")
# Columns that a table may lack, and what it then says.
_OPTIONAL: Mapping[str, tuple[Any, Any]] = {
    "member": (pl.String, None),
    "window": (pl.Int64, 0),
    "windows": (pl.Int64, 1),
    "truncated": (pl.Boolean, False),
}


class RecordedSupportFileScorer(RecordedSupportScorer):
    """Support recorded in a run directory or a file; see ``RecordedSupportScorer`` for the choices.

    A run directory gives its scored pairs. A table (parquet or JSON lines) has a row a pair, or a part of one, with
    ``support``, ``premise`` and ``hypothesis`` or their ``premise_sha256`` and ``hypothesis_sha256``, and perhaps
    ``member``, ``window``, ``windows``, ``truncated`` and ``kind``; a row of kind ``window`` is a part, and so is
    one that names a member or more than one window where the table has no kinds.

    Scores by claim id need ``claims``, the WiCE file with their texts: a JSON object of claim id to support, or JSON
    lines of ``id`` and ``probs``, one a variant. A score belongs to the joined premise of its claim; of ``probs`` each
    belongs to its variant's passage too, and the joined premise has their largest, with the variants as its windows.

    Args:
        path: the directory or file.
        model: name of the model that the scores came from.
        revision: its revision; None is the sha256 of the file.
        claims: the claims that scores by claim id belong to; unused for other files.
        window_aggregation, aggregation, member: how to put parts together anew.

    Raises:
        ConfigurationError: a file is missing or cannot be read as one of these, or a choice is unknown.
    """

    def __init__(
        self,
        path: str,
        model: str = "recorded",
        revision: str | None = None,
        claims: str | None = None,
        window_aggregation: str | None = None,
        aggregation: str | None = None,
        member: str | None = None,
    ) -> None:
        super().__init__((), model, revision or _digest(path), window_aggregation, aggregation, member)
        rows = _table(path, claims)
        try:
            table = rows.collect()
            if any(table[:, :2].null_count().row(0)):
                raise ValueError("a row lacks its premise or hypothesis")
        except (ValueError, pl.exceptions.PolarsError) as error:
            raise _unreadable(path, error) from error
        if table.is_empty():
            raise ConfigurationError(f"{path} holds no recorded support: name a file or a run of the grounding kind")
        for premise, hypothesis, support, member_of, window, windows, truncated, is_part in table.iter_rows():
            self._add((premise, hypothesis), Part(member_of, window, windows, support), is_part, truncated)
        self._settle()

    @classmethod
    def identify(
        cls,
        path: str,
        model: str = "recorded",
        revision: str | None = None,
        claims: str | None = None,
        window_aggregation: str | None = None,
        aggregation: str | None = None,
        member: str | None = None,
    ) -> dict[str, str]:
        """Model, revision and the sha256 of the file (of a run, over its result files), without reading all scores.

        Raises ConfigurationError where the constructor would, wrong single scores aside.
        """
        check_choices(window_aggregation, aggregation, member)
        digest = _digest(path)
        _table(path, claims)
        of_claims = {} if claims is None else {"claims_sha256": _digest(claims)}
        return {"model": model, "revision": revision or digest, "sha256": digest, **of_claims}


def _digest(path: str) -> str:
    try:
        if Path(path).is_dir():
            files = parquet_files(path, "results")
            return sha256_json([[Path(name).name, sha256_file(Path(name))] for name in files])
        return sha256_file(Path(path))
    except OSError as error:
        raise ConfigurationError(
            f"{path} cannot be read ({error.strerror}): name a run directory or a file of recorded support"
        ) from error


def _unreadable(path: str, error: Exception) -> ConfigurationError:
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return ConfigurationError(f"{path} holds no recorded support that can be read: {reason}")


def _table(path: str, claims: str | None) -> pl.LazyFrame:
    """The file's rows: both digests, support, member, window, windows, truncated, and whether it is a part."""
    try:
        if Path(path).is_dir():
            if not parquet_files(path, "results"):
                raise ValueError("the directory has no results")
            return _pairs(scan_pairs(path))
        if path.endswith(".parquet"):
            return _pairs(pl.scan_parquet(path, glob=False))
        by_claim = _scores_by_claim(path)
        if by_claim is not None:
            return _of_claims(by_claim, claims)
        return _pairs(pl.read_ndjson(Path(path), infer_schema_length=None).lazy())
    except ConfigurationError:
        raise
    except (OSError, ValueError, KeyError, TypeError, pl.exceptions.PolarsError) as error:
        raise _unreadable(path, error) from error


def _pairs(table: pl.LazyFrame) -> pl.LazyFrame:
    columns = table.collect_schema()
    keys = [_key(name, columns) for name in _KEYS]
    if "support" not in columns:
        raise ValueError("the column support is missing")
    optional = [
        (pl.col(name).cast(kind) if name in columns else pl.lit(None, kind))
        .fill_null(pl.lit(default, kind))
        .alias(name)
        for name, (kind, default) in _OPTIONAL.items()
    ]
    is_part = (
        pl.col("kind") == "window" if "kind" in columns else pl.col("member").is_not_null() | (pl.col("windows") > 1)
    )
    rows = table.filter(pl.col("support").is_not_null()).with_columns(*optional)
    return rows.select(*keys, pl.col("support").cast(pl.Float64), *_OPTIONAL, is_part.fill_null(False).alias("is_part"))


def _key(name: str, columns: pl.Schema) -> pl.Expr:
    if f"{name}_sha256" in columns:
        return pl.col(f"{name}_sha256")
    if name not in columns:
        raise ValueError(f"the column {name}_sha256 is missing")
    if columns[name] not in (pl.String, pl.Null):
        raise ValueError(f"the column {name} holds something other than texts")
    return pl.col(name).map_elements(sha256_text, return_dtype=pl.String).alias(f"{name}_sha256")


def _scores_by_claim(path: str) -> dict[str, float | list[float]] | None:
    """Claim id to its score, or to one score a variant; None where the file is a table of pairs."""
    file = Path(path)
    if path.endswith(".json"):
        scores = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(scores, dict):
            raise ValueError("a .json file must be an object of claim id to support")
        return scores
    with file.open(encoding="utf-8") as lines:
        head = json.loads(next(lines, "{}"))
        if not isinstance(head, dict) or "probs" not in head:
            return None
        records = [head, *(json.loads(line) for line in lines if line.strip())]
    return {record["id"]: record["probs"] for record in records}


def _of_claims(scores: Mapping[str, float | list[float]], path: str | None) -> pl.LazyFrame:
    if path is None:
        raise ConfigurationError("scores by claim id need scorer.claims, the WiCE file with the claims' texts")
    rows = [
        row
        for claim in _wice_claims(path)
        if claim.claim_id in scores
        for row in _claim_rows(claim, scores[claim.claim_id])
    ]
    if not rows:
        raise ValueError(f"none of its claim ids is in {path}")
    return _pairs(pl.LazyFrame(rows, infer_schema_length=None))


def _wice_claims(path: str) -> list[Claim]:
    variants: dict[str, list[Mapping[str, Any]]] = {}
    try:
        for line in Path(path).read_text(encoding="utf-8").split("\n"):
            if line.strip():
                row = json.loads(line)
                variants.setdefault(wice_id(row), []).append(row)
        return [claim_from_wice(rows) for rows in variants.values()]
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise ConfigurationError(f"scorer.claims is {path}, which is no WiCE file that can be read: {error}") from error


def _claim_rows(claim: Claim, score: float | list[float]) -> list[dict[str, Any]]:
    joined = {"premise": joined_premise(claim), "hypothesis": claim.claim}
    if not isinstance(score, list):
        return [{**joined, "kind": "joined", "support": score, "window": 0, "windows": 1}]
    if len(score) != len(claim.evidence):
        raise ValueError(f"the claim {claim.claim_id} has {len(claim.evidence)} variants but {len(score)} probs")
    whole = {"window": score.index(max(score)), "windows": len(score), "support": max(score)}
    windows = enumerate(score)
    return [
        {**joined, "kind": "joined", **whole},
        *({**joined, "kind": "window", "window": k, "windows": len(score), "support": p} for k, p in windows),
        *(
            {"premise": item.text, "hypothesis": claim.claim, "kind": "single", "support": p, "window": 0, "windows": 1}
            for item, p in zip(claim.evidence, score, strict=True)
        ),
    ]
