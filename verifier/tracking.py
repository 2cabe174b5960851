"""MLflow tracking that never costs a run its results: a server that fails is a warning and a local store.

Every call is kept in a journal. When the tracking server cannot be reached, or stops answering, a warning says
so, a run is opened in the local sqlite store, and the journal is logged there again.
"""

import json
import logging
import os
import re
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from pydantic import StrictBool

from verifier.errors import ConfigurationError
from verifier.pipeline.storage import is_in_ray_copy
from verifier.redaction import without_secrets, without_secrets_in

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import DatasetInput

    Call = Callable[[MlflowClient, str], object]

log = logging.getLogger(__name__)
URLLIB3 = logging.getLogger("urllib3.connectionpool")

# What MLflow takes at most: characters of each, and params or tags in one request.
NAME_LIMIT, PARAM_LIMIT, TAG_LIMIT, DATASET_NAME_LIMIT, DIGEST_LIMIT, BATCH_LIMIT = 250, 6000, 8000, 500, 36, 100
LOCAL_FOLDER = "mlruns"
NOT_IN_A_NAME = re.compile(r"[^\w\-. /]")  # what MLflow forbids in the name of a param, metric or tag


@dataclass(frozen=True)
class Tracking:
    """Where a job is tracked: ``uri`` None is the local store, ``run_name`` None the run directory's name.

    Raises ConfigurationError for a store that Ray would delete after a submitted job.
    """

    enabled: StrictBool = True
    uri: str | None = None
    experiment: str = "claim-verification"
    run_name: str | None = None

    def __post_init__(self) -> None:
        place = _local_place((self.uri or local_uri()).strip())
        if self.enabled and place is not None and is_in_ray_copy(place.resolve().as_posix()):
            raise ConfigurationError(
                f"tracking.uri is {self.uri or 'not given'}, in the copy of your folder that Ray deletes after"
                " the job: give the URI of a server or of a file elsewhere, or set tracking=none"
            )


