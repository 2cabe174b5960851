"""The recorded scores of finished runs, as a sweep looks them up."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from verifier.protocol import CONFIRMATION, LABELS, Asks, Pair, Part, Scores
from verifier.results import scan_pairs
from verifier.scorers.base import ask_round, support_round
from verifier.scorers.recorded import RecordedScorer
from verifier.scorers.recorded_support import RecordedSupportScorer

Labels = dict[tuple[str, str], tuple[float, float]]
"""sha256 of premise and hypothesis to entailment and contradiction."""

_KEYS = ("premise_sha256", "hypothesis_sha256")
_PART = ("support", "member", "window", "windows", "truncated", "kind")
PAIR_COLUMNS = (*_KEYS, *_PART, *LABELS)
"""What a sweep reads of a scored pair."""


def run_pairs(run_dirs: Sequence[str]) -> pl.DataFrame:
    """Every scored pair of the runs: keys, kind and values, in the order of the runs and of their rows."""
    frames = [scan_pairs(run).sort("row_id", maintain_order=True) for run in run_dirs]
    return pl.concat([frame.select(PAIR_COLUMNS) for frame in frames]).collect()


def recorded_labels(pairs: pl.DataFrame) -> Labels:
    """The three-label scores of ``run_pairs``; of a pair recorded twice the first stands, as in RecordedScorer."""
    rows = pairs.filter(pl.col("entailment").is_not_null()).unique(_KEYS, keep="first", maintain_order=True)
    keys = zip(rows[_KEYS[0]].to_list(), rows[_KEYS[1]].to_list(), strict=True)
    return dict(zip(keys, zip(rows["entailment"].to_list(), rows["contradiction"].to_list(), strict=True), strict=True))


class RunSupport(RecordedSupportScorer):
    """The support that runs recorded; ``choices`` put windows and members together anew."""

    def __init__(self, pairs: pl.DataFrame, choices: Mapping[str, Any]) -> None:
        super().__init__((), **choices)
        self.add(pairs)

    def add(self, pairs: pl.DataFrame) -> None:
        """Take further pairs in; of a pair recorded twice the first stands."""
        rows = pairs.filter(pl.col("support").is_not_null() & (pl.col("kind") != CONFIRMATION))
        for premise, hypothesis, support, member, window, windows, truncated, kind in rows.select(
            *_KEYS, *_PART
        ).iter_rows():
            self._add((premise, hypothesis), Part(member, window, windows, support), kind == "window", truncated)
        self._settle()

    def round(self, pairs: Sequence[Pair]) -> Scores:
        """The scores of a round; NaN and an error where a pair was not recorded."""
        return support_round(self, pairs)


class RunLabels(RecordedScorer):
    """The three-label scores that runs recorded."""

    def __init__(self, pairs: pl.DataFrame) -> None:
        super().__init__(())
        self.add(pairs)

    def add(self, pairs: pl.DataFrame) -> None:
        """Take further pairs in; of a pair recorded twice the first stands."""
        rows = pairs.filter(pl.col("entailment").is_not_null())
        for premise, hypothesis, *triple in rows.select(*_KEYS, *LABELS).iter_rows():
            self._values.setdefault((premise, hypothesis), triple)


class RunScores:
    """Everything that runs recorded, as a scorer of whatever a method asks.

    Args:
        pairs: with ``PAIR_COLUMNS``.
        choices: see ``RunSupport``.
    """

    def __init__(self, pairs: pl.DataFrame, choices: Mapping[str, Any]) -> None:
        self.labels, self.cosine = RunLabels(pairs), RunSupport(pairs, choices)

    def add(self, pairs: pl.DataFrame) -> None:
        """Take further pairs in; of a pair recorded twice the first stands."""
        self.labels.add(pairs)
        self.cosine.add(pairs)

    def round(self, pairs: Sequence[Pair], asks: Asks) -> Scores:
        """The scores of a round; NaN and an error where a pair was not recorded."""
        parts = {"labels": self.labels, "support": self.cosine}
        return ask_round(parts.get(asks, self), pairs, asks)


def known(scores: Scores) -> "np.ndarray[Any, np.dtype[np.float64]]":
    """The values of a round, NaN where a pair has none."""
    values = scores.values.copy()
    values[list(scores.errors)] = np.nan
    return values
