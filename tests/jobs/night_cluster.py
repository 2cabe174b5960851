"""Jobs on a cluster with its own job server: submitted as README and manifest say, with data in an object store."""

import json
import logging
import os
import re
import shlex
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import psutil
import pyarrow.parquet as pq
import pytest
import ray
import yaml
from moto.server import ThreadedMotoServer
from pyarrow import fs

from tests.jobs.driver import REPOSITORY, environment, run_json
from tests.jobs.inputs import claim_row
from tests.jobs.servers import AUTHENTICATED, free_port, ray_head
from verifier.records import Claim, Evidence, VerificationPolicy
from verifier.results import read_results
from verifier.scorers.offline import OfflineScorer
from verifier.search.verify import verify_claims

CLAIMS = 1200
FIGURES = {"rows_total", "pairs_total", "batches_waiting"}


@dataclass
class Place:
    """A cluster and a bucket."""

    server: str
    metrics: str
    clone: Path
    environment: dict[str, str]

    def submit(self, entrypoint: str, **variables: str) -> "subprocess.Popen[str]":
        runtime = {"working_dir": str(self.clone), "env_vars": {**self.environment, **variables}}
        job = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("submitted.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **AUTHENTICATED},
            text=True,
        )
        assert job.stdin is not None
        json.dump({"server": self.server, "entrypoint": entrypoint, "runtime_env": runtime}, job.stdin)
        job.stdin.close()
        return job

    def scraped(self) -> str:
        """What Prometheus would read."""
        return str(urllib.request.urlopen(self.metrics, timeout=20).read().decode())

    def run(self, entrypoint: str, **variables: str) -> tuple[int, str]:
        """Exit status and log of a job."""
        job = self.submit(entrypoint, **variables)
        assert job.stdout is not None
        log = job.stdout.read()
        return job.wait(240), log


def path_with_scripts() -> str:
    """What activating the environment does."""
    return f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


