"""Fuzz targets: plain functions that assert a property of one drawn example, and how they are run."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

from verifier.exits import interrupted_after


@dataclass(frozen=True)
class Target:
    """``check`` raises where the property does not hold; ``share`` weighs how many of all examples it gets."""

    name: str
    check: Callable[[Any], None]
    data: SearchStrategy[Any]
    share: float


@dataclass
class Report:
    """What became of a target's examples; ``slowest`` is in seconds, ``crashes`` say what was raised and for what."""

    name: str
    examples: int = 0
    seconds: float = 0.0
    slowest: float = 0.0
    slowest_example: str = ""
    crashes: list[str] = field(default_factory=list)


class Overtime(AssertionError):
    """An example took longer than it may."""


TARGETS: dict[str, Target] = {}
_ROUND = 500  # examples of one run of hypothesis, whose memory of past examples grows


def target(data: SearchStrategy[Any], share: float = 1.0) -> Callable[[Callable[[Any], None]], Callable[[Any], None]]:
    """Make a function a fuzz target."""

    def register(check: Callable[[Any], None]) -> Callable[[Any], None]:
        TARGETS[check.__name__] = Target(check.__name__, check, data, share)
        return check

    return register


def run(one: Target, examples: int, limit: float, first_seed: int | None) -> Report:
    """Run ``examples`` of a target, in rounds; a round ends at its first crash.

    ``limit`` are the seconds of one example; without a seed the examples are the same each time.
    """
    report = Report(one.name)
    draw = random.Random(first_seed)
    started = time.perf_counter()
    while report.examples < examples and len(report.crashes) < 20:
        before = report.examples
        _round(one, report, min(_ROUND, examples - before), limit, None if first_seed is None else draw.getrandbits(64))
        if report.examples == before:
            break
    report.seconds = time.perf_counter() - started
    return report


def _round(one: Target, report: Report, examples: int, limit: float, number: int | None) -> None:
    last: list[Any] = []

    def timed(data: Any) -> None:
        report.examples += 1
        last[:] = [data]
        started = time.perf_counter()
        try:
            with interrupted_after(limit, Overtime(f"more than {limit:g} s")):
                one.check(data)
        finally:
            seconds = time.perf_counter() - started
            if seconds > report.slowest:
                report.slowest, report.slowest_example = seconds, repr(data)[:60]
        if seconds > limit:
            raise Overtime(f"{seconds:.1f} s")

    test = given(one.data)(timed)
    test = settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=number is None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )(test)
    try:
        (test if number is None else seed(number)(test))()
    except Exception as error:
        report.crashes.append(f"{type(error).__name__}: {str(error)[:300]} for {repr(last)[:600]}")
