import http.server
import logging
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from mlflow import MlflowClient
from mlflow.entities import Run

from verifier.errors import ConfigurationError
from verifier.tracking import Tracking, flatten, git_commit, local_uri, open_run


@pytest.fixture(autouse=True)
def _own_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    # One store for all tests: the tables of a new one take seconds to make.
    monkeypatch.chdir(tmp_path_factory.getbasetemp())


@pytest.fixture
def closed_port() -> Iterator[int]:
    with socket.socket() as holder:  # bound and not listening: connections are refused, nobody else can take it
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


def stored(location: str) -> Run:
    uri, _, run_id = location.partition(" run ")
    assert uri == local_uri()
    return MlflowClient(uri).get_run(run_id)


def test_everything_logged_is_in_the_local_store(tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    report.write_text("<html></html>")
    config = {"policy": {"threshold": 0.8, "names": ["a", "ü"]}, "many": {f"k{n}": n for n in range(250)}, "none": None}
    with open_run(None, "test", "everything", tmp_path) as run:
        run.log_params(config | {"long": "x" * 10_000, "odd@name": {}})
        run.log_metrics({"accuracy": 0.75, "precision/supported": 1.0, "absent": None})
        run.log_tags({"revision": "abc", "absent": None})
        run.log_artifact(report)
        run.log_input("claims.jsonl", "a" * 64, str(tmp_path / "claims.jsonl"))
        location = run.location
    kept = stored(location)
    params = kept.data.params
    assert kept.info.status == "FINISHED" and kept.info.run_name == "everything"
    assert params["policy.threshold"] == "0.8" and params["policy.names"] == '["a", "ü"]'
    assert params["many.k249"] == "249" and params["none"] == "None" and params["odd_name"] == "{}"
    assert len(params["long"]) == 6000 and params["long"].endswith("…")
    assert kept.data.metrics == {"accuracy": 0.75, "precision/supported": 1.0}
    assert kept.data.tags["revision"] == "abc" and kept.data.tags["run_dir"] == str(tmp_path)
    assert kept.data.tags["input_digest"] == "a" * 64
    (given,) = kept.inputs.dataset_inputs
    assert (given.dataset.name, given.dataset.digest) == ("claims.jsonl", "a" * 36)
    assert "claims.jsonl" in given.dataset.source
    artifacts = MlflowClient(local_uri()).list_artifacts(kept.info.run_id)
    assert [artifact.path for artifact in artifacts] == ["report.html"]
    assert Path("mlruns/artifacts", kept.info.run_id, "artifacts", "report.html").is_file()


def test_an_unreachable_server_is_a_warning_and_a_local_run(
    closed_port: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    started = time.monotonic()
    with open_run(f"http://me:secret@127.0.0.1:{closed_port}", "test", None, tmp_path) as run:
        opened = time.monotonic() - started
        run.log_metrics({"accuracy": 0.5})
        location = run.location
    assert stored(location).data.metrics == {"accuracy": 0.5}
    assert opened < 30  # some seconds of it may be making the tables of the local store
    (warning,) = (record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING)
    assert "falls back" in warning and "secret" not in warning


ANSWERS = {
    "experiments/get-by-name": b'{"experiment": {"experiment_id": "1", "name": "test"}}',
    "runs/create": b'{"run": {"info": {"run_id": "remote", "artifact_uri": "mlflow-artifacts:/1"}, "data": {}}}',
}


class _Dying(http.server.BaseHTTPRequestHandler):
    """A tracking server that opens a run and then answers 500 to everything."""

    def do_GET(self) -> None:
        body = next((answer for path, answer in ANSWERS.items() if path in self.path), None)
        self.send_response(500 if body is None else 200)
        self.end_headers()
        self.wfile.write(body or b"out of order")

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()

    def log_message(self, *_: object) -> None: ...


def test_a_server_dying_midway_loses_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Dying)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with open_run(f"http://127.0.0.1:{server.server_port}", "test", None, tmp_path) as run:
        assert run.run_id == "remote"
        run.log_params({"a": 1})
        server.shutdown()
        server.server_close()
        run.log_metrics({"accuracy": 0.5})
        location = run.location
    kept = stored(location)
    assert kept.data.params == {"a": "1"} and kept.data.metrics == {"accuracy": 0.5}
    assert kept.info.status == "FINISHED"
    assert len(caplog.records) == 1


def test_a_refused_value_is_a_warning_and_the_rest_is_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with open_run(None, "test", None, tmp_path) as run:
        run.log_params({"a": 1})
        run.log_params({"a": 2})
        run.log_artifact(tmp_path / "absent")
        run.log_metrics({"after": 1.0})
        location = run.location
    assert stored(location).data.params == {"a": "1"} and stored(location).data.metrics == {"after": 1.0}
    assert len(caplog.records) == 2


def test_a_failing_job_is_a_failed_run_under_its_parent(tmp_path: Path) -> None:
    with (
        open_run(None, "test", "parent", tmp_path) as parent,
        pytest.raises(ZeroDivisionError),
        open_run(None, "test", "child", tmp_path, parent_run_id=parent.run_id) as run,
    ):
        location = run.location
        raise ZeroDivisionError
    child = stored(location)
    assert child.info.status == "FAILED" and child.data.tags["mlflow.parentRunId"] == parent.run_id


def test_a_store_that_cannot_be_made_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mlruns").write_text("in the way")
    monkeypatch.chdir(tmp_path)
    with open_run(None, "test", None, tmp_path) as run:
        run.log_metrics({"accuracy": 0.5})
    assert run.run_id is None and "not tracked" in run.location


def test_tracking_switched_off_keeps_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with open_run("http://127.0.0.1:1", "test", None, tmp_path, enabled=False) as run:
        run.log_params({"a": 1})
        run.log_metrics({"b": 1.0})
        run.log_tags({"c": 1})
        run.log_artifact("nowhere")
        run.log_input("n", "d", "s")
    assert run.location == "not tracked" and list(tmp_path.iterdir()) == []


def test_flatten() -> None:
    assert flatten({"a": {"b": {"c": 1}, "d": []}, "e": {}}) == {"a.b.c": "1", "a.d": "[]", "e": "{}"}


def test_no_commit_outside_a_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert git_commit() is None


def test_artifacts_lie_beside_the_database(tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    report.write_text("<html></html>")
    (tmp_path / "store").mkdir()
    with open_run(f"sqlite:///{tmp_path}/store/mlflow.db", "test", "beside", tmp_path) as run:
        run.log_artifact(report)
    assert [path.name for path in (tmp_path / "store/artifacts").rglob("*.html")] == ["report.html"]


def test_a_store_that_ray_would_delete_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = tmp_path / "session/runtime_resources/working_dir_files/_ray_pkg_1"
    copy.mkdir(parents=True)
    monkeypatch.chdir(copy)
    (tmp_path / "link").symlink_to(copy)
    there = (
        *(None, "store", "sqlite:///mlflow.db", "sqlite+pysqlite:///mlflow.db", f"SQLITE:///{copy}/mlflow.db"),
        *(f" sqlite:///{copy}/mlflow.db", f"file://{copy}/store", f"file://{copy}/sto%72e", f"{tmp_path}/link/store"),
    )
    for uri in there:
        with pytest.raises(ConfigurationError, match=r"tracking.uri is .* that Ray deletes"):
            Tracking(uri=uri)
    for uri in (
        "http://host:5000",
        "databricks",
        "sqlite://",
        "sqlite:///:memory:",
        "../../../../x",
        f"sqlite:///{tmp_path}/mlflow.db",
        f"file://{tmp_path}/store",
        str(tmp_path),
    ):
        Tracking(uri=uri)
    Tracking(enabled=False)
