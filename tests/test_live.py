"""The tracked run of a job while it works: figures by step, and the job's fate."""

from pathlib import Path
from typing import Any

import pytest
from mlflow import MlflowClient

from verifier import live
from verifier.live import LiveRun

TRACKING = {"enabled": True, "uri": None, "experiment": "e", "run_name": None}


def heard(*_: Any) -> None:
    """Progress that nobody looks at."""


@pytest.fixture
def tracking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(live, "_SECONDS", 0.0)
    return TRACKING | {"uri": f"sqlite:///{tmp_path}/mlflow.db"}


def run_of(uri: str) -> tuple[str, dict[str, list[tuple[int, float]]], str]:
    """Status, the history of every metric, and name of the only run."""
    client = MlflowClient(uri)
    [run] = client.search_runs([client.get_experiment_by_name("e").experiment_id])  # type: ignore[union-attr]
    names = run.data.metrics
    history = {
        name: [(one.step, one.value) for one in client.get_metric_history(run.info.run_id, name)] for name in names
    }
    return run.info.status, history, run.info.run_name


def test_figures_of_the_work_phase_by_rows_done(tracking: dict[str, Any]) -> None:
    seen: list[tuple[Any, ...]] = []
    with LiveRun(tracking, "runs/mine") as opened:
        show = opened.watching(lambda *told: seen.append(told))
        show("prepare", 500, None, {"rejects": 2})
        for rows in (100, 250):
            show("verify", 400 + rows, 1000, {"rows": rows, "pairs": 3 * rows, "unscored": 1, "first_rows_at": 0.0})
        same = opened.tracker() is opened.tracker()
    status, history, name = run_of(tracking["uri"])
    assert (status, name, same) == ("FINISHED", "mine", True)
    assert [phase for phase, *_ in seen] == ["prepare", "verify", "verify"]
    assert history["progress/done"] == [(500, 500), (650, 650)]
    assert history["progress/share"] == [(500, 0.5), (650, 0.65)]
    assert history["progress/pairs"] == [(500, 300), (650, 750)] and history["progress/unscored"][0] == (500, 1)
    assert {name for name in history if name.endswith("_per_second")} == {
        "progress/rows_per_second",
        "progress/pairs_per_second",
    }


@pytest.mark.parametrize(("error", "status"), [(ValueError, "FAILED"), (KeyboardInterrupt, "KILLED")])
def test_a_job_that_ends_early_ends_its_run(tracking: dict[str, Any], error: Any, status: str) -> None:
    with pytest.raises(error), LiveRun(tracking, "runs/mine") as opened:
        opened.watching(heard)("verify", 1, 2, {"rows": 1, "first_rows_at": 0.0})
        raise error
    assert run_of(tracking["uri"])[0] == status


def test_a_job_with_nothing_to_do_opens_no_run(tracking: dict[str, Any], tmp_path: Path) -> None:
    with LiveRun(tracking, "runs/mine") as opened:
        opened.watching(heard)("prepare", 500, None, {})
    assert not (tmp_path / "mlflow.db").exists()


def test_readings_keep_their_distance(tracking: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "_SECONDS", 3600.0)
    with LiveRun(tracking, "runs/mine") as opened:
        show = opened.watching(heard)
        for rows in range(1, 50):
            show("verify", rows, None, {"rows": rows, "first_rows_at": 0.0})
    assert run_of(tracking["uri"])[1]["progress/done"] == [(1, 1)]
