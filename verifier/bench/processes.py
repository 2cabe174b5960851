"""Measuring in a process of its own, and the memory of processes as Linux reports it."""

import multiprocessing
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from os import getpid
from pathlib import Path
from typing import ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_PROC = Path("/proc")
_ACTOR = "ray::MapWorker"  # how Ray Data names the process of an actor
_SUM_SECONDS = 2.0  # between sums over all processes, for which Linux walks through their pages
_MIB = 1024.0  # of the kB that Linux reports


def in_fresh_process(
    function: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
) -> Result:
    """Call a function of a module in a new process, so that neither memory nor caches are shared."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *args, **kwargs).result()


@dataclass
class Memory:
    """The most memory that was seen, in MiB, of one process.

    Attributes:
        resident: pages in memory, those of the object store that the process has touched included.
        private: resident pages without shared ones: what the process itself holds.
    """

    resident: float = 0.0
    private: float = 0.0

    def see(self, pid: int) -> None:
        """Raise the figures to those of a living process; a process that is gone changes nothing."""
        status = _sizes(pid, "status")
        rss, shared = status.get("VmRSS", 0.0), status.get("RssShmem", 0.0)
        self.resident = max(self.resident, rss)
        self.private = max(self.private, rss - shared)


@dataclass
class Watch:
    """The driver's memory, that of the actor that held most, and all that the run held at one moment.

    ``whole`` is the sum over the driver and every process that it started, Ray's own included, in MiB; a page that
    several share, as those of the object store, counts once.
    """

    driver: Memory
    actor: Memory
    whole: float = 0.0


@contextmanager
def watched_memory(every_seconds: float = 0.2) -> Iterator[Watch]:
    """Sample this process and its Ray actors for the time of the block; all zero where there is no ``/proc``."""
    watch, done = Watch(Memory(), Memory()), threading.Event()

    def sample() -> None:
        summed = 0.0
        while not done.wait(every_seconds):
            family = _descendants(getpid())
            watch.driver.see(getpid())
            for pid in family:
                if _is_named(pid, _ACTOR):
                    watch.actor.see(pid)
            if time.monotonic() - summed > _SUM_SECONDS:
                summed = time.monotonic()
                watch.whole = max(watch.whole, sum(_sizes(pid, "smaps_rollup").get("Pss", 0.0) for pid in family))

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield watch
    finally:
        done.set()
        thread.join()


def _sizes(pid: int, file: str) -> dict[str, float]:
    """The sizes in ``/proc/<pid>/<file>`` in MiB."""
    try:
        lines = (_PROC / str(pid) / file).read_text().splitlines()
    except OSError:
        return {}
    fields = (line.split() for line in lines if line.endswith(" kB"))
    return {name.rstrip(":"): int(size) / _MIB for name, size, _ in fields}


def _descendants(root: int) -> list[int]:
    """``root`` and every living process that it, or one of them, started."""
    parents: dict[int, int] = {}
    for folder in _PROC.glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue  # gone since it was listed
    return [pid for pid in parents if pid == root or root in _ancestors(pid, parents)]


def _is_named(pid: int, prefix: str) -> bool:
    try:
        return (_PROC / str(pid) / "cmdline").read_bytes().startswith(prefix.encode())
    except OSError:
        return False


def _ancestors(pid: int, parents: dict[int, int]) -> Iterator[int]:
    while pid := parents.get(pid, 0):
        yield pid
