"""The actor of the verify phase: one model, whole batches of claims in, result rows out."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any

import pyarrow as pa

from verifier.errors import ConfigurationError
from verifier.protocol import Method, Outcome, Pair, Scores, run_plan
from verifier.results import result_row, results_table
from verifier.schemas import claim_from_row
from verifier.scorers.base import score_round

ScorerFactory = Callable[[], Any]
MethodFactory = Callable[[str], Method]
Report = Callable[[dict[str, float]], None]

_THREADS = 2  # one batch is planned while another is with the model


class VerifyActor:
    """Verifies tables of ``WORK_SCHEMA`` rows.

    Args:
        scorer: builds the scorer here, where it runs.
        method: builds the method from the scorer's resolved revision.
        model: the model that the policy asks for; another scorer is a ConfigurationError.
        batch_size: claims whose rounds are scored together.
        report: is told after every batch what was done, by name.
    """

    def __init__(
        self, scorer: ScorerFactory, method: MethodFactory, model: str, batch_size: int, report: Report
    ) -> None:
        started = time.perf_counter()
        self._scorer = scorer()
        if self._scorer.model != model:
            raise ConfigurationError(f"the scorer's model is {self._scorer.model!r} but the policy's is {model!r}")
        self._method = method(self._scorer.revision)
        self._batch_size = batch_size
        self._report = report
        self._model_lock = Lock()
        report({"load_seconds": time.perf_counter() - started})

    def __call__(self, table: pa.Table) -> pa.Table:
        """One result row a row of ``table``, in order."""
        batches = [table.slice(start, self._batch_size) for start in range(0, table.num_rows, self._batch_size)]
        with ThreadPoolExecutor(_THREADS) as pool:
            return pa.concat_tables(list(pool.map(self._verify, batches))) if batches else results_table([])

    def _verify(self, batch: pa.Table) -> pa.Table:
        started = time.perf_counter()
        spent = {"model": 0.0, "waiting": 0.0, "pairs": 0.0}

        def score(pairs: Sequence[Pair]) -> Scores:
            asked = time.perf_counter()
            with self._model_lock:
                began = time.perf_counter()
                scores = score_round(self._scorer, pairs)
            spent["waiting"] += began - asked
            spent["model"] += time.perf_counter() - began
            spent["pairs"] += len(pairs)
            return scores

        rows = batch.to_pylist()
        outcomes = run_plan(self._method.plan([claim_from_row(row) for row in rows]), score)
        seconds = (time.perf_counter() - started) / len(rows)
        table = self._table(rows, outcomes, seconds)
        total = time.perf_counter() - started
        self._report(
            {
                "claims": len(rows),
                "unscored": sum(outcome.error is not None for outcome in outcomes),
                "pairs": spent["pairs"],
                "model_seconds": spent["model"],
                "plan_seconds": total - spent["model"] - spent["waiting"],
            }
        )
        return table

    def _table(self, rows: Sequence[dict[str, Any]], outcomes: Sequence[Outcome], seconds: float) -> pa.Table:
        scorer = self._scorer
        return results_table(
            result_row(
                row,
                outcome,
                method=self._method.name,
                model=scorer.model,
                revision=scorer.revision,
                dtype=getattr(scorer, "dtype", "unknown"),
                seconds=seconds,
            )
            for row, outcome in zip(rows, outcomes, strict=True)
        )
