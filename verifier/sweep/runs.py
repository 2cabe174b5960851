"""The finished runs that a sweep decides anew: their claims, their scores and what decided them."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from verifier.errors import ConfigurationError
from verifier.fusion.confirmed import FusionNli
from verifier.fusion.method import Fusion
from verifier.grounding.method import Grounding
from verifier.pipeline.identity import differences
from verifier.pipeline.storage import open_filesystem
from verifier.records import Claim
from verifier.report.rendering import read_run, section
from verifier.results import RESULT_SCHEMA, scan_folder, scan_rejects, scan_results
from verifier.schemas import WORK_SCHEMA, claim_from_row
from verifier.search.groups import EvidenceGroups
from verifier.sweep.decisions import REJECTED, Bools, Decisions
from verifier.sweep.fusion import FusionTable
from verifier.sweep.grounding import GroundingTable
from verifier.sweep.groups import GroupTable
from verifier.sweep.scores import recorded_labels, run_pairs
from verifier.sweep.settings import Setting

_METHODS: dict[str, Any] = {one.name: one for one in (EvidenceGroups, Grounding, Fusion, FusionNli)}
_PINNED = ("model", "revision")
_PINNED_IN = {*_PINNED, "max_evidence"}
_SCORER = ("scorer", "scorer_settings")


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
    [(place, times)] = Counter(open_filesystem(run)[1].rstrip("/") for run in dirs).most_common(1)
    if times > 1:
        raise ConfigurationError(f"sweep.runs names {place} more than once, which would count its claims twice")
    runs = [_finished(run_dir) for run_dir in dirs]
    first, notes = runs[0], []
    for run_dir, run in zip(dirs, runs, strict=True):
        for name in ("method", *_PINNED):
            mine, others = (one["identity"] if name == "method" else one["identity"]["policy"] for one in (run, first))
            if mine[name] != others[name]:
                raise ConfigurationError(
                    f"{run_dir} has the {name} {mine[name]}, {dirs[0]} has {others[name]}: sweep them one by one"
                )
        found = differences(scorer_of(first["identity"]), scorer_of(run["identity"]))
        if found:
            raise ConfigurationError(f"{run_dir} was made with another scorer than {dirs[0]}: {'; '.join(found)}")
        if run["identity"]["policy"] != first["identity"]["policy"]:
            notes.append(f"{run_dir} has another policy: fields that are not swept stand as in {dirs[0]}")
    method = first["identity"]["method"]
    if method not in _METHODS:
        raise ConfigurationError(f"{dirs[0]} was made by the method {method}: known are {', '.join(_METHODS)}")
    inputs = [file for run in runs for file in run["input"]["inputs"]]
    identities = [run["identity"] for run in runs]
    return Runs(tuple(dirs), method, first["identity"]["policy"], identities, first["model"], inputs, notes)


def scorer_of(identity: Mapping[str, Any]) -> dict[str, Any]:
    """What of a run's identity says which scorer it was made with."""
    return {name: identity.get(name) for name in _SCORER}


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
        _check_members(pairs, settings)
        self._rejected = _rejected_claims(runs.dirs)
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
        # a pair that the scorer rejected has no score and never will have one
        rejected = self._rejected & (decided.missing > 0)
        if not rejected.any():
            return decided
        outcome = np.where(rejected, REJECTED, decided.outcome).astype(np.int8)
        return replace(decided, outcome=outcome, missing=np.where(rejected, 0, decided.missing))


def _rejected_claims(dirs: Iterable[str]) -> Bools:
    """Which claims, in the order of ``read_claims``, a run rejected for a pair."""
    frames = [scan_results(run).select("row_id", "outcome").sort("row_id").collect() for run in dirs]
    rejected: Bools = (pl.concat(frames)["outcome"] == "rejected").to_numpy()
    return rejected


def _check_members(pairs: pl.DataFrame, settings: Iterable[Setting]) -> None:
    """Raise ConfigurationError for a setting that reads one member alone which no pair was recorded of."""
    asked = {setting.choices.get("member") for setting in settings} - {None}
    known = set(pairs["member"].drop_nulls().unique().to_list()) if asked else set()
    for member in asked - known:
        raise ConfigurationError(
            f"sweep: no score of the member {member!r} was recorded: known are {', '.join(sorted(known)) or 'none'}"
        )


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
    identity, model = section(run, "identity"), section(run, "model")
    if run.get("status") != "finished" or "policy" not in identity:
        raise ConfigurationError(f"{run_dir} is no finished run of jobs.verify: run the same command again first")
    whole = isinstance(identity.get("method"), str) and section(identity, "policy").keys() >= _PINNED_IN and model
    if not whole or not isinstance(section(run, "input").get("inputs"), list):
        raise ConfigurationError(f"{run_dir}/run.json is damaged: make the run again")
    _check_whole(run_dir, run)
    return run


def _check_whole(run_dir: str, run: Mapping[str, Any]) -> None:
    """Raise ConfigurationError where claims or results of a run are no longer all there."""
    claims = section(run, "counts").get("claims")
    for folder, schema in (("work", WORK_SCHEMA), ("results", RESULT_SCHEMA)):
        rows = scan_folder(run_dir, folder, schema).select(pl.len()).collect().item()
        if claims is not None and rows != claims:
            raise ConfigurationError(
                f"{run_dir}/{folder} has {rows} of the {claims} claims that the run has finished: make the run again"
            )
