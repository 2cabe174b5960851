"""The actor of the verify phase: one model, whole batches of claims in, result rows out."""

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any

import pyarrow as pa

from verifier.errors import ConfigurationError
from verifier.garbage import THRESHOLD
from verifier.pipeline.gauges import ActorGauges
from verifier.pipeline.meter import Meter, told_of_loading
from verifier.protocol import Method, Outcome, Pair, Scores, run_plan
from verifier.results import result_row, results_table
from verifier.schemas import claim_from_row, table_slices
from verifier.scorers.base import ask_round

ScorerFactory = Callable[[], Any]
MethodFactory = Callable[[str], Method]

_THREADS = 2  # one batch is planned while another is with the model
COUNTERS = (
    *("tokens_scored", "tokens_padded", "seconds_tokenizing"),
    *("calls", "retried", "prompt_tokens", "completion_tokens"),
)
"""What scorers and their engines count, where they do."""


class VerifyActor:
    """Verifies tables of ``WORK_SCHEMA`` rows.

    Args:
        scorer: builds the scorer here, where it runs.
        method: builds the method from the scorer's resolved revision.
        model: the model that the policy asks for; another scorer is a ConfigurationError.
        batch_size: claims whose rounds are scored together.
        meter: is told what was done, and what the scorer warned of while it was built.
    """

    def __init__(self, scorer: ScorerFactory, method: MethodFactory, model: str, batch_size: int, meter: Meter) -> None:
        with told_of_loading(meter):
            self._scorer = scorer()
        if self._scorer.model != model:
            raise ConfigurationError(f"the scorer's model is {self._scorer.model!r} but the policy's is {model!r}")
        self._method = method(self._scorer.revision)
        self._batch_size = batch_size
        self._meter = meter
        self._model_lock = Lock()
        self._gauges = ActorGauges()
        gc.freeze()  # libraries and model stay: not looked through again
        gc.set_threshold(THRESHOLD, *gc.get_threshold()[1:])
        self._cpu_seconds = time.process_time()

    def __call__(self, table: pa.Table) -> pa.Table:
        """One result row a row of ``table``, in order."""
        batches = table_slices(table, self._batch_size)
        with ThreadPoolExecutor(_THREADS) as pool:
            return pa.concat_tables(list(pool.map(self._verify, batches))) if batches else results_table([])

    def _verify(self, batch: pa.Table) -> pa.Table:
        started = time.perf_counter()
        elsewhere = 0.0  # seconds with the model or waiting for it

        def score(pairs: Sequence[Pair]) -> Scores:
            nonlocal elsewhere
            asked = time.perf_counter()
            self._gauges.queue(1)
            with self._model_lock:
                self._gauges.queue(-1)
                began = time.perf_counter()
                before = self._counters()
                scores = ask_round(self._scorer, pairs, self._method.asks)
                counted = {name: count - before[name] for name, count in self._counters().items()}
            ended = time.perf_counter()
            elsewhere += ended - asked
            done = {"pairs": len(pairs), "model_seconds": ended - began, **counted}
            if "seconds_tokenizing" in done:
                done["tokenize_seconds"] = done.pop("seconds_tokenizing")
            self._meter.add(done)
            self._gauges.add(done)
            return scores

        rows = batch.to_pylist()
        outcomes = run_plan(self._method.plan([claim_from_row(row) for row in rows]), score)
        table = self._table(rows, outcomes, time.perf_counter() - started)
        total = time.perf_counter() - started
        cpu_before, self._cpu_seconds = self._cpu_seconds, time.process_time()
        self._gauges.add({"rows": len(rows)})
        self._meter.add(
            {
                "rows": len(rows),
                "unscored": sum(outcome.error is not None for outcome in outcomes),
                "plan_seconds": total - elsewhere,
                "batch_seconds": total,
                "cpu_seconds": self._cpu_seconds - cpu_before,
            }
        )
        return table

    def _counters(self) -> dict[str, float]:
        counted = [
            part for scorer in _scorers_within(self._scorer) for part in (scorer, getattr(scorer, "engine", None))
        ]
        names = {name for name in COUNTERS for part in counted if hasattr(part, name)}
        return {name: sum(getattr(part, name, 0) for part in counted) for name in names}

    def _table(self, rows: Sequence[dict[str, Any]], outcomes: Sequence[Outcome], seconds: float) -> pa.Table:
        scorer = self._scorer
        # What a claim's texts are of all that were read is the best guess of its share of the time.
        read = [1 + sum(len(pair.premise) + len(pair.hypothesis) for pair in outcome.pairs) for outcome in outcomes]
        return results_table(
            result_row(
                row,
                outcome,
                method=self._method.name,
                model=scorer.model,
                revision=scorer.revision,
                dtype=getattr(scorer, "dtype", "unknown"),
                seconds=seconds * characters / sum(read),
            )
            for row, outcome, characters in zip(rows, outcomes, read, strict=True)
        )


def _scorers_within(scorer: Any) -> Iterator[Any]:
    """A scorer and those that it is made of."""
    yield scorer
    parts = (getattr(scorer, name, None) for name in ("cheap", "decisive", "cosine", "labels"))
    for part in (*getattr(scorer, "members", {}).values(), *parts):
        if part is not None:
            yield from _scorers_within(part)
