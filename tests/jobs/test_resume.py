"""Killed at any moment, the same command resumes, and the end is that of a run that nobody disturbed."""

import hashlib
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import polars as pl
import pyarrow.parquet as pq
import pytest
from polars.testing import assert_frame_equal

from tests.jobs.driver import FREE, Job, run, run_forked, run_json, started
from tests.jobs.free_scorer import MODEL, FreeScorer
from tests.jobs.inputs import write_form
from verifier.pipeline.actor import VerifyActor
from verifier.pipeline.leftovers import drop_leftovers, finished_rows
from verifier.pipeline.prepare import prepare
from verifier.pipeline.sources import InputSpec
from verifier.records import VerificationPolicy
from verifier.results import read_rejects, read_results, results_table
from verifier.search.groups import EvidenceGroups

CLAIMS = 240
MAX_LOST = 48
IDLE_LINES = {"claims": 40_000, "joined": 40_000, "wice": 40_000}


def log_lines(log: Path) -> list[str]:
    return log.read_text().splitlines() if log.exists() else []


def asked(log: Path) -> set[str]:
    """Claims whose hypothesis the scorer was asked about, by text; windows and groups ask the same one again."""
    return {line.partition(" ")[2] for line in log_lines(log)}


def verdicts(output: Path) -> pl.DataFrame:
    return read_results(output).drop("seconds")


def files_of(output: Path) -> dict[str, tuple[str, int]]:
    found = [path for path in output.rglob("*") if path.is_file()]
    return {str(path): (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns) for path in found}


def pending(output: Path) -> bool:
    return any(name.endswith(".pending.parquet") for name in os.listdir(output / "checkpoint"))  # noqa: PTH208  (fast)