@pytest.fixture(scope="module")
def bucket() -> Iterator[dict[str, str]]:
    """The environment in which ``s3://bucket`` is a bucket of a server on loopback."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # a line a request would hide what failed
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    settings = {
        "AWS_ACCESS_KEY_ID": "key-of-the-test",
        "AWS_SECRET_ACCESS_KEY": "secret-of-the-test",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
    }
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    boto3.client("s3").create_bucket(Bucket="bucket")
    yield settings
    for name, value in before.items():
        if value is None:
            del os.environ[name]
        else:
            os.environ[name] = value
    server.stop()


@pytest.fixture(scope="module")
def place(bucket: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    clone = tmp_path_factory.mktemp("only") / "clone"
    subprocess.run(["git", "clone", "--quiet", str(REPOSITORY), str(clone)], check=True)
    port, dashboard, metrics = free_port(), free_port(), free_port()
    with_python = {**environment(), **AUTHENTICATED, "PATH": path_with_scripts()}
    with_python.pop("PYTHONPATH")  # what runs is what was submitted
    with_python["RAY_metrics_report_interval_ms"] = "500"  # metrics are there before the kill comes
    ports = (f"--port={port}", f"--dashboard-port={dashboard}", f"--metrics-export-port={metrics}")
    with ray_head(clone.parent, with_python, "--num-cpus=8", "--num-gpus=1", *ports):
        server = f"http://127.0.0.1:{dashboard}"
        _wait_for(server)
        yield Place(server, f"http://{ray.util.get_node_ip_address()}:{metrics}/metrics", clone, bucket)


def _wait_for(server: str) -> None:
    token = {"Authorization": f"Bearer {AUTHENTICATED['RAY_AUTH_TOKEN']}"}
    deadline = time.monotonic() + 90
    while True:
        with suppress(OSError):
            urllib.request.urlopen(urllib.request.Request(f"{server}/api/version", headers=token), timeout=2)
            return
        assert time.monotonic() < deadline, "the job server did not come up"
        time.sleep(0.5)


def test_the_line_of_readme_from_a_folder_that_holds_only_the_clone(place: Place) -> None:
    readme = (place.clone / "README.md").read_text()
    [line] = re.findall(r"^    (ray job submit --working-dir .*?)\n\n", readme, re.M | re.S)
    settings = {"RAY_API_SERVER_ADDRESS": place.server, "PATH": path_with_scripts(), **AUTHENTICATED}
    command = ["bash", "-c", line]
    done = subprocess.run(
        command, cwd=place.clone, env={**os.environ, **settings}, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stdout + done.stderr
    run = run_json(place.clone / "runs/submitted")
    assert run["status"] == "finished" and run["counts"]["decided"] == run["counts"]["claims"] > 100
    assert (place.clone / "runs/submitted/report.html").is_file() and (place.clone / "mlflow.db").is_file()
    assert "Verdicts" in done.stdout, "the log of the job is shown"


def test_a_folder_that_ray_deletes_is_no_output(place: Place) -> None:
    status, log = place.run("python -m jobs.verify cluster=existing output.dir=runs/x tracking=none")
    assert status == 1 and "that Ray deletes after the job" in log, log


def rows() -> list[dict[str, Any]]:
    return [claim_row(n) for n in range(CLAIMS)]


def test_the_manifests_entrypoint_with_data_in_an_object_store_resumes_after_a_kill(place: Place) -> None:
    store, root = fs.FileSystem.from_uri("s3://bucket/claims")
    for part in range(2):
        with store.open_output_stream(f"{root}/part-{part}.jsonl") as stream:
            lines = rows()[part::2]
            stream.write("".join(json.dumps(line) + "\n" for line in lines).encode())
    entrypoint = yaml.safe_load((place.clone / "deploy/kuberay-rayjob.yaml").read_text())["spec"]["entrypoint"]
    variables = {
        "SCORER": "offline",
        "CLAIMS": "s3://bucket/claims/",
        "RUN_DIR": "s3://bucket/runs/may",
        "TRACKING_URI": f"sqlite:///{place.clone}/s3.db",
        "CUDA_VISIBLE_DEVICES": "",
    }
    killed = place.submit(entrypoint, **variables)
    _wait_until(lambda: 0 < _marked(store) < CLAIMS)
    _wait_until(lambda: _figures_by_actor(place.scraped()) >= FIGURES)
    _kill_driver(shlex.split(entrypoint)[2])
    assert killed.wait(60) == 1
    kept = _marked(store)
    assert 0 < kept < CLAIMS
    status, log = place.run(entrypoint, **variables)
    assert status == 0, log
    results = read_results("s3://bucket/runs/may")
    assert results["row_id"].to_list() == list(range(CLAIMS))
    with store.open_input_stream("bucket/runs/may/run.json") as stream:
        run = json.loads(stream.read())
    assert run["this_session"]["claims"] == CLAIMS - kept, "what was finished is not verified again"
    assert results.drop("seconds")["status"].to_list() == _statuses_of(results["claim_id"].to_list())
    assert store.get_file_info("bucket/runs/may/report.html").size > 1000
    written = [info.path for info in store.get_file_info(fs.FileSelector("bucket/runs", recursive=True)) if info.size]
    assert not any(b"secret-of-the-test" in store.open_input_stream(path).read() for path in written)


def _figures_by_actor(metrics: str) -> set[str]:
    """What Prometheus finds of ours that has an actor's name."""
    return set(re.findall(r"^ray_verifier_(\w+){.*actor=\"[0-9a-f]+\"", metrics, re.M))


def _wait_until(moment: Any, timeout: float = 200) -> None:
    deadline = time.monotonic() + timeout
    while not moment():
        assert time.monotonic() < deadline, "the moment did not come"
        time.sleep(0.05)


def _marked(store: fs.FileSystem) -> int:
    """Rows that the checkpoint in the bucket marks."""
    folder = fs.FileSelector("bucket/runs/may/checkpoint", allow_not_found=True)
    found = [info.path for info in store.get_file_info(folder) if info.extension == "parquet"]
    return sum(pq.read_metadata(store.open_input_file(name)).num_rows for name in found if ".pending" not in name)


def _kill_driver(module: str) -> None:
    drivers = [
        process
        for process in psutil.process_iter(["cmdline"])
        if module in (process.info["cmdline"] or ()) and "output.dir=s3://bucket/runs/may" in process.info["cmdline"]
    ]
    assert drivers
    for driver in drivers:
        driver.kill()
    psutil.wait_procs(drivers, timeout=20)
    time.sleep(3)  # its actors end


def _statuses_of(names: list[str]) -> list[str]:
    """What the library decides in this process."""
    scorer = OfflineScorer(device="cpu")
    policy = VerificationPolicy(model=scorer.model, revision=scorer.revision)
    claims = {
        row["claim_id"]: Claim(row["claim_id"], row["claim"], [Evidence(**item) for item in row["evidence"]])
        for row in rows()
    }
    return [record.status.value for record in verify_claims([claims[name] for name in names], scorer, policy)]