class Tracker:
    """What a job logs to; a store that fails never raises here. This one keeps nothing."""

    run_id: str | None = None

    @property
    def location(self) -> str:
        """Where the run is, for people: the tracking URI and the run id."""
        return "not tracked"

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
        yield Tracker()
        return
    _quiet()
    tags = {
        "run_dir": without_secrets_in(str(run_dir)),
        "mlflow.source.name": Path(sys.argv[0]).name,
        "mlflow.source.git.commit": git_commit(),
        "mlflow.user": os.environ.get("USER"),
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


def _local_place(uri: str) -> Path | None:
    """The file or folder of a store on this machine, None for one that is elsewhere or in memory."""
    kind, _, place = uri.rpartition("://")
    kind = kind.lower().partition("+")[0]
    if kind == "sqlite":
        place = place.removeprefix("/")  # SQLAlchemy writes three slashes before a path
        return None if place in ("", ":memory:") else Path(place)
    if kind == "file":
        return Path(unquote(place[place.find("/") :]))  # behind a host, if there is one
    return None if kind or uri == "databricks" else Path(place)


def flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Nested values by dotted name, as text; lists as JSON, empty mappings kept as ``{}``."""
    flat: dict[str, str] = {}
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            listed = isinstance(value, (list, tuple, Mapping))
            flat[f"{prefix}{key}"] = json.dumps(value, default=str, ensure_ascii=False) if listed else str(value)
    return flat


def git_commit() -> str | None:
    """The commit checked out in the current folder, None where there is none."""
    with suppress(OSError, subprocess.SubprocessError):
        command = ["git", "rev-parse", "--verify", "HEAD"]
        return subprocess.run(command, capture_output=True, text=True, timeout=5, check=True).stdout.strip()
    return None


@dataclass
class _MlflowTracker(Tracker):
    uri: str
    experiment: str
    run_name: str | None
    tags: Mapping[str, str]
    local: str = field(default_factory=local_uri)  # of the folder in which the run began
    run_id: str | None = None
    _client: "MlflowClient | None" = None
    _journal: "list[tuple[str, Call]]" = field(default_factory=list)

    @property
    def location(self) -> str:
        if self.run_id is None:
            return "not tracked (no tracking store could be opened)"
        return f"{without_secrets_in(self.uri)} run {self.run_id}"

    def open(self) -> None:
        try:
            self._start()
        except Exception as error:  # whatever a server, its client or a database raises
            self._fall_back(error)

    def close(self, status: str) -> None:
        self._log("its end", lambda client, run_id: client.set_terminated(run_id, status))

    def log_params(self, params: Mapping[str, Any]) -> None:
        from mlflow.entities import Param

        texts = flatten(without_secrets(params))
        self._log_batches("params", [Param(_name(key), _cut(text, PARAM_LIMIT)) for key, text in texts.items()])

    def log_metrics(self, metrics: Mapping[str, float | None], step: int = 0) -> None:
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        given = {_name(key): float(value) for key, value in metrics.items() if value is not None}
        self._log_batches("metrics", [Metric(key, value, now, step) for key, value in given.items()])

    def log_tags(self, tags: Mapping[str, Any]) -> None:
        from mlflow.entities import RunTag

        given = {_name(key): _cut(str(value), TAG_LIMIT) for key, value in tags.items() if value is not None}
        self._log_batches("tags", [RunTag(key, value) for key, value in given.items()])

    def log_artifact(self, path: str | Path, folder: str | None = None) -> None:
        self._log(f"artifact {path}", lambda client, run_id: client.log_artifact(run_id, str(path), folder))

    def log_input(self, name: str, digest: str, source: str, context: str = "verification") -> None:
        self._log(
            "the input data set",
            lambda client, run_id: client.log_inputs(run_id, [_dataset_input(name, digest, source, context)]),
        )
        # MLflow keeps 36 characters of a digest: the whole one stands in a tag.
        self.log_tags({"input_digest": digest})

    def _log_batches(self, what: str, items: Sequence[Any]) -> None:
        for start in range(0, len(items), BATCH_LIMIT):
            self._log(what, _batch_call({what: items[start : start + BATCH_LIMIT]}))

    def _start(self) -> None:
        from mlflow import MlflowClient

        self.run_id = None
        artifacts = None  # the server's choice
        if self.uri.startswith("sqlite:///") and (database := _local_place(self.uri)) is not None:
            folder = database.absolute().parent  # beside the database: the current folder may be one that Ray deletes
            if self.uri == self.local:
                folder.mkdir(exist_ok=True)
            artifacts = (folder / "artifacts").as_uri()
        # A dead server is found out within seconds; one that once answered gets more patience later.
        with _http_limits(seconds=3):
            client = MlflowClient(tracking_uri=self.uri)
            found = client.get_experiment_by_name(self.experiment)
            experiment_id = found.experiment_id if found else client.create_experiment(self.experiment, artifacts)
            run = client.create_run(experiment_id, tags=dict(self.tags), run_name=self.run_name)
        self._client, self.run_id = client, run.info.run_id

    def _log(self, what: str, call: "Call") -> None:
        self._journal.append((what, call))
        self._call(what, call)

    def _call(self, what: str, call: "Call") -> None:
        if self._client is None or self.run_id is None:
            return
        try:
            with _http_limits(seconds=20):
                call(self._client, self.run_id)
        except Exception as error:
            if _is_refusal(error) or self.uri == self.local:
                log.warning("MLflow did not take %s: %s", what, _one_line(error))
            else:
                self._fall_back(error)

    def _fall_back(self, error: Exception) -> None:
        self._client = None
        if self.uri == self.local:
            log.warning("the local MLflow store cannot be used, this run is not tracked: %s", _one_line(error))
            return
        log.warning("MLflow tracking falls back to %s: %s", self.local, _one_line(error))
        self.uri = self.local
        self.open()
        for what, call in self._journal:
            self._call(what, call)


def _batch_call(batch: Mapping[str, Any]) -> "Call":
    return lambda client, run_id: client.log_batch(run_id, **batch)


def _dataset_input(name: str, digest: str, source: str, context: str) -> "DatasetInput":
    from mlflow.data.dataset_source_registry import resolve_dataset_source
    from mlflow.data.meta_dataset import MetaDataset
    from mlflow.entities import DatasetInput, InputTag
    from mlflow.utils.mlflow_tags import MLFLOW_DATASET_CONTEXT

    with warnings.catch_warnings(action="ignore"):  # that a path could be read by more than one kind of source
        origin = resolve_dataset_source(without_secrets_in(source))
    # MLflow declares MetaDataset's profile abstract, yet makes such objects itself.
    data = MetaDataset(origin, name[:DATASET_NAME_LIMIT], digest[:DIGEST_LIMIT])  # type: ignore[abstract]
    return DatasetInput(data._to_mlflow_entity(), [InputTag(MLFLOW_DATASET_CONTEXT, context)])


def _is_refusal(error: Exception) -> bool:
    """Whether the server is there and refuses one value (a changed param, say), which no other store would mend."""
    from mlflow.exceptions import MlflowException

    if isinstance(error, MlflowException):
        return bool(error.get_http_status_code() == HTTPStatus.BAD_REQUEST)  # type: ignore[no-untyped-call]
    return isinstance(error, FileNotFoundError)  # an artifact that is not there


@contextmanager
def _http_limits(seconds: int) -> Iterator[None]:
    """Let MLflow's requests fail soon; what the user has set in the environment stands."""
    wanted = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1", "MLFLOW_HTTP_REQUEST_TIMEOUT": str(seconds)}
    level = URLLIB3.level
    URLLIB3.setLevel(logging.ERROR)  # a failure is told once, by us
    added = {name: value for name, value in wanted.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)
        URLLIB3.setLevel(level)


def _quiet() -> None:
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    os.environ.setdefault("MLFLOW_DISABLE_AGENT_HINT", "true")
    import mlflow  # sets its loggers up when it is imported: silence them after that

    for name in (mlflow.__name__, "mlflow.store.db.utils", "alembic"):
        logging.getLogger(name).setLevel(logging.ERROR)


def _name(key: str) -> str:
    return NOT_IN_A_NAME.sub("_", key)[:NAME_LIMIT]


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _one_line(error: Exception) -> str:
    return _cut(without_secrets_in(" ".join(str(error).split())) or type(error).__name__, 300)
