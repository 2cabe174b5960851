"""What a job shows while it works and when it is done."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from verifier.metrics import STATUSES, Metrics
from verifier.pipeline.dry import Estimate
from verifier.pipeline.execution import LOADING
from verifier.pipeline.scale import Projection

_LABEL = 60  # characters of a label
LABELS_SHOWN = 40
LOG_SECONDS = 10.0  # between two lines of a job whose output is no terminal

console = Console(highlight=False)


@contextmanager
def shown_progress() -> Iterator[Any]:
    """A function for ``verifier.pipeline.execution.Progress``: a bar in a terminal, a line now and then in a log."""
    if not console.is_terminal:
        yield _logged()
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bars:
        tasks: dict[str, Any] = {}
        started: dict[str, tuple[float, int]] = {}

        def show(phase: str, done: int, total: int | None, counts: Mapping[str, float]) -> None:
            if phase not in tasks:
                tasks[phase] = bars.add_task(phase, total=total, rate="")
                started[phase] = (time.monotonic(), done)
            if LOADING in tasks:  # a finished phase keeps its bar, loading is over when something is done
                bars.update(tasks[LOADING], visible=phase == LOADING)
            since, before = started[phase]
            bars.update(tasks[phase], completed=done, total=total, rate=_detail(done - before, since, counts))

        yield show


def _logged() -> Any:
    last = {"at": time.monotonic()}
    started: dict[str, tuple[float, int]] = {}

    def show(phase: str, done: int, total: int | None, counts: Mapping[str, float]) -> None:
        since, before = started.setdefault(phase, (time.monotonic(), done))
        if time.monotonic() - last["at"] < LOG_SECONDS:
            return
        last["at"] = time.monotonic()
        of = f" of {total:,}" if total else ""
        left = _left(done - before, (total or done) - done, since)
        rows = "" if phase == LOADING else f"{done:,}{of} rows, "
        console.print(f"{phase}: {rows}{_detail(done - before, since, counts)}{left}")

    return show


def _detail(done: int, since: float, counts: Mapping[str, float]) -> str:
    if "GPU" in counts:
        return f"no actor is ready yet, the cluster has {counts['CPU']:g} CPUs and {counts['GPU']:g} GPUs"
    rate = done / max(time.monotonic() - since, 1e-9)
    wanted = [f"{int(counts[name]):,} {name}" for name in ("pairs", "rejects", "unscored") if counts.get(name)]
    return ", ".join([f"{rate:,.0f}/s", *wanted])


def _left(done: int, remaining: int, since: float) -> str:
    if not done or not remaining:
        return ""
    minutes, seconds = divmod(int((time.monotonic() - since) / done * remaining), 60)
    return f", about {minutes}:{seconds:02d} left"


def show_verdicts(counts: Mapping[str, Any], rejects_by_code: Mapping[str, int], metrics: Metrics | None) -> None:
    """Print the verdict table and, where labels exist, the confusion matrix and the figures."""
    table = Table(title="Verdicts", title_justify="left")
    table.add_column("status")
    table.add_column("claims", justify="right")
    table.add_column("share", justify="right")
    rows = {**counts["statuses"], **{name: counts[name] for name in ("rejected", "unscored") if counts.get(name)}}
    for status, count in rows.items():
        table.add_row(status, f"{count:,}", f"{count / max(counts['claims'], 1):.1%}")
    table.add_row("all", f"{counts['claims']:,}", "", style="bold")
    console.print(table)
    if counts["rejects"]:
        codes = ", ".join(f"{count:,} {code}" for code, count in rejects_by_code.items())
        console.print(
            f"{counts['rejects']:,} input rows were rejected ({codes}), see rejects/ in the run directory",
            soft_wrap=True,
        )
    if metrics is not None:
        _show_metrics(metrics)


def show_estimate(estimate: Estimate, scale: Sequence[Projection]) -> None:
    """Print what a run would do, and what larger ones like it would take."""
    _show_counts(estimate)
    table = Table(title="This run, and larger ones of such claims", title_justify="left")
    names = ("actor hours", "ids of claims, GB", "blocks, GB", "result files", "files under way")
    for name in ("claims", *names):
        table.add_column(name, justify="right")
    table.add_column("what hurts first", no_wrap=True)
    for one in scale:
        sizes = (f"{one.id_gigabytes:,.2f}", f"{one.metadata_gigabytes:,.2f}")
        files = (_short(one.files), _short(one.files_under_way))
        table.add_row(_short(one.claims), _hours(one.actor_hours), *sizes, *files, one.bottleneck)
    console.print(table)
    if any(one.actor_hours is None for one in scale):
        console.print("run.pairs_per_second=… as measured (jobs.bench, jobs.gpu_check) gives the hours of one actor")


def _hours(hours: float | None) -> str:
    if hours is None:
        return "–"
    return f"{hours:,.1f}" if hours < 10**4 else _short(hours)


def _short(count: float) -> str:
    return f"{count:,.0f}" if count < 10**6 else f"{count:.3g}"


def _show_counts(estimate: Estimate) -> None:
    print_counts = (
        ("claims", estimate.claims),
        ("rejected rows", estimate.rejects),
        ("pairs of the first round", estimate.pairs),
        ("distinct ones, each scored once a batch", estimate.distinct),
        ("further pairs, at most", estimate.later),
    )
    for name, count in print_counts:
        console.print(f"{count:>15,} {name}")
    if not estimate.models:
        console.print("the scorer reads no tokens: nothing more to estimate")
        return
    table = Table(title="Tokens of the first round, by model", title_justify="left")
    names = ("inputs", "tokens", "p50", "p95", "max", "windowed", "rejected")
    for name in ("model", *names, "model FLOPs"):
        table.add_column(name, justify="left" if name == "model" else "right")
    for model, figures in estimate.models.items():
        flops = f"{figures['flops']:.2e}" if "flops" in figures else "–"
        table.add_row(shown_text(model), *(f"{figures[name]:,.0f}" for name in names), flops)
    console.print(table)


def shown_text(text: str) -> Text:
    """Anybody's text as it stands, without markup or control characters, and not too long."""
    printable = "".join(character if character.isprintable() else "\ufffd" for character in text)
    return Text(printable if len(printable) <= _LABEL else f"{printable[: _LABEL - 1]}…")


