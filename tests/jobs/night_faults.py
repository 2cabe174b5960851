"""What happens to machines in a night: whatever it is, finished work is kept and the end is that of a quiet run."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import polars as pl
import pyarrow.parquet as pq
from polars.testing import assert_frame_equal
from ray.cluster_utils import Cluster

from tests.jobs.driver import FREE, HERE, command, environment, run_json, started
from tests.jobs.free_scorer import MODEL, FreeScorer
from tests.jobs.inputs import claim_row, write_lines
from tests.jobs.servers import free_port, wait_for_port
from verifier.pipeline.actor import VerifyActor
from verifier.pipeline.leftovers import finished_rows
from verifier.pipeline.prepare import prepare
from verifier.pipeline.sources import InputSpec
from verifier.records import VerificationPolicy
from verifier.results import read_results
from verifier.search.groups import EvidenceGroups

JOB = (*FREE, "data=claims", "data.path=claims.jsonl", "checkpoint.max_rows_lost=20", "output.dir=out")
RESUMES = "what is finished is kept, the same command resumes"


def write(folder: Path, claims: int, noise: int = 0) -> pl.DataFrame:
    """The corpus ``claims.jsonl``, and the results of a run that nothing disturbs, made without Ray."""
    rows = [claim_row(n) for n in range(claims)]
    for n, row in enumerate(rows):
        row["evidence"] += [{"reference": "long", "text": random.Random(n).randbytes(noise).hex()}] if noise else []
    write_lines(folder / "claims.jsonl", rows)
    quiet = folder / "quiet"
    prepare(InputSpec("claims", str(folder / "claims.jsonl")), str(quiet))
    method = partial(EvidenceGroups, VerificationPolicy(model=MODEL, revision="r1"))
    actor = VerifyActor(partial(FreeScorer, "r1"), method, MODEL, 256, Mock())
    (quiet / "results").mkdir()
    pq.write_table(actor(pq.read_table(quiet / "work")), quiet / "results" / "all.parquet")
    return read_results(quiet).drop("seconds")


def check(folder: Path, quiet: pl.DataFrame) -> None:
    """Each claim stands once, as in the quiet run; nothing is lost, nothing doubled."""
    results = read_results(folder / "out").drop("seconds")
    assert results["row_id"].to_list() == list(range(len(quiet)))
    assert_frame_equal(results, quiet, check_exact=True)
    assert run_json(folder / "out")["status"] == "finished"


def lines(log: Path) -> list[str]:
    return log.read_text().splitlines() if log.exists() else []


def test_a_node_that_goes_and_one_that_comes(tmp_path: Path) -> None:
    quiet, log = write(tmp_path, 200), tmp_path / "log"
    with several_nodes(FREE_LOG=log, FREE_DELAY=0.2) as cluster:
        cluster.add_node(num_cpus=4)
        leaving = cluster.add_node(num_cpus=2, num_gpus=1)
        there = ("cluster=existing", f"cluster.address={cluster.address}", "actors.num_gpus=1", "actors.num_cpus=1")
        with started(tmp_path, *JOB, *there) as driver:
            driver.wait_for(lambda: finished_rows(str(tmp_path / "out")) >= 20, every=0.2)
            cluster.remove_node(leaving, allow_graceful=False)
            before = finished_rows(str(tmp_path / "out"))
            cluster.add_node(num_cpus=2, num_gpus=1)
            assert driver.process.wait(240) == 0, driver.errors()
    check(tmp_path, quiet)
    assert 20 <= before < 200
    assert len({line.split()[0] for line in lines(log)}) == 2, "one actor on the node that went, one on the new node"


def test_actors_that_no_single_node_can_hold_are_refused(tmp_path: Path) -> None:
    write(tmp_path, 3)
    with several_nodes() as cluster:
        for _ in range(2):
            cluster.add_node(num_cpus=3)
        there = ("cluster=existing", f"cluster.address={cluster.address}", "actors.num_cpus=4")
        with started(tmp_path, *JOB, *there) as driver:
            assert driver.process.wait(90) == 2, driver.errors()
            assert "the nodes of the cluster, one by one, have room for 0" in driver.errors()


@contextmanager
def several_nodes(**settings: object) -> Iterator[Cluster]:
    """A cluster of several nodes on this machine, whose workers find the modules of the tests and these settings."""
    before = dict(os.environ)
    os.environ.update(environment(**settings))
    cluster = Cluster()
    try:
        yield cluster
    finally:
        cluster.shutdown()
        os.environ.clear()
        os.environ.update(before)


def test_the_hub_is_down_then_the_tracking_server_dies_and_the_clock_moves(tmp_path: Path) -> None:
    quiet, log = write(tmp_path, 200), tmp_path / "log"
    with started(tmp_path, *JOB, FREE_HUB="down") as driver:
        assert driver.process.wait(200) == 3
        [sentence] = [line for line in driver.errors().splitlines() if "failed midway" in line]
        assert "the hub cannot be reached" in sentence and sentence.endswith(RESUMES)
    with mlflow_server(tmp_path) as (server, uri):
        tracked = ("tracking=local", f"tracking.uri={uri}")
        moved = {"PYTHONPATH": f"{HERE / 'moved_clock'}{os.pathsep}{environment()['PYTHONPATH']}"}
        moved["CLOCK_MOVES_AT"] = str(time.monotonic() + 25)
        job = (*(one for one in JOB if one != "tracking=none"), *tracked)
        with started(tmp_path, *job, FREE_LOG=log, FREE_DELAY=0.2, **moved) as driver:
            driver.wait_for(lambda: len(lines(log)) >= 100, every=0.2)
            kill_all(server)
            assert driver.process.wait(240) == 0, driver.errors()
            assert "MLflow tracking falls back to sqlite" in driver.errors()
            assert "mlruns/mlflow.db run" in driver.output()
    check(tmp_path, quiet)
    assert run_json(tmp_path / "out")["timings"]["verify_seconds"] > 0


@contextmanager
def mlflow_server(folder: Path) -> Iterator[tuple["subprocess.Popen[bytes]", str]]:
    port = free_port()
    store = ("--backend-store-uri", f"sqlite:///{folder}/server.db", "--port", str(port), "--workers", "1")
    server = subprocess.Popen(
        [sys.executable, "-m", "mlflow", "server", *store],
        cwd=folder,
        env=os.environ | {"LITELLM_LOCAL_MODEL_COST_MAP": "true"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        wait_for_port("127.0.0.1", port, server)
        yield server, f"http://127.0.0.1:{port}"
    finally:
        kill_all(server)


def kill_all(server: "subprocess.Popen[bytes]") -> None:
    """Kill a server and its workers, which answer on without it."""
    with suppress(ProcessLookupError):
        os.killpg(server.pid, signal.SIGKILL)
    server.wait(10)


def in_a_room(folder: Path, script: str) -> Any:
    """Run a shell script where mounts are its own."""
    return subprocess.run(
        ["unshare", "--map-root-user", "--mount", "bash", "-c", script],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=280,
    )


def shell(*overrides: str) -> str:
    return " ".join(f"'{part}'" for part in command(*JOB, *overrides))


def test_a_disk_that_fills_and_an_object_store_that_overflows(tmp_path: Path) -> None:
    quiet = write(tmp_path, 300, noise=200_000)
    work = sum(path.stat().st_size for path in (tmp_path / "quiet/work").iterdir())
    small = shell("cluster.object_store_gb=0.08")
    script = f"""
        mkdir out && mount -t tmpfs -o size={work + 400_000} full out
        {small} 2> first.txt; echo "ended $?"
        mount -o remount,size=2g out
        {small} 2> second.txt; echo "ended $?"
        cp -r out kept && umount out && rmdir out && mv kept out
    """
    done = in_a_room(tmp_path, script)
    said, then = ((tmp_path / name).read_text() for name in ("first.txt", "second.txt"))
    statuses = [line for line in done.stdout.splitlines() if line.startswith("ended")]
    assert statuses == ["ended 3", "ended 0"], (done.stdout, said, then)
    assert "No space left on device" in said and RESUMES in said and "Traceback" not in said, said
    check(tmp_path, quiet)
    run = run_json(tmp_path / "out")
    assert run["this_session"]["claims"] < 300, "what was finished before the disk was full is kept"
    assert run["this_session"]["spilled_bytes"] > 0


def test_a_driver_that_is_told_to_end_and_one_that_is_killed(tmp_path: Path) -> None:
    quiet = write(tmp_path, 200)
    finished = [0]
    for ending, status in ((signal.SIGTERM, 3), (signal.SIGKILL, -signal.SIGKILL)):
        with started(tmp_path, *JOB, FREE_DELAY=0.2) as driver:
            driver.wait_for(lambda: finished_rows(str(tmp_path / "out")) >= finished[-1] + 20, every=0.2)
            driver.process.send_signal(ending)
            assert driver.process.wait(60) == status, driver.errors()
            assert (RESUMES in driver.errors()) == (ending == signal.SIGTERM)
        finished.append(finished_rows(str(tmp_path / "out")))
    with started(tmp_path, *JOB) as driver:
        assert driver.process.wait(240) == 0, driver.errors()
    check(tmp_path, quiet)
    assert 0 < finished[1] < finished[2] < 200


def test_an_output_that_is_read_only_stops_before_anything_is_loaded(tmp_path: Path) -> None:
    write(tmp_path, 3)
    (tmp_path / "out").mkdir()
    done = in_a_room(tmp_path, f"mount --bind out out && mount -o remount,bind,ro out; FREE_LOADED=loaded {shell()}")
    assert done.returncode == 2 and "out, which cannot be written to: " in done.stderr, done.stderr
    assert "Read-only file system" in done.stderr and len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "loaded").exists()