@pytest.mark.parametrize("form", IDLE_LINES)
def test_killed_at_any_moment_it_resumes_to_the_same_end(tmp_path: Path, form: str) -> None:
    seed = int(os.environ.get("KILL_SEED", time.time_ns() % 100_000))
    print(f"KILL_SEED={seed}")
    moment = random.Random(seed)
    data = write_form(tmp_path, form, CLAIMS, IDLE_LINES[form])
    job = (*FREE, *data, f"checkpoint.max_rows_lost={MAX_LOST}")
    reading = undisturbed(tmp_path, form, job)

    output, log = tmp_path / "killed", tmp_path / "log"
    job = (*job, "output.dir=killed")
    slow = {"FREE_LOG": log, "FREE_DELAY": 0.03}
    with started(tmp_path, *job, **slow) as driver:  # during prepare
        driver.wait_for((output / "work").exists)
        time.sleep(moment.uniform(0, 0.5) * reading)
        driver.kill()
        assert not (output / "prepare.json").exists(), "the moment was missed: give the form more idle lines"
    assert not log.exists()

    with started(tmp_path, *job, **slow) as driver:  # during verify
        wanted = moment.randrange(1, CLAIMS // 2)
        driver.wait_for(lambda: len(asked(log)) >= wanted)
        driver.kill()
        assert finished_rows(str(output)) < CLAIMS
        watch_orphans(driver, output)
    lost = len(asked(log)) - finished_rows(str(output))
    print(f"{form}: killed in verify after {wanted} claims, {lost} lost")
    assert 0 <= lost <= MAX_LOST

    others = ("policy.entailment_threshold=0.81", "scorer.revision=r2", "data.path=other.jsonl")
    (tmp_path / "other.jsonl").write_bytes((tmp_path / data[1].partition("=")[2]).read_bytes() + b"\n{}\n")
    refused = run_forked([(tmp_path, (*job, other.replace("scorer.rev", "+scorer.rev")), {}) for other in others])
    for (status, error), names in zip(refused, ("entailment_threshold", "revision", "other.jsonl"), strict=True):
        assert status == 2 and names in error and len(error.strip().splitlines()) == 1, error

    if form == "claims":  # what is written does not depend on the form
        killed_while_writing(tmp_path, job, slow, output, moment)

    log.unlink()
    with started(tmp_path, *job, "actors.batch_size=7", "cluster.num_cpus=5", **slow) as driver:  # an actor
        driver.wait_for(lambda: len(asked(log)) >= 10)
        actor = int(log_lines(log)[-1].split()[0])
        os.kill(actor, signal.SIGKILL)
        assert driver.process.wait(300) == 0, driver.errors()
        pids = {int(line.split()[0]) for line in log_lines(log)}
        assert actor in pids and len(pids) > 1, "Ray did not start the actor again"

    check_end(tmp_path / "clean", output)
    before = files_of(output)
    again, harmless = run_forked(
        [(tmp_path, job, {}), (tmp_path, (*job, "actors.max_size=2", "tracking.run_name=x"), {})]
    )
    assert (again[0], harmless[0]) == (0, 0), (again, harmless)
    assert files_of(output) == before


def killed_while_writing(
    folder: Path, job: tuple[str, ...], slow: Mapping[str, object], output: Path, moment: random.Random
) -> None:
    with started(folder, *job, **slow) as driver:
        before, more = finished_rows(str(output)), moment.randrange(1, CLAIMS // 6)
        driver.wait_for(lambda: finished_rows(str(output)) >= min(before + more, CLAIMS - MAX_LOST), every=0.1)
        driver.wait_for(lambda: pending(output), every=0.001)
        driver.kill()
    print(f"killed while writing after {before} + {more} rows")


def undisturbed(folder: Path, form: str, job: tuple[str, ...]) -> float:
    """Make the run to compare with, without Ray but for one form; returns the seconds that reading took."""
    clean = folder / "clean"
    if form == "claims":
        status, _, errors = run(folder, *job, "output.dir=clean")
        assert status == 0, errors
        return float(run_json(clean)["timings"]["prepare_seconds"])
    path = {name: str(folder / f"{name}.jsonl") for name in ("claims", "evidence", "wice")}
    spec = {
        "joined": InputSpec("joined", path["claims"], path["evidence"]),
        "wice": InputSpec("wice", path["wice"]),
    }[form]
    began = time.monotonic()
    prepare(spec, str(clean))
    took = time.monotonic() - began
    policy = VerificationPolicy(model=MODEL, revision="r1")
    actor = VerifyActor(partial(FreeScorer, "r1"), partial(EvidenceGroups, policy), MODEL, 256, Mock())
    (clean / "results").mkdir()
    pq.write_table(actor(pq.read_table(clean / "work")), clean / "results" / "all.parquet")
    return took


def check_end(clean: Path, output: Path) -> None:
    results = verdicts(output)
    assert results["row_id"].to_list() == sorted(set(results["row_id"].to_list()))
    assert results["claim_id"].n_unique() == CLAIMS
    assert_frame_equal(results, verdicts(clean), check_exact=True)
    assert_frame_equal(read_rejects(output), read_rejects(clean))


def watch_orphans(driver: Job, output: Path) -> None:
    """What outlives a driver writes nothing once its workers are gone, and these are gone within seconds."""
    killed = time.monotonic()
    while any(process.name().startswith(("ray::Map", "ray::Write")) for process in driver.orphans()):
        assert time.monotonic() - killed < 30, "workers outlive their driver"
        time.sleep(0.1)
    print(f"workers were gone {time.monotonic() - killed:.1f} s after their driver")


def _result_file(output: Path, mark: str, rows: list[int], marked: bool = True) -> Path:
    blank = dict.fromkeys(results_table([]).column_names)
    path = output / "results" / f"{mark}-0.parquet"
    for folder in ("results", "checkpoint"):
        (output / folder).mkdir(parents=True, exist_ok=True)
    pq.write_table(results_table([blank | {"row_id": row} for row in rows]), path)
    if marked:
        pq.write_table(
            results_table([blank | {"row_id": row} for row in rows]).select(["row_id"]),
            output / "checkpoint" / f"{mark}.parquet",
        )
    return path


DROPS: dict[str, Callable[[Path], list[Path]]] = {
    "nothing": lambda output: [],
    "not marked": lambda output: [_result_file(output, "u_0", [3, 4], marked=False)],
    "cut short": lambda output: [_torn(output)],
    "verified again by one": lambda output: [_result_file(output, "a_9", [1, 2])],
    "verified again by several": lambda output: [_result_file(output, "a_9", [2, 3])],
}


def _torn(output: Path) -> Path:
    path = output / "results" / "t_0-0.parquet"
    path.write_bytes(b"PAR1 and no more")
    return path


@pytest.mark.parametrize("left", DROPS)
def test_what_an_orphan_left_is_dropped(tmp_path: Path, left: str) -> None:
    _result_file(tmp_path, "b_0", [1, 2])
    _result_file(tmp_path, "b_1", [3, 4])
    expected = DROPS[left](tmp_path)
    assert drop_leftovers(str(tmp_path), 4) == [str(path) for path in expected]
    rows = Counter(read_results(tmp_path)["row_id"].to_list())
    assert rows == Counter([1, 2, 3, 4])
    assert finished_rows(str(tmp_path)) == 4
    assert drop_leftovers(str(tmp_path), 4) == []
