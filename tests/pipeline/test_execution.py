"""What a job writes of itself: no secret, and the same job is the same one again."""

import doctest
import signal
import socket
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import ray

from tests.pipeline.runs import write
from verifier.errors import ConfigurationError
from verifier.pipeline import cluster, scale
from verifier.pipeline.cluster import ActorPool, Cluster, placement
from verifier.pipeline.execution import Job, execute_job, shown
from verifier.pipeline.prepare import prepare
from verifier.pipeline.sources import InputSpec


def never(*_: Any) -> Any:
    """What must not be asked for."""
    raise AssertionError("there is nothing to verify")


def job(folder: Path, **scorer: str) -> Job:
    path = write(folder / "claims.jsonl", [{"claim_id": "bad"}])  # no row is left, so no cluster is started
    return Job(
        output_dir=str(folder / "out"),
        unit="claims",
        identity={"scorer": scorer},
        model=scorer,
        config={"tracking": {"uri": "http://me:hunter2@host/"}, "scorer": {"api_key": "sk-1", "api_key_env": "KEY"}},
        cluster=Cluster(),
        prepare=lambda progress: prepare(InputSpec("claims", str(path)), str(folder / "out")),
        work=never,
        counts=lambda prepared: {"claims": prepared.rows},
    )


def heard(*_: Any) -> None:
    """Progress that nobody looks at."""


def test_no_secret_is_written_and_the_same_job_is_known_again(tmp_path: Path) -> None:
    mine = job(tmp_path, url="https://me:hunter2@host/model?token=zz-top", revision="r1")
    run = execute_job(mine, heard)
    assert run["config"]["scorer"] == {"api_key": "***", "api_key_env": "KEY"}
    written = b"".join(path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert b"hunter2" not in written and b"sk-1" not in written and b"zz-top" not in written
    assert execute_job(mine, heard)["identity"] == run["identity"]
    with pytest.raises(ConfigurationError, match="revision was r1, now it is r2"):
        execute_job(job(tmp_path, url="https://me:hunter2@host/model?token=zz-top", revision="r2"), heard)


def test_where_the_time_of_reading_went(tmp_path: Path) -> None:
    run = execute_job(job(tmp_path), heard)
    assert {"prepare_read_seconds", "prepare_validate_seconds", "prepare_write_seconds"} <= run["timings"].keys()
    parts = sum(
        seconds for name, seconds in run["timings"].items() if name.startswith("prepare_") and name.count("_") > 1
    )
    assert 0 < parts <= run["timings"]["prepare_seconds"]


def test_a_cluster_that_does_not_answer_is_told_before_anything_is_read(tmp_path: Path) -> None:
    there = replace(job(tmp_path), cluster=Cluster(address="127.0.0.1:1"), prepare=never)
    with pytest.raises(ConfigurationError, match=r"no Ray cluster answers at 127\.0\.0\.1:1"):
        execute_job(there, heard)
    finished = execute_job(job(tmp_path), heard)
    assert (
        execute_job(replace(job(tmp_path), cluster=Cluster(address="127.0.0.1:1")), heard)["finished_at"]
        == finished["finished_at"]
    )


def test_a_port_at_which_something_else_listens_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def asks_on(**_: Any) -> None:
        while True:
            with suppress(Exception):  # as Ray does
                time.sleep(0.01)

    monkeypatch.setattr(ray, "init", asks_on)
    monkeypatch.setattr(cluster, "_ANSWER_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        with (
            pytest.raises(ConfigurationError, match=r"no answer of a head node in 0\.2 seconds.*RAY_AUTH_TOKEN"),
            cluster.connected(Cluster(address=address)),
        ):
            raise AssertionError("nobody is there")
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_places_where_no_run_goes() -> None:
    for address in ("ray://head:10001", "", "head", "head:", "head:6379 ", "local", "http://head:6379", "::1:6379"):
        with pytest.raises(ConfigurationError, match="host:port of the head node expected"):
            Cluster(address=address)
    for address in ("auto", "head:6379", "[::1]:6379", "höst:6379", "10.0.0.1:6379"):
        assert Cluster(address=address).address == address
    pool = {"autoscaled": True, "num_gpus": 1.0}
    assert placement({"address": "auto"}, pool) == (Cluster("auto"), ActorPool(autoscaled=True, num_gpus=1.0))
    with pytest.raises(ConfigurationError, match="choose cluster=gpu_pool"):
        placement({"address": None}, pool)


def test_what_is_told_before_and_after_an_actor_is_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []
    monkeypatch.setattr("verifier.pipeline.execution.capacity", lambda: {"CPU": 8.0, "GPU": 0.0})
    show = shown(lambda *what: told.append(what), "verify", 100, done_before=40)
    show({})
    show({"rows": 2.0, "pairs": 5.0})
    assert told == [
        ("load", 0, None, {"CPU": 8.0, "GPU": 0.0}),
        ("verify", 42, 100, {"rows": 2.0, "pairs": 5.0}),
    ]


def test_projections_of_the_documented_example() -> None:
    results = doctest.testmod(scale)
    assert results.attempted == 2 and results.failed == 0
