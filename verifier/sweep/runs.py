"""The finished runs that a sweep decides anew: their claims, their scores and what decided them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from verifier.errors import ConfigurationError
from verifier.fusion.confirmed import FusionNli
from verifier.fusion.method import Fusion
from verifier.grounding.method import Grounding
from verifier.records import Claim
from verifier.report.rendering import read_run, section
from verifier.results import scan_folder, scan_rejects
from verifier.schemas import WORK_SCHEMA, claim_from_row
from verifier.search.groups import EvidenceGroups
from verifier.sweep.decisions import Decisions
from verifier.sweep.fusion import FusionTable
from verifier.sweep.grounding import GroundingTable
from verifier.sweep.groups import GroupTable
from verifier.sweep.scores import recorded_labels, run_pairs
from verifier.sweep.settings import Setting

_METHODS: dict[str, Any] = {one.name: one for one in (EvidenceGroups, Grounding, Fusion, FusionNli)}
_PINNED = ("model", "revision")


@dataclass(frozen=True)
class Runs:
    """Finished runs of one method and one model.

    Attributes:
        dirs: the run directories.
        method: its name.
        policy: the fields of the first run's policy.
        identities: what each run's results depend on, of its ``run.json``.
        model: of the first run's ``run.json``.
        inputs: path and sha256 of every input file.
        notes: what a reader of the figures should know.
    """

    dirs: Sequence[str]
    method: str
    policy: Mapping[str, Any]
    identities: Sequence[Mapping[str, Any]]
    model: Mapping[str, Any]
    inputs: Sequence[Mapping[str, Any]]
    notes: Sequence[str]

    @property
    def method_type(self) -> Any:
        """The type of the method."""
        return _METHODS[self.method]

    @property
    def policy_type(self) -> type:
        """The type of the method's policies."""
        kind: type = self.method_type.policy_type
        return kind

    @property
    def has_choices(self) -> bool:
        """Whether support was recorded, whose windows and members can be put together anew."""
        return self.method != EvidenceGroups.name


def open_runs(dirs: Sequence[str]) -> Runs:
    """The runs of these directories; ConfigurationError where one is not finished or they do not belong together."""
    if not dirs:
        raise ConfigurationError("sweep.runs is empty: name the directory of a finished run")
    runs = [_finished(run_dir) for run_dir in dirs]
    first, notes = runs[0], []
    for run_dir, run in zip(dirs, runs, strict=True):
        for name in ("method", *_PINNED):
            mine, others = (one["identity"] if name == "method" else one["identity"]["policy"] for one in (run, first))
            if mine[name] != others[name]:
                raise ConfigurationError(
                    f"{run_dir} has the {name} {mine[name]}, {dirs[0]} has {others[name]}: sweep them one by one"
                )
        if run["identity"]["policy"] != first["identity"]["policy"]:
            notes.append(f"{run_dir} has another policy: fields that are not swept stand as in {dirs[0]}")
    method = first["identity"]["method"]
    if method not in _METHODS:
        raise ConfigurationError(f"{dirs[0]} was made by the method {method}: known are {', '.join(_METHODS)}")
    inputs = [file for run in runs for file in run["input"]["inputs"]]
    identities = [run["identity"] for run in runs]
    return Runs(tuple(dirs), method, first["identity"]["policy"], identities, first["model"], inputs, notes)


def read_claims(runs: Runs) -> list[Claim]:
    """The claims of the runs, in the order of the runs and of their rows."""
    frames = [scan_folder(run, "work", WORK_SCHEMA).sort("row_id").collect() for run in runs.dirs]
    # A run from before there were subclaims has null there.
    return [
        claim_from_row({**row, "subclaims": row["subclaims"] or ()})
        for frame in frames
        for row in frame.iter_rows(named=True)
    ]


class RunTable:
    """The claims of runs with their recorded scores; ``decide`` is array work, whatever the method.

    Args:
        runs, claims, settings: what is swept.
        further: run directories with more scores of the same claims.
    """

    def __init__(
        self, runs: Runs, claims: Sequence[Claim], settings: Iterable[Setting], further: Sequence[str] = ()
    ) -> None:
        self.claims = claims
        pairs = run_pairs([*runs.dirs, *further])
        self._table: Any
        if runs.method == EvidenceGroups.name:
            self._table = GroupTable(claims, recorded_labels(pairs), [setting.policy for setting in settings])
        elif runs.method == Grounding.name:
            self._table = GroundingTable(claims, pairs)
        else:
            self._table = FusionTable(claims, pairs, recorded_labels(pairs))

    def decide(self, setting: Setting) -> Decisions:
        """The decisions under one setting."""
        decided: Decisions = self._table.decide(setting.policy, *([setting.choices] if setting.choices else []))
        return decided


def check_evidence_limit(runs: Runs, settings: Iterable[Setting]) -> None:
    """Raise ConfigurationError for a setting that allows evidence with which the runs rejected claims unread."""
    allowed = runs.policy["max_evidence"]
    asked = max((setting.policy.max_evidence for setting in settings), default=allowed)
    if asked <= allowed:
        return
    for run_dir in runs.dirs:
        rejected = scan_rejects(run_dir).filter(pl.col("code") == "too_much_evidence").select(pl.len()).collect().item()
        if rejected:
            raise ConfigurationError(
                f"max_evidence {asked} is swept, but {run_dir} rejected {rejected} claims with more than {allowed}"
                " evidence items, and their scores are not known: run it again with the larger policy.max_evidence"
            )


def _finished(run_dir: str) -> dict[str, Any]:
    run = read_run(run_dir)
    if not run:
        raise ConfigurationError(f"{run_dir} is no run directory: it has no run.json that can be read")
    if run.get("status") != "finished" or "policy" not in section(run, "identity"):
        raise ConfigurationError(f"{run_dir} is no finished run of jobs.verify: run the same command again first")
    return run
