"""The actions of the assay job on plain configuration values, each with what it prints and writes."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from verifier.assays.cases import CaseResult, cases_of_run
from verifier.assays.compare import compare
from verifier.assays.methods import Execute
from verifier.assays.registering import AssayForm, register
from verifier.assays.registration import Scorer, read_registration
from verifier.assays.reproducing import PublishedAssay, reproduce
from verifier.assays.results import AssayResult, flat_metrics, read_result, write_result
from verifier.assays.running import run_assay
from verifier.assays.sealing import refuse_sealed
from verifier.assays.show import comparison_table, differing, gates_table, lines_table
from verifier.assays.unlocking import record_calibration, unlock
from verifier.errors import ConfigurationError, LimitError
from verifier.terminal import console
from verifier.validation import built

Track = Callable[[str, Mapping[str, Any], Mapping[str, float], Path], str]
"""Keeps an assay's name, what decided it, its figures and file, and returns where."""


def asked_form(fields: Mapping[str, Any]) -> AssayForm:
    """What a user asks to register; ConfigurationError names the field that is wrong."""
    return built(AssayForm, fields, "register")


def register_action(form: AssayForm, registration: str, ledger: str) -> None:
    """Register; print the digest and whether the cohort was observed before."""
    registered, digest = register(form, Path(ledger), Path(registration))
    shape = registered.cohort.shape
    labels = ", ".join(f"{count} {label}" for label, count in shape.labels.items())
    state = f"observed by {', '.join(registered.observed_by)}" if registered.observed else "not observed before"
    console.print(f"cohort       {registered.cohort.name}: {shape.claims} claims ({labels}), {state}", soft_wrap=True)
    console.print(f"registration {registration}\nsha256       {digest}\nledger       {ledger}", soft_wrap=True)


def run_action(
    registration: str,
    paths: Mapping[str, str],
    ledger: str,
    output: str,
    scorer: Scorer,
    execute: Execute,
    track: Track,
    count_tokens: Callable[[str], int] | None = None,
) -> AssayResult:
    """Run a registered assay; LimitError where a gate failed, once the result is written."""
    registered = read_registration(Path(registration))
    result = run_assay(registered, execute, scorer, Path(ledger), _paths(paths), count_tokens)
    written = write_result(result, Path(output))
    console.print(gates_table(result.gates))
    decided_by = {**result.policy, "method": result.method, "model": result.model, "revision": result.revision}
    where = track(result.name, decided_by, result.flat(), written)
    console.print(f"result {written}\nMLflow {where}", soft_wrap=True)
    if not result.gates.passed:
        raise LimitError(f"the assay {result.name} failed: {', '.join(result.gates.failed)}")
    return result


def reproduce_action(assay: Mapping[str, Any] | None, ledger: str, output: str, track: Track) -> None:
    """Reproduce a published assay; LimitError where a figure differs or a gate failed, once all is written."""
    if assay is None:
        raise ConfigurationError("no assay is chosen: give assay=guards44, minimal20 or wice_minicheck_flan_t5")
    fields = {name: value for name, value in assay.items() if name != "folder"}
    found = reproduce(built(PublishedAssay, fields, "assay"), Path(ledger))
    written = _written(output, "reproduction.json", found.to_dict())
    console.print(lines_table(found))
    console.print(gates_table(found.gates))
    if found.under_schema_3 is not None:
        console.print("the records (first) beside the same scores decided under schema 3 (second):")
        console.print(comparison_table(found.under_schema_3))
    equal = len(found.lines) - len(found.differences)
    console.print(f"{equal} of {len(found.lines)} figures are equal, those of single cases among them")
    figures = {**flat_metrics(found.cases, found.gates), "figures/differing": len(found.differences)}
    where = track(found.name, found.decided_by, figures, written)
    console.print(f"reproduction {written}\nMLflow {where}", soft_wrap=True)
    if found.differences:
        raise LimitError(f"{len(found.differences)} figures of {found.name} differ: {differing(found.differences)}")
    if not found.gates.passed:
        raise LimitError(f"the assay {found.name} failed, as published: {', '.join(found.gates.failed)}")


def compare_action(first: str, second: str, tolerance: float, ledger: str, output: str) -> None:
    """Compare two results or runs."""
    found = compare(_cases(first, ledger), _cases(second, ledger), tolerance)
    written = _written(output, "comparison.json", found.to_dict())
    if found.statuses or found.undecided or found.scores or found.only_first or found.only_second:
        console.print(comparison_table(found))
    absent = sum(None in (score.first, score.second) for score in found.scores)
    console.print(
        f"{found.same} claims decided alike, {len(found.statuses)} differently, {len(found.undecided)} not by both;"
        f" {len(found.only_first) + len(found.only_second)} in one alone; "
        f" {len(found.scores) - absent} raw scores differ, {absent} stand on one side alone",
        soft_wrap=True,
    )
    console.print(f"comparison {written}, which has every difference", soft_wrap=True)


def unlock_action(
    registration: str, statuses: str, chosen: Mapping[str, Any], paths: Mapping[str, str], ledger: str
) -> None:
    """Judge the calibration of a sealed cohort and unlock it; LimitError where it failed and stays sealed."""
    registered = read_registration(Path(registration))
    decided = read_statuses(Path(statuses))
    table = record_calibration(registered, decided, Path(ledger), chosen, _paths(paths))
    console.print(gates_table(table))
    if not table.passed:
        raise LimitError(
            f"the calibration failed ({', '.join(table.failed)}): the cohort {registered.cohort.name} stays sealed"
        )
    unlock(registered, Path(ledger))
    console.print(f"unlocked {registered.cohort.name}\nledger   {ledger}", soft_wrap=True)


def read_statuses(path: Path) -> dict[str, str | None]:
    """Claim id to status, from JSON lines of ``claim_id`` and ``status`` or from the result of an assay."""
    if path.is_dir() or path.suffix == ".json":
        return {case.case_id: case.status for case in read_result(path).cases}
    try:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        statuses = {row["claim_id"]: row["status"] for row in rows}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigurationError(f"{path} holds no lines of claim_id and status that can be read: {error}") from error
    if len(statuses) < len(rows):
        raise ConfigurationError(f"{path} decides a claim twice: one line a claim expected")
    return statuses


def _cases(path: str, ledger: str) -> list[CaseResult]:
    if (Path(path) / "run.json").is_file():
        refuse_sealed(path, ledger)
        return cases_of_run(path)
    return list(read_result(Path(path)).cases)


def _paths(paths: Mapping[str, str]) -> dict[str, Path]:
    return {role: Path(path) for role, path in paths.items()}


def _written(output: str, name: str, value: Mapping[str, Any]) -> Path:
    folder = Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return folder / name
