"""``python -m jobs.sweep`` beside ``jobs.verify`` on Ray: exhaustive search, missing pairs, exit statuses, ``-m``."""

import json
from pathlib import Path

import polars as pl
import pytest

from tests.jobs.driver import FREE, run, run_forked, run_json
from tests.jobs.inputs import claim_row, write_lines
from verifier.results import scored_pairs

SCORER = ("scorer=offline", *FREE)
GRID = (
    "+sweep.grid.entailment_threshold=0.5:0.9:0.2",
    "+sweep.grid.max_group_size=[1,2,3]",
    "+sweep.grid.group_candidate_limit=[2,4]",
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``own``, a run of single passages, and ``all``, the same with everything that any policy could need."""
    folder = tmp_path_factory.mktemp("runs")
    rows = [claim_row(n) for n in range(30)]
    for row in rows:
        row["evidence"] += [{"reference": "m9", "text": f"It says: {row['claim']}"}]
    write_lines(folder / "claims.jsonl", rows)
    job = (*FREE, "data=claims", "data.path=claims.jsonl", "policy.max_group_size=1")
    for name, search in (("own", ()), ("all", ("search.exhaustive=true", "search.group_candidate_limit=4"))):
        status, _, errors = run(folder, *job, *search, f"output.dir={name}")
        assert status == 0, errors
    return folder


def pairs_of(output: Path) -> list[tuple[str, str]]:
    return scored_pairs(output).select("premise_sha256", "hypothesis_sha256").rows()


def test_scoring_what_is_missing_gives_the_table_of_the_exhaustive_run(runs: Path) -> None:
    missing = ("sweep.runs=own", "sweep.score_missing=true", "output.dir=filled", *SCORER, *GRID)
    status, _, errors = run(runs, *missing, name="sweep", FREE_LOG=runs / "log")
    assert status == 0, errors
    ends = run_forked(
        [
            (runs, ("sweep.runs=all", "output.dir=swept", "tracking=none", *GRID), {}),
            (runs, ("sweep.runs=own", "output.dir=lacking", "tracking=none", *GRID), {}),
            (runs, missing, {"FREE_LOG": str(runs / "again")}),
        ],
        "sweep",
    )
    assert [status for status, _ in ends] == [0, 0, 0], ends
    filled, swept, lacking = (
        pl.read_parquet(runs / name / "settings.parquet") for name in ("filled", "swept", "lacking")
    )
    assert filled["complete"].all() and filled.equals(swept)
    assert 0 < lacking["complete"].sum() < len(lacking)
    asked, recorded = pairs_of(runs / "filled/missing"), pairs_of(runs / "own")
    assert len(asked) == len(set(asked)) == len((runs / "log").read_text().splitlines())
    assert not set(recorded) & set(asked)
    assert run_json(runs / "filled/missing")["counts"]["pairs"] == len(asked)
    assert json.loads((runs / "filled/sweep.json").read_text())["missing"] == "filled/missing"
    assert not (runs / "again").exists(), "the same command scores nothing again"


REFUSED = {
    "no scorer": (("sweep.runs=own", "sweep.score_missing=true", "output.dir=no"), "give scorer=…"),
    "another scorer": (
        ("sweep.runs=own", "sweep.score_missing=true", "output.dir=no", *SCORER, "scorer.revision=r2"),
        "own was made with another scorer: scorer.revision was r1, now it is r2",
    ),
    "not a run": (("sweep.runs=nowhere", "output.dir=no"), "nowhere is no run directory"),
    "an unknown field": (("sweep.runs=own", "output.dir=no", "+sweep.grid.treshold=[0.5]"), "treshold"),
    "no room": (
        ("sweep.runs=own", "sweep.score_missing=true", "output.dir=full", *SCORER, "actors.num_cpus=99"),
        "99",
    ),
}


def test_exit_statuses_and_a_multirun(runs: Path) -> None:
    tracked = ("tracking=none", *GRID)
    asked = [
        (runs, (*overrides, *(one for one in tracked if one not in overrides)), {}) for overrides, _ in REFUSED.values()
    ]
    for (status, errors), (name, (_, said)) in zip(run_forked(asked, "sweep"), REFUSED.items(), strict=True):
        assert status == 2 and said in errors, (name, errors)
        assert "Traceback" not in errors
    infeasible = ("sweep.runs=all", "output.dir=none", *tracked, '+sweep.constraints.recall=">=1"')
    multirun = ("-m", "sweep.runs=all", "output.dir=many", "sweep.select=recall,precision", *tracked)
    (status, errors), (many, _) = run_forked([(runs, infeasible, {}), (runs, multirun, {})], "sweep")
    assert (status, many) == (1, 0) and "no setting keeps" in errors, errors
    assert {path.name for path in (runs / "many").iterdir()} >= {"0", "1"}
    assert (runs / "many/1/settings.parquet").is_file() and (runs / "none/settings.parquet").is_file()
