"""Running a job as a process of its own, and killing it and what it leaves behind."""

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import psutil

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]
TIMEOUT = 300
OUTPUT, ERRORS = "stdout.txt", "stderr.txt"
FREE = (
    "scorer._target_=free_scorer.FreeScorer",
    "~scorer.device",
    "~scorer.cache_size",
    "+scorer.revision=r1",
    "tracking=none",
)


def command(*overrides: str, name: str = "verify") -> list[str]:
    return [sys.executable, "-m", f"jobs.{name}", *overrides]


def environment(**settings: object) -> dict[str, str]:
    paths = os.pathsep.join([str(REPOSITORY), str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
    # Ray starts its workers at low priority: on a busy machine the moments that tests wait for would not come
    return (
        os.environ
        | {"PYTHONPATH": paths, "RAY_worker_niceness": "0"}
        | {name: str(value) for name, value in settings.items()}
    )


def run(
    folder: Path, *overrides: str, name: str = "verify", timeout: float = TIMEOUT, **settings: object
) -> tuple[int, str, str]:
    """Run the job ``name`` to its end: exit status, standard output, standard error.

    It is a fork of a process that has imported the job: the seconds that imports take are paid once. ``run_anew``
    starts it as a user does.
    """
    forks = _forks()
    assert forks.stdin is not None and forks.stdout is not None
    asked = {
        "name": name,
        "folder": str(folder),
        "overrides": overrides,
        "settings": {setting: str(value) for setting, value in settings.items()},
        "seconds": timeout,
    }
    forks.stdin.write(json.dumps(asked) + "\n")
    forks.stdin.flush()
    answer = forks.stdout.readline()
    output, errors = ((folder / file).read_text() for file in (OUTPUT, ERRORS))
    assert answer.strip(), f"no answer from the process that forks: {errors}"
    status: int | None = json.loads(answer)
    assert status is not None, f"not done after {timeout} s: {errors}"
    return status, output, errors


def run_anew(
    folder: Path, *overrides: str, name: str = "verify", timeout: float = TIMEOUT, **settings: object
) -> tuple[int, str, str]:
    """As ``run``, by ``python -m jobs.NAME`` in a process of its own."""
    with started(folder, *overrides, name=name, **settings) as job:
        try:
            job.process.wait(timeout)
        except subprocess.TimeoutExpired as error:
            raise AssertionError(f"not done after {timeout} s: {job.errors()}") from error
        return job.process.returncode, job.output(), job.errors()


def run_forked(
    asked: Sequence[tuple[Path, Sequence[str], Mapping[str, str]]], name: str = "verify"
) -> list[tuple[int, str]]:
    """Exit status and standard error of short runs, each given by folder, overrides and environment variables."""
    ended = (run(folder, *overrides, name=name, timeout=150, **settings) for folder, overrides, settings in asked)
    return [(status, errors) for status, _, errors in ended]


@cache
def _forks() -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "tests.jobs.forked"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(HF_HUB_OFFLINE=1),  # read when the library is imported: a fork could not set it
        preexec_fn=die_with_parent,
    )


class Job:
    """A job under way; ``seen`` are all processes that it ever had, as far as we looked."""

    def __init__(self, folder: Path, overrides: tuple[str, ...], name: str, settings: Mapping[str, object]) -> None:
        self._out, self._err = folder / OUTPUT, folder / ERRORS
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = subprocess.Popen(
                command(*overrides, name=name),
                cwd=folder,
                env=environment(**settings),
                stdout=out,
                stderr=err,
                start_new_session=True,
                preexec_fn=die_with_parent,
            )
        self.seen: dict[int, psutil.Process] = {}

    def output(self) -> str:
        return self._out.read_text()

    def errors(self) -> str:
        return self._err.read_text()

    def look(self) -> list[psutil.Process]:
        """The job's processes at this moment."""
        try:
            found = psutil.Process(self.process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []
        self.seen.update({process.pid: process for process in found})
        return found

    def wait_for(self, moment: Callable[[], bool], timeout: float = 200, every: float = 0.02) -> None:
        """Return as soon as ``moment()`` is true; the job must not end before."""
        deadline = time.monotonic() + timeout
        while not moment():
            assert self.process.poll() is None, f"the job ended before the moment came: {self.errors()}"
            assert time.monotonic() < deadline, f"the moment did not come: {self.errors()}"
            time.sleep(every)

    def kill(self) -> None:
        """SIGKILL the driver, and only it."""
        self.look()
        self.process.kill()
        self.process.wait(10)

    def orphans(self) -> list[psutil.Process]:
        """Processes of the job that live on."""
        return [process for process in self.seen.values() if _lives(process)]

    def clean_up(self) -> None:
        self.look()
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(10)
        for process in self.orphans():
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL)
        psutil.wait_procs(list(self.seen.values()), timeout=10)


@contextmanager
def started(folder: Path, *overrides: str, name: str = "verify", **settings: object) -> Iterator[Job]:
    job = Job(folder, overrides, name, settings)
    try:
        yield job
    finally:
        job.clean_up()


def die_with_parent() -> None:
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: tests that are killed leave no job behind


def _lives(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def run_json(output: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((output / "run.json").read_text())
    return content
