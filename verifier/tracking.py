"""MLflow tracking that never costs a run its results: a server that fails is a warning and a local store.

Every call is kept in a journal. When the tracking server cannot be reached, or stops answering, a warning says
so, a run is opened in the local sqlite store, and the journal is logged there again.
"""

import getpass
import json
import logging
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit, urlunsplit

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import DatasetInput

log = logging.getLogger(__name__)

LOCAL_FOLDER = "mlruns"
NOT_IN_A_NAME = re.compile(r"[^\w\-. /]")  # what MLflow forbids in the name of a param, metric or tag


class Tracker(Protocol):
    """What a job logs to; no method raises."""

    run_id: str | None

    @property
    def location(self) -> str:
        """Where the run is, for people: the tracking URI and the run id."""

    def log_params(self, params: Mapping[str, Any]) -> None:
        """Log a configuration, nested mappings as dotted names, long values cut."""

    def log_metrics(self, metrics: Mapping[str, float | None], step: int = 0) -> None:
        """Log figures; those that are None are left out."""

    def log_tags(self, tags: Mapping[str, Any]) -> None:
        """Set tags; those that are None are left out."""

    def log_artifact(self, path: str | Path, folder: str | None = None) -> None:
        """Keep a copy of a file with the run, in a folder of its artifacts if one is given."""

    def log_input(self, name: str, digest: str, source: str, context: str = "verification") -> None:
        """Log the data set that the run read: its name, the digest of its content, the path or URI it came from."""


class NoTracker:
    """A tracker that keeps nothing."""

    run_id: str | None = None
    location = "not tracked"

    def log_params(self, params: Mapping[str, Any]) -> None:
        """Do nothing."""

    def log_metrics(self, metrics: Mapping[str, float | None], step: int = 0) -> None:
        """Do nothing."""

    def log_tags(self, tags: Mapping[str, Any]) -> None:
        """Do nothing."""

    def log_artifact(self, path: str | Path, folder: str | None = None) -> None:
        """Do nothing."""

    def log_input(self, name: str, digest: str, source: str, context: str = "verification") -> None:
        """Do nothing."""


@contextmanager
def open_run(
    uri: str | None,
    experiment: str,
    run_name: str | None,
    run_dir: str | Path,
    *,
    enabled: bool = True,
    parent_run_id: str | None = None,
) -> Iterator[Tracker]:
    """Open an MLflow run for the time of a ``with`` block and end it with the block's fate.

    Args:
        uri: tracking URI; None is the local store, ``mlruns/mlflow.db`` in the current folder.
        experiment: name of the experiment, created where it does not exist.
        run_name: name of the run; None lets MLflow invent one.
        run_dir: the run directory, kept as the tag ``run_dir``.
        enabled: False gives a tracker that keeps nothing and does not import MLflow.
        parent_run_id: the run under which MLflow shows this one.
    """
    if not enabled:
        yield NoTracker()
        return
    _quiet()
    tags = {
        "run_dir": str(run_dir),
        "mlflow.source.name": Path(sys.argv[0]).name,
        "mlflow.source.git.commit": git_commit(),
        "mlflow.user": _user(),
        "mlflow.parentRunId": parent_run_id,
    }
    tracker = _MlflowTracker(uri or local_uri(), experiment, run_name, {k: v for k, v in tags.items() if v is not None})
    tracker.open()
    status = "FAILED"
    try:
        yield tracker
        status = "FINISHED"
    except KeyboardInterrupt:
        status = "KILLED"
        raise
    finally:
        tracker.close(status)


def local_uri() -> str:
    """The tracking URI of the local store of the current folder."""
    return f"sqlite:///{(Path.cwd() / LOCAL_FOLDER / 'mlflow.db').as_posix()}"


def flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Nested values by dotted name, as text; lists as JSON, empty mappings kept as ``{}``."""
    flat: dict[str, str] = {}
    for key, value in values.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and value:
            flat |= flatten(value, f"{name}.")
        elif isinstance(value, (list, tuple, Mapping)):
            flat[name] = json.dumps(value, default=str, ensure_ascii=False)
        else:
            flat[name] = str(value)
    return flat


def git_commit() -> str | None:
    """The commit checked out in the current folder, None where there is none."""
    with suppress(OSError, subprocess.SubprocessError):
        command = ["git", "rev-parse", "--verify", "HEAD"]
        return subprocess.run(command, capture_output=True, text=True, timeout=5, check=True).stdout.strip()
    return None


@dataclass
class _MlflowTracker:
    uri: str
    experiment: str
    run_name: str | None
    tags: Mapping[str, str]
    run_id: str | None = None
    _client: "MlflowClient | None" = None
    _journal: list[tuple[str, Callable[["MlflowClient", str], object]]] = field(default_factory=list)

    @property
    def location(self) -> str:
        if self.run_id is None:
            return "not tracked (no tracking store could be opened)"
        return f"{_without_password(self.uri)} run {self.run_id}"

    def open(self) -> None:
        try:
            self._start()
        except Exception as error:  # whatever a server, its client or a database raises
            self._fall_back(error)

    def close(self, status: str) -> None:
        self._log("its end", lambda client, run_id: client.set_terminated(run_id, status))

    def log_params(self, params: Mapping[str, Any]) -> None:
        from mlflow.entities import Param
        from mlflow.utils.validation import MAX_PARAM_VAL_LENGTH, MAX_PARAMS_TAGS_PER_BATCH

        items = [Param(_name(key), _cut(text, MAX_PARAM_VAL_LENGTH)) for key, text in flatten(params).items()]
        for start in range(0, len(items), MAX_PARAMS_TAGS_PER_BATCH):
            batch = items[start : start + MAX_PARAMS_TAGS_PER_BATCH]
            self._log("params", lambda client, run_id, batch=batch: client.log_batch(run_id, params=batch))

    def log_metrics(self, metrics: Mapping[str, float | None], step: int = 0) -> None:
        from mlflow.entities import Metric
        from mlflow.utils.validation import MAX_METRICS_PER_BATCH

        now = int(time.time() * 1000)
        items = [Metric(_name(key), float(value), now, step) for key, value in metrics.items() if value is not None]
        for start in range(0, len(items), MAX_METRICS_PER_BATCH):
            batch = items[start : start + MAX_METRICS_PER_BATCH]
            self._log("metrics", lambda client, run_id, batch=batch: client.log_batch(run_id, metrics=batch))

    def log_tags(self, tags: Mapping[str, Any]) -> None:
        from mlflow.entities import RunTag
        from mlflow.utils.validation import MAX_PARAMS_TAGS_PER_BATCH, MAX_TAG_VAL_LENGTH

        items = [RunTag(_name(key), _cut(str(v), MAX_TAG_VAL_LENGTH)) for key, v in tags.items() if v is not None]
        for start in range(0, len(items), MAX_PARAMS_TAGS_PER_BATCH):
            batch = items[start : start + MAX_PARAMS_TAGS_PER_BATCH]
            self._log("tags", lambda client, run_id, batch=batch: client.log_batch(run_id, tags=batch))

    def log_artifact(self, path: str | Path, folder: str | None = None) -> None:
        self._log(f"artifact {path}", lambda client, run_id: client.log_artifact(run_id, str(path), folder))

    def log_input(self, name: str, digest: str, source: str, context: str = "verification") -> None:
        self._log(
            "the input data set",
            lambda client, run_id: client.log_inputs(run_id, [_dataset_input(name, digest, source, context)]),
        )
        # MLflow keeps 36 characters of a digest: the whole one stands in a tag.
        self.log_tags({"input_digest": digest})

    def _start(self) -> None:
        from mlflow import MlflowClient

        self.run_id = None
        if self.uri == local_uri():
            Path(LOCAL_FOLDER).mkdir(exist_ok=True)
        # A dead server is found out within seconds; one that once answered gets more patience later.
        with _http_limits(seconds=3):
            client = MlflowClient(tracking_uri=self.uri)
            found = client.get_experiment_by_name(self.experiment)
            experiment_id = found.experiment_id if found else self._create_experiment(client)
            run = client.create_run(experiment_id, tags=dict(self.tags), run_name=self.run_name)
        self._client, self.run_id = client, run.info.run_id

    def _create_experiment(self, client: "MlflowClient") -> str:
        if self.uri != local_uri():
            return client.create_experiment(self.experiment)
        return client.create_experiment(self.experiment, (Path.cwd() / LOCAL_FOLDER / "artifacts").as_uri())

    def _log(self, what: str, call: "Callable[[MlflowClient, str], object]") -> None:
        self._journal.append((what, call))
        self._call(what, call)

    def _call(self, what: str, call: "Callable[[MlflowClient, str], object]") -> None:
        if self._client is None or self.run_id is None:
            return
        try:
            with _http_limits(seconds=20):
                call(self._client, self.run_id)
        except Exception as error:
            if _is_refusal(error) or self.uri == local_uri():
                log.warning("MLflow did not take %s: %s", what, _one_line(error))
            else:
                self._fall_back(error)

    def _fall_back(self, error: Exception) -> None:
        self._client = None
        if self.uri == local_uri():
            log.warning("the local MLflow store cannot be used, this run is not tracked: %s", _one_line(error))
            return
        log.warning(
            "the MLflow server %s does not answer, tracking goes on in %s: %s",
            _without_password(self.uri), local_uri(), _one_line(error),
        )  # fmt: skip
        self.uri = local_uri()
        self.open()
        for what, call in self._journal:
            self._call(what, call)


def _dataset_input(name: str, digest: str, source: str, context: str) -> "DatasetInput":
    from mlflow.data.code_dataset_source import CodeDatasetSource
    from mlflow.data.meta_dataset import MetaDataset
    from mlflow.entities import DatasetInput, InputTag
    from mlflow.utils.mlflow_tags import MLFLOW_DATASET_CONTEXT
    from mlflow.utils.validation import MAX_DATASET_DIGEST_SIZE, MAX_DATASET_NAME_SIZE

    origin = CodeDatasetSource({"path": source})
    data = MetaDataset(origin, name[:MAX_DATASET_NAME_SIZE], digest[:MAX_DATASET_DIGEST_SIZE])
    return DatasetInput(data._to_mlflow_entity(), [InputTag(MLFLOW_DATASET_CONTEXT, context)])


def _is_refusal(error: Exception) -> bool:
    """Whether the server is there and refuses one value (a changed param, say), which no other store would mend."""
    from mlflow.exceptions import MlflowException

    return isinstance(error, MlflowException) and 400 <= int(error.get_http_status_code()) < 500


@contextmanager
def _http_limits(seconds: int) -> Iterator[None]:
    """Let MLflow's requests fail soon; what the user has set in the environment stands."""
    wanted = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1", "MLFLOW_HTTP_REQUEST_TIMEOUT": str(seconds)}
    added = {name: value for name, value in wanted.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


def _quiet() -> None:
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    os.environ.setdefault("MLFLOW_DISABLE_AGENT_HINT", "true")
    for name in ("mlflow", "alembic"):
        logging.getLogger(name).setLevel(logging.ERROR)


def _user() -> str | None:
    with suppress(OSError, KeyError, ImportError):  # a container's user may have no name
        return getpass.getuser()
    return None


def _name(key: str) -> str:
    from mlflow.utils.validation import MAX_ENTITY_KEY_LENGTH

    return NOT_IN_A_NAME.sub("_", key)[:MAX_ENTITY_KEY_LENGTH]


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _one_line(error: Exception) -> str:
    return _cut(" ".join(str(error).split()) or type(error).__name__, 300)


def _without_password(uri: str) -> str:
    parts = urlsplit(uri)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])) if "@" in parts.netloc else uri
