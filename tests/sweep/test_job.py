"""The sweep job on run directories: what it refuses, and what it leaves."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hydra import compose, initialize_config_module
from mlflow import MlflowClient
from omegaconf import OmegaConf

from jobs.sweep import spec_of
from tests.run_fixture import row_of, write_run
from tests.search.cases import generate
from tests.sweep.corpora import ALL, FilledScorer, case_claim, run_of
from verifier import Claim, VerificationPolicy, verify_claims
from verifier.calibration.rules import parse_constraints
from verifier.errors import ConfigurationError
from verifier.results import results_table
from verifier.schemas import REJECT_SCHEMA, WORK_SCHEMA, work_row
from verifier.sweep.decisions import OUTCOMES
from verifier.sweep.job import sweep
from verifier.sweep.publish import publish_sweep
from verifier.sweep.runs import open_runs
from verifier.sweep.settings import grid_axes

POLICY = VerificationPolicy()


def labelled_claims(count: int, seed: int) -> list[Claim]:
    cases = [case_claim(case, str(number)) for number, case in enumerate(generate(count, seed))]
    records = verify_claims(cases, FilledScorer(), VerificationPolicy(entailment_threshold=0.65))
    return [
        Claim(one.claim_id, one.claim, one.evidence, one.requires_complete_set, label=record.status.value)
        for one, record in zip(cases, records, strict=True)
    ]


def finished_run(folder: Path, claims: Sequence[Claim], search: Any = None, **identity: Any) -> str:
    outcomes = run_of(claims, FilledScorer(), search)
    rows = [row_of(*both, number) for number, both in enumerate(zip(claims, outcomes, strict=True))]
    known = {"method": "groups", "policy": POLICY.model_dump(mode="json"), "scorer": {}, "scorer_settings": {}}
    files = [{"path": "claims.jsonl", "sha256": "0" * 64}]
    write_run(
        folder,
        rows,
        status="finished",
        identity={**known, **identity},
        input={"inputs": files, "form": "claims"},
        model={"model": POLICY.model, "revision": POLICY.revision},
    )
    (folder / "work").mkdir()
    work = pa.Table.from_pylist([work_row(n, claim) for n, claim in enumerate(claims)], WORK_SCHEMA)
    pq.write_table(work, folder / "work" / "0.parquet")
    return str(folder)


def config_of(*overrides: str) -> dict[str, Any]:
    with initialize_config_module("conf", version_base=None):
        composed = OmegaConf.to_container(compose("sweep", list(overrides)), resolve=True, throw_on_missing=True)
    assert isinstance(composed, dict)
    return composed  # type: ignore[return-value]


def heard(*_: Any) -> None:
    """Progress that nobody looks at."""


def test_a_grid_over_two_runs_equals_fresh_decisions_and_leaves_everything(tmp_path: Path) -> None:
    claims = labelled_claims(90, seed=41)
    runs = [finished_run(tmp_path / "a", claims[:50], ALL), finished_run(tmp_path / "b", claims[50:], ALL)]
    out = tmp_path / "out"
    config = config_of(
        f"sweep.runs=[{','.join(runs)}]",
        'sweep.grid={entailment_threshold: "0.5:0.9:0.05", contradiction_threshold: [0.6, 0.8]}',
        'sweep.constraints={precision: ">=0.9"}',
        f"output.dir={out}",
        "tracking=none",
    )
    found = sweep(spec_of(config), heard)
    publish_sweep(found, str(out), config)
    table = pl.read_parquet(out / "settings.parquet")
    assert table["complete"].all() and len(table) == 18
    for row in table.iter_rows(named=True):
        policy = VerificationPolicy(**{name: row[name] for name in VerificationPolicy.model_fields})
        statuses = [record.status.value for record in verify_claims(claims, FilledScorer(), policy)]
        assert {name: row[f"n_{name}"] for name in OUTCOMES} == {name: statuses.count(name) for name in OUTCOMES}
        assert row["configuration_sha256"] == policy.digest()
    document = json.loads((out / "sweep.json").read_text("utf-8"))
    best = document["best"]
    assert (best["precision"], best["recall"]) == (1.0, 1.0)
    first = table.filter((pl.col("recall") == 1) & (pl.col("precision") == 1))["setting"].min()
    assert best["setting"] == first, "of equals the first"
    assert found.own is not None and table["entailment_threshold"][found.own] == 0.8
    page = (out / "report.html").read_text("utf-8")
    assert page.count("data:image/png") == 2 and "precision &gt;= 0.90" in page
    assert {path.name for path in (out / "pictures").iterdir()} == {"curves.png", "heat.png"}


def test_a_run_that_was_not_exhaustive_is_incomplete_but_for_its_own_policy(tmp_path: Path, capsys: Any) -> None:
    run = finished_run(tmp_path / "a", labelled_claims(60, seed=43))
    out = str(tmp_path / "out")
    config = config_of(f"sweep.runs={run}", "+sweep.grid.entailment_threshold=0.5:1:0.05", "tracking=none")
    found = sweep(spec_of(config), heard)
    complete = found.table.filter("complete")
    assert 0.8 in complete["entailment_threshold"] and 0 < len(complete) < 11
    assert (found.table["missing_pairs"] == 0).to_list() == found.table["complete"].to_list()
    publish_sweep(found, out, config)
    assert "need pairs that were not scored" in capsys.readouterr().out
    assert {path.name for path in (tmp_path / "out" / "pictures").iterdir()} == {"curves.png", "line.png"}


def test_few_settings_are_nested_mlflow_runs_and_many_are_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = finished_run(tmp_path / "a", labelled_claims(20, seed=44), ALL)
    grid = "sweep.grid={max_group_size: [1, 2]}"
    for nested, name in ((2, "few"), (1, "many")):
        config = config_of(f"sweep.runs={run}", grid, f"sweep.nested_runs={nested}", f"sweep.name={name}")
        publish_sweep(sweep(spec_of(config), heard), config["output"]["dir"], config)
    client = MlflowClient(f"sqlite:///{tmp_path / 'mlruns' / 'mlflow.db'}")
    runs = client.search_runs([client.get_experiment_by_name("claim-verification").experiment_id])  # type: ignore[union-attr]
    names = {one.info.run_name: one for one in runs}
    assert names.keys() == {"sweep-few", "sweep-many", "max_group_size=1", "max_group_size=2"}
    parent = names["max_group_size=2"].data.tags["mlflow.parentRunId"]
    assert parent == names["sweep-few"].info.run_id
    assert names["max_group_size=1"].data.params["max_group_size"] == "1"
    assert "sweep/recall" in names["max_group_size=1"].data.metrics
    artifacts = {item.path for item in client.list_artifacts(names["sweep-many"].info.run_id)}
    assert artifacts == {"settings.parquet", "sweep.json", "report.html", "pictures"}


def test_what_cannot_be_swept_is_refused(tmp_path: Path) -> None:
    claims = labelled_claims(6, seed=45)
    run = finished_run(tmp_path / "a", claims)
    other = finished_run(tmp_path / "b", claims, policy=VerificationPolicy(revision="other").model_dump(mode="json"))
    grid = "sweep.grid={max_group_size: [1, 2]}"

    def refused(said: str, *overrides: str) -> None:
        with pytest.raises(ConfigurationError, match=said):
            sweep(spec_of(config_of(grid, "tracking=none", *overrides)), heard)

    refused("no run.json", f"sweep.runs={tmp_path}")
    refused("sweep them one by one", f"sweep.runs=[{run},{other}]")
    refused("sweep.select is", f"sweep.runs={run}", "sweep.select=claims")
    refused("constraints.claims", f"sweep.runs={run}", "+sweep.constraints.claims=3")
    refused("a local folder", f"sweep.runs={run}", "output.dir=s3://bucket/x")
    unknown = finished_run(tmp_path / "c", claims, method="receipts")
    refused("made by the method receipts", f"sweep.runs={unknown}")
    started = json.loads((tmp_path / "b" / "run.json").read_text()) | {"status": "started"}
    (tmp_path / "b" / "run.json").write_text(json.dumps(started))
    refused("no finished run", f"sweep.runs={other}")


def test_evidence_that_the_run_rejected_unread_is_not_swept(tmp_path: Path) -> None:
    run = finished_run(tmp_path / "a", labelled_claims(6, seed=46))
    row = {"row_id": 9, "claim_id": "x", "source": "s:1", "code": "too_much_evidence", "message": "m", "raw": "{}"}
    pq.write_table(pa.Table.from_pylist([row], REJECT_SCHEMA), tmp_path / "a" / "rejects" / "0.parquet")
    config = config_of(f"sweep.runs={run}", "sweep.grid={max_evidence: [64, 100]}", "tracking=none")
    with pytest.raises(ConfigurationError, match="rejected 1 claims with more than 64"):
        sweep(spec_of(config), heard)
    assert (
        len(sweep(spec_of({**config, "sweep": {**config["sweep"], "grid": {"max_evidence": [3]}}}), heard).table) == 1
    )


def test_runs_that_are_damaged_or_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    claims = labelled_claims(12, seed=47)
    counts = {"claims": 12}

    def refused(said: str, *runs: str) -> None:
        with pytest.raises(ConfigurationError, match=said):
            open_runs(runs)

    def run_of_twelve(name: str, **changes: Any) -> str:
        run = finished_run(tmp_path / name, claims)
        content = json.loads((tmp_path / name / "run.json").read_text()) | {"counts": counts} | changes
        (tmp_path / name / "run.json").write_text(json.dumps(content))
        return run

    run = run_of_twelve("a")
    assert open_runs([run]).dirs == (run,)
    refused("more than once", run, f"{run}/")
    refused("more than once", run, Path(run).as_uri())
    other = finished_run(tmp_path / "b", claims, scorer_settings={"too_long": "truncate"})
    refused("another scorer.*too_long was None, now it is truncate", run, other)
    half = run_of_twelve("c")
    next((tmp_path / "c/results").glob("*.parquet")).unlink()
    refused("c/results has 6 of the 12 claims", half)
    gone = run_of_twelve("d")
    next((tmp_path / "d/work").glob("*.parquet")).unlink()
    refused("d/work has 0 of the 12 claims", gone)
    for number, broken in enumerate(
        (
            {"identity": {"method": [], "policy": {}}},
            {"identity": {"method": "groups", "policy": {}}},
            {"model": None},
            {"input": "x"},
            {"input": {"inputs": None}},
        )
    ):
        refused("damaged|no finished run", run_of_twelve(f"e{number}", **broken))


def test_a_claim_that_the_scorer_rejected_stays_rejected_and_costs_no_setting(tmp_path: Path) -> None:
    claims = labelled_claims(20, seed=48)
    run = finished_run(tmp_path / "a", claims, ALL)
    path = next((tmp_path / "a/results").glob("0.parquet"))
    rows = pq.read_table(path).to_pylist()
    place = next(n for n, row in enumerate(rows) if row["pairs"])
    rows[place] |= {"outcome": "rejected", "status": None, "record": None, "pairs": [], "error_code": "pair_too_long"}
    pq.write_table(results_table(rows), path)
    config = config_of(f"sweep.runs={run}", "+sweep.grid.entailment_threshold=[0.6,0.8,0.8]", "tracking=none")
    table = sweep(spec_of(config), heard).table
    assert table["complete"].to_list() == [True, True] and table["n_rejected"].to_list() == [1, 1]


def test_bounds_without_a_sign_and_grids_without_an_end() -> None:
    spec = spec_of(config_of("sweep.runs=x", "sweep.constraints={precision: 0.9, false_support_rate: 0.1}"))
    assert [str(one) for one in parse_constraints(spec.constraints or {})] == [
        "precision >= 0.90",
        "false-support rate <= 0.10",
    ]
    for text in ("0:1:0.0000001", "0.5:1e30:1", "0.5:inf:1", "-inf:1:0.1", "nan:1:1"):
        with pytest.raises(ConfigurationError, match=r"sweep\.grid\.entailment_threshold is"):
            grid_axes({"entailment_threshold": text})
    with pytest.raises(ConfigurationError, match="the grid has 250,500 settings"):
        grid_axes({"entailment_threshold": "0.5:1:0.001", "contradiction_threshold": "0.501:1:0.001"})
