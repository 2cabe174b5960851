"""What a job writes of itself: no secret, and the same job is the same one again."""

import doctest
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.runs import write
from verifier.errors import ConfigurationError
from verifier.pipeline import scale
from verifier.pipeline.cluster import Cluster
from verifier.pipeline.execution import Job, execute_job
from verifier.pipeline.prepare import prepare
from verifier.pipeline.sources import InputSpec


def job(folder: Path, **scorer: str) -> Job:
    path = write(folder / "claims.jsonl", [{"claim_id": "bad"}])  # no row is left, so no cluster is started

    def never(*_: Any) -> None:
        raise AssertionError("there is nothing to verify")

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


def test_projections_of_the_documented_example() -> None:
    results = doctest.testmod(scale)
    assert results.attempted == 2 and results.failed == 0
