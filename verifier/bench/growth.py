"""Whole runs of growing size with a free scorer: whether speed and memory stay what they are."""

import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from verifier.bench.corpora import short_claims, write_lines
from verifier.bench.figures import Figure, Part
from verifier.bench.processes import in_fresh_process, watched_memory
from verifier.bench.runs import run_claims
from verifier.bench.scorers import FreeScorer
from verifier.pipeline.meter import Totals
from verifier.terminal import console

TITLE = "whole runs of growing size, scoring free of cost"


def measure_growth(
    scratch: str,
    policy: Mapping[str, Any],
    actors: Mapping[str, Any],
    max_rows_lost: int,
    sizes: Sequence[int] = (10_000, 50_000, 200_000),
    rounds: int = 1,
    tolerance: float | None = None,
    object_store_gb: float | None = None,
    most_gib: float | None = None,
    name: str = "growth",
) -> Part:
    """Claims per second of either phase, and the peak memory of driver and actor, for each size.

    Args:
        scratch: folder for corpora and runs, which are deleted in the end.
        policy: fields of VerificationPolicy.
        actors: fields of ActorPool.
        max_rows_lost: as in ``checkpoint``.
        sizes: claims of a run.
        rounds: runs of each size, sizes in turns.
        tolerance: share by which the largest run may be slower, or larger in memory, than the one before.
        object_store_gb: as in ``cluster``.
        most_gib: the most memory that a run may hold at a moment, all its processes together.
        name: of the part.
    """
    Path(scratch).mkdir(parents=True, exist_ok=True)
    runs: dict[int, list[dict[str, Any]]] = {size: [] for size in sizes}
    with TemporaryDirectory(dir=scratch) as folder:
        for size in sizes:
            write_lines(Path(folder) / f"{size}.jsonl", short_claims(size))
        for number in range(rounds):
            for size in sizes:
                output, corpus = f"{folder}/run-{size}-{number}", f"{folder}/{size}.jsonl"
                runs[size].append(
                    in_fresh_process(_watched_run, output, corpus, actors, policy, max_rows_lost, object_store_gb)
                )
                console.print(f"{name}, {size:,} claims: {runs[size][-1]['verify']:,.0f} claims/s")
    figures = [figure for size in sizes for figure in _figures(size, runs[size], most_gib)]
    if len(sizes) > 1:
        figures += _growth(runs[sizes[-2]], runs[sizes[-1]], f"{sizes[-1]}_to_{sizes[-2]}", tolerance)
    note = (
        "speeds with _cpu are per CPU second of the driver or the actor; private memory leaves out the pages of the"
        " object store, which every process that reads a block shares"
    )
    return Part(name, TITLE, figures, (note,), {"runs": {str(size): runs[size] for size in sizes}})


def _watched_run(
    output: str,
    corpus: str,
    actors: Mapping[str, Any],
    policy: Mapping[str, Any],
    max_rows_lost: int,
    object_store_gb: float | None,
) -> dict[str, Any]:
    started = prepared = time.process_time()

    def progress(phase: str, done: int, total: int | None, counts: Totals) -> None:
        nonlocal prepared
        if phase == "prepare":
            prepared = time.process_time()

    with watched_memory() as watch:
        scorer = partial(FreeScorer, kind="sharp")
        run = run_claims(output, corpus, scorer, actors, policy, max_rows_lost, progress, object_store_gb)
    claims, timings = run["counts"]["claims"], run["timings"]
    return {
        "prepare": claims / timings["prepare_seconds"],
        "verify": claims / timings["scoring_seconds"],
        "prepare_cpu": claims / (prepared - started),
        "verify_cpu": claims / timings["cpu_seconds"],
        "driver": {"resident": watch.driver.resident, "private": watch.driver.private},
        "actor": {"resident": watch.actor.resident, "private": watch.actor.private},
        "whole": watch.whole / 1024,
        "timings": timings,
        "counts": run["counts"],
    }


def _figures(size: int, runs: Sequence[Mapping[str, Any]], most_gib: float | None) -> list[Figure]:
    return [
        *(Figure(f"{size}/{name}", [run[name] for run in runs], "claims/s") for name in _SPEEDS),
        *(
            Figure(f"{size}/{name}_{kind}_memory", [run[name][kind] for run in runs], "MiB")
            for name in _PROCESSES
            for kind in ("private", "resident")
        ),
        Figure(f"{size}/whole_memory", [run["whole"] for run in runs], "GiB", most=most_gib),
    ]


_SPEEDS = ("prepare", "prepare_cpu", "verify", "verify_cpu")  # by wall time, and by CPU seconds of the process
_PROCESSES = ("driver", "actor")


def _growth(
    before: Sequence[Mapping[str, Any]], last: Sequence[Mapping[str, Any]], name: str, tolerance: float | None
) -> list[Figure]:
    least, most = (None, None) if tolerance is None else (1 - tolerance, 1 + tolerance)
    both = list(zip(before, last, strict=True))
    speed = [Figure(f"{name}/{phase}_speed", [b[phase] / a[phase] for a, b in both], "x", least) for phase in _SPEEDS]
    memory = [
        Figure(
            f"{name}/{process}_memory",
            [b[process]["private"] / max(a[process]["private"], 1.0) for a, b in both],
            "x",
            most=most,
        )
        for process in _PROCESSES
    ]
    return speed + memory
