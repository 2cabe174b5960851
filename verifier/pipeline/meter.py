"""What the actors have done so far: a counter on the cluster that the driver reads while they work."""

import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import ray
from ray.exceptions import RayActorError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

Totals = Mapping[str, float]


@ray.remote(num_cpus=0, max_restarts=-1)
class _Meter:
    def __init__(self) -> None:
        self._totals: dict[str, float] = {}
        self._notes: set[str] = set()

    def add(self, done: Mapping[str, float]) -> None:
        now = time.time()
        if "rows" in done:
            self._totals.setdefault("first_rows_at", now - done["batch_seconds"])
            self._totals["last_rows_at"] = now
        for name, amount in done.items():
            self._totals[name] = self._totals.get(name, 0) + amount

    def note(self, text: str) -> None:
        self._notes.add(text)

    def totals(self) -> dict[str, float]:
        return dict(self._totals)

    def notes(self) -> list[str]:
        return sorted(self._notes)


class Meter:
    """Totals by name, added up across actors; ``add`` travels to them.

    A node that goes and takes the counter along costs its totals, never the run.
    """

    def __init__(self) -> None:
        self._totals: dict[str, float] = {}
        self._notes: list[str] = []
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=True)
        # on the driver's node: another one may go while the job goes on
        self._actor: Any = _Meter.options(scheduling_strategy=here).remote()  # type: ignore[attr-defined]

    def add(self, done: Totals) -> None:
        """Add what was done, without waiting for it to arrive."""
        self._actor.add.remote(dict(done))

    def note(self, text: str) -> None:
        """Add a sentence that the user should read; the same one again is kept once."""
        self._actor.note.remote(text)

    def notes(self) -> list[str]:
        """The sentences so far."""
        with suppress(RayActorError):
            self._notes = ray.get(self._actor.notes.remote())
        return self._notes

    def totals(self) -> dict[str, float]:
        """The totals so far."""
        with suppress(RayActorError):
            self._totals = ray.get(self._actor.totals.remote())
        return self._totals


@contextmanager
def told_of_loading(meter: Meter) -> Iterator[None]:
    """Tell the meter how long the block took, which loads models, and what it warned of."""
    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    meter.add({"load_seconds": time.perf_counter() - started})
    for text in {str(warning.message) for warning in caught if warning.category in (UserWarning, RuntimeWarning)}:
        meter.note(text)


@contextmanager
def watched(meter: Meter, show: Callable[[Totals], None], every_seconds: float = 1.0) -> Iterator[None]:
    """Call ``show`` with the meter's totals every so often until the block ends."""
    done = threading.Event()

    def watch() -> None:
        while not done.wait(every_seconds):
            show(meter.totals())

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
