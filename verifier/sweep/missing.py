"""Going on with a search where what was recorded ends: the pairs that settings lack are asked, and no others."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from verifier.protocol import (
    CONFIRMATION,
    LABELS,
    Asks,
    Outcome,
    Pair,
    PairError,
    ScoredPair,
    Scores,
    run_plan,
    scored_rows,
)
from verifier.records import Claim
from verifier.results import PAIR, pair_row
from verifier.scorers.base import ask_round
from verifier.sweep.scores import PAIR_COLUMNS, RunScores
from verifier.sweep.settings import Setting


def ask_missing(
    scorer: Any,
    method: Any,
    settings: Sequence[Setting],
    claims: Sequence[Claim],
    lacking: Sequence[Sequence[int]],
    known: Sequence[Mapping[str, Any]],
) -> list[Outcome]:
    """What was asked for each claim, in ``Outcome.pairs``, and why a pair got no score; nothing is decided.

    Args:
        scorer: the one that the known scores came from.
        method: its type, such as ``EvidenceGroups``.
        settings: all of the sweep.
        claims: any number.
        lacking: numbers of the settings under which each claim lacks pairs.
        known: the recorded pairs of the claims, with ``PAIR_COLUMNS``.
    """
    batch = _Batch(scorer, method.asks, len(claims), known)
    for number in sorted({number for numbers in lacking for number in numbers}):
        setting = settings[number]
        rows = [row for row, numbers in enumerate(lacking) if number in numbers]
        plan = method(setting.policy, scorer.revision).plan([claims[row] for row in rows])
        run_plan(plan, batch.answering(rows, setting.choices))
    return [Outcome(None, tuple(pairs), batch.errors.get(row)) for row, pairs in enumerate(batch.asked)]


class _Batch:
    """What is known of the pairs of some claims by now, and what was asked for each."""

    def __init__(self, scorer: Any, asks: Asks, claims: int, known: Sequence[Mapping[str, Any]]) -> None:
        self._scorer, self._asks = scorer, asks
        self._known = [_frame(known)]
        self._records: dict[tuple[Any, ...], RunScores] = {}
        self._tried: set[tuple[bool, str, str]] = set()
        self.asked: list[list[ScoredPair]] = [[] for _ in range(claims)]
        self.errors: dict[int, PairError] = {}

    def answering(self, rows: Sequence[int], choices: Mapping[str, Any]) -> Any:
        """Answers the rounds of a plan over these rows of the batch."""

        def score(pairs: Sequence[Pair]) -> Scores:
            record = self._record(choices)
            scores = record.round(pairs, self._asks)
            untried = [pairs[index] for index in scores.errors if _key(pairs[index]) not in self._tried]
            if not untried:
                return scores
            self._ask(untried, rows)
            return record.round(pairs, self._asks)

        return score

    def _record(self, choices: Mapping[str, Any]) -> RunScores:
        key = tuple(choices.items())
        if key not in self._records:
            self._records[key] = RunScores(pl.concat(self._known), choices)
        return self._records[key]

    def _ask(self, pairs: Sequence[Pair], rows: Sequence[int]) -> None:
        self._tried.update(map(_key, pairs))
        scores = ask_round(self._scorer, pairs, self._asks)
        fresh: list[ScoredPair] = []
        for index, pair in enumerate(pairs):
            if index in scores.errors:
                self.errors.setdefault(rows[pair.row], scores.errors[index])
                continue
            scored = scored_rows(pair, _named(scores.values[index]), scores, index)
            self.asked[rows[pair.row]] += scored
            fresh += scored
        self._known.append(_frame([pair_row(pair) for pair in fresh]))
        for record in self._records.values():
            record.add(self._known[-1])


def _frame(pairs: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    table = pa.Table.from_pylist(list(pairs), schema=pa.schema([PAIR.field(name) for name in PAIR_COLUMNS]))
    return pl.DataFrame(table)


def _key(pair: Pair) -> tuple[bool, str, str]:
    return pair.kind == CONFIRMATION, pair.premise, pair.hypothesis


def _named(values: NDArray[np.float64]) -> dict[str, float]:
    return dict(zip(LABELS, values.tolist(), strict=True)) if values.ndim else {"support": float(values)}