def _show_metrics(metrics: Metrics) -> None:
    found = {status for row in metrics.confusion.values() for status in row}
    statuses = [status for status in STATUSES if status in found]
    table = Table(title="Confusion matrix (rows: label, columns: status)", title_justify="left")
    table.add_column("label")
    for status in statuses:
        table.add_column(status, justify="right")
    for label, row in islice(metrics.confusion.items(), LABELS_SHOWN):
        table.add_row(shown_text(label), *(f"{row.get(status, 0):,}" for status in statuses))
    console.print(table)
    if len(metrics.confusion) > LABELS_SHOWN:
        console.print(f"and {len(metrics.confusion) - LABELS_SHOWN:,} labels more")
    binary = metrics.binary
    figures = {
        "accuracy": metrics.accuracy,
        "supported against the rest: balanced accuracy": binary.balanced_accuracy,
        "precision": binary.precision,
        "recall": binary.recall,
        "false-support rate": binary.false_support_rate,
    }
    console.print(", ".join(f"{name} {value:.3f}" for name, value in figures.items() if value is not None))


def show_answers(counts: Mapping[str, Any]) -> None:
    """Print how many claims got which verdict, and what became of the answers."""
    table = Table(title="Verdicts", title_justify="left")
    for name, justify in (("verdict", "left"), ("claims", "right"), ("share", "right")):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    for verdict, count in counts["verdicts"].items():
        table.add_row(verdict, f"{count:,}", f"{count / max(counts['claims'], 1):.1%}")
    table.add_row("all", f"{counts['claims']:,}", "", style="bold")
    console.print(table)
    parts = [f"{counts['answers']:,} answers"]
    for name, said in (
        ("redacted", "with claims cut out"),
        ("unscored", "not verified, asked again by the same command"),
        ("rejected", "that do not fit the model"),
        ("withheld", "withheld"),
        ("truncated", "texts cut by the embedder"),
        ("rejects", "input rows rejected, see rejects/"),
    ):
        if counts.get(name):
            parts.append(f"{counts[name]:,} {said}")
    console.print(", ".join(parts), soft_wrap=True)
    if corpus := counts.get("corpus"):
        rejected = f", {corpus['rejects']:,} rows rejected" if corpus["rejects"] else ""
        console.print(f"corpus of {corpus['passages']:,} passages{rejected}")
