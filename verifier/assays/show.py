"""What a person sees of an assay: tables of gates, of published figures beside ours, and of two results."""

import re
from typing import Any

from rich.table import Table
from rich.text import Text

from verifier.assays.compare import Comparison
from verifier.assays.gates import GateTable
from verifier.assays.reproducing import Line, Reproduction

ROWS_SHOWN = 20
_DIGEST = re.compile(r"\b[0-9a-f]{64}\b")
_VERDICT = {True: Text("passed", style="green"), False: Text("failed", style="bold red")}
_EQUAL = {True: Text("equal", style="green"), False: Text("differs", style="bold red")}


def gates_table(gates: GateTable) -> Table:
    """One row a gate: required, observed, passed or failed."""
    table = _table("gate", "required", "observed", "")
    for name, gate in gates.results.items():
        table.add_row(name, _plain(gate.required), _plain(gate.observed), _VERDICT[gate.passed])
    return table


def lines_table(reproduction: Reproduction) -> Table:
    """A row for each figure of the whole and each that differs: published, ours, equal and within what tolerance."""
    table = _table("figure", "published", "ours", "", "tolerance")
    for line in (line for line in reproduction.lines if not line.equal or not line.name.startswith("cases/")):
        tolerance = "exact" if line.tolerance is None else _plain(line.tolerance)
        table.add_row(line.name, _plain(line.published), _plain(line.ours), _EQUAL[line.equal], tolerance)
    return table


def comparison_table(comparison: Comparison) -> Table:
    """One row a difference: of a status, of a claim that one has not decided, of a raw score, of a missing claim.

    Of scores and of missing claims the first ``ROWS_SHOWN`` each.
    """
    table = _table("claim", "what", "first", "second", "note")
    for change in comparison.statuses:
        table.add_row(change.case_id, "status", change.first, change.second, f"expected {change.expected or 'unknown'}")
    for open_case in comparison.undecided:
        first, second = (status or "not decided" for status in (open_case.first, open_case.second))
        table.add_row(open_case.case_id, "status", first, second, _DIGEST.sub(_shortened, open_case.reason))
    for score in comparison.scores[:ROWS_SHOWN]:
        what = f"{score.value} of {score.kind} {' '.join(score.references)}"
        table.add_row(score.case_id, what, _plain(score.first), _plain(score.second), "")
    for name in comparison.only_first[:ROWS_SHOWN]:
        table.add_row(name, "claim", "present", "absent", "")
    for name in comparison.only_second[:ROWS_SHOWN]:
        table.add_row(name, "claim", "absent", "present", "")
    return table


def differing(lines: tuple[Line, ...]) -> str:
    """The names of some lines, for a sentence."""
    names = [line.name for line in lines]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _shortened(digest: re.Match[str]) -> str:
    return f"{digest[0][:12]}…"


def _plain(value: Any) -> Text:
    return Text("-" if value is None else _DIGEST.sub(_shortened, str(value)))
