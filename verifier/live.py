"""The tracked run of a job while it works: opened with its first figures, ended with its fate."""

import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from verifier.pipeline.execution import Progress
from verifier.pipeline.meter import Totals
from verifier.tracking import Tracker, open_run

_SECONDS = 10.0  # between two readings
_COUNTED = ("rows", "pairs", "unscored", "tokens_scored")


class LiveRun:
    """A context: leaving it ends the MLflow run, as finished, failed or killed; one that nobody asked for never was.

    Args:
        tracking: fields of ``verifier.tracking.Tracking``.
        run_dir: the run directory, whose name the run has unless ``tracking`` has one.
    """

    def __init__(self, tracking: Mapping[str, Any], run_dir: str) -> None:
        self._tracking, self._run_dir = tracking, run_dir
        self._stack = ExitStack()
        self._tracker: Tracker | None = None
        self._logged_at = -_SECONDS

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)

    def tracker(self) -> Tracker:
        """The run, which is opened where it is not yet."""
        if self._tracker is None:
            tracking = self._tracking
            name, enabled = tracking["run_name"] or Path(self._run_dir).name, tracking["enabled"]
            run = open_run(tracking["uri"], tracking["experiment"], name, self._run_dir, enabled=enabled)
            self._tracker = self._stack.enter_context(run)
        return self._tracker

    def watching(self, progress: Progress) -> Progress:
        """``progress`` that also logs ``progress/…`` every few seconds of the work phase; the step is rows done."""

        def show(phase: str, done: int, total: int | None, counts: Totals) -> None:
            progress(phase, done, total, counts)
            if phase == "verify" and time.monotonic() - self._logged_at >= _SECONDS:
                self._logged_at = time.monotonic()
                self.tracker().log_metrics(_figures(done, total, counts), step=done)

        return show


def _figures(done: int, total: int | None, counts: Totals) -> dict[str, float]:
    seconds = max(time.time() - counts.get("first_rows_at", time.time()), 1e-9)
    session = {name: counts[name] for name in _COUNTED if name in counts}
    rates = {f"progress/{name}_per_second": amount / seconds for name, amount in session.items() if name != "unscored"}
    share = {"progress/share": done / total} if total else {}
    return {"progress/done": done, **share, **{f"progress/{name}": count for name, count in session.items()}, **rates}
