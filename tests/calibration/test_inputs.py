"""What is read: runs of either kind, tables of either form, and what is refused."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.run_fixture import make_claim, row_of, write_run, write_work
from tests.sweep.corpora import ALL
from tests.sweep.test_job import POLICY, finished_run, labelled_claims
from verifier.calibration.inputs import Columns, Input, read_input
from verifier.errors import ConfigurationError
from verifier.protocol import Outcome, PairError
from verifier.results import read_results, scored_pairs


def table(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


ROWS: list[dict[str, Any]] = [
    {"score": 0.9, "label": "supported", "group": "a", "domain": "x", "claim": "c", "evidence": ["one.", "two."]},
    {"score": 0.2, "label": "refuted", "group": "a", "domain": "x", "claim": "d", "evidence": ["one."]},
    {"score": 0.7, "label": "partial", "group": "b", "domain": None, "claim": "e", "evidence": ["two."]},
    {"score": None, "label": "supported", "group": "b", "domain": None, "claim": "f", "evidence": []},
    {"score": 0.5, "label": None, "group": "b", "domain": None, "claim": "g", "evidence": []},
]


def test_a_table_of_json_lines(tmp_path: Path) -> None:
    found = read_input(Input(table=table(tmp_path / "t.jsonl", ROWS)), texts=True)
    assert found.scores.tolist() == [0.9, 0.2, 0.7] and found.positive.tolist() == [True, False, False]
    assert found.groups[0] == found.groups[1] != found.groups[2]
    assert found.domains == ["x", "x", None]
    assert found.texts == [("one.\ntwo.", "c"), ("one.", "d"), ("two.", "e")]
    assert found.comparison == ">"
    assert found.notes == ["2 claims without a label or a score are left out"]


def test_a_parquet_table_with_other_names_and_several_scores_a_claim(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pl.DataFrame({"id": ["a", "b"], "probs": [[0.1, 0.8], [0.3]], "label": [1, 0]}).write_parquet(path)
    found = read_input(Input(table=str(path), columns=Columns(score="probs", group="id")))
    assert found.scores.tolist() == [0.8, 0.3] and found.positive.tolist() == [True, False]
    assert found.texts is None and found.domains == [None, None]
    booleans = read_input(
        Input(table=table(tmp_path / "b.jsonl", [{"score": 1, "label": True}, {"score": 0, "label": False}]))
    )
    assert booleans.positive.tolist() == [True, False] and len(set(booleans.groups)) == 2
    assert "every claim counts as a document of its own" in booleans.notes[0]


def test_a_run_of_groups_gives_the_entailment_that_its_guards_let_count(tmp_path: Path) -> None:
    claims = labelled_claims(90, seed=46)
    run = finished_run(tmp_path / "run", claims, ALL)
    found = read_input(Input(run=run), texts=True)
    rows = read_results(run)
    best = scored_pairs(run).group_by("row_id").agg(pl.col("entailment").max())
    joined = rows.join(best, on="row_id", how="left", maintain_order="left").filter(pl.col("entailment").is_not_null())
    supported = joined["status"].is_in(["supported", "contested"]).to_list()
    assert (found.scores >= POLICY.entailment_threshold).tolist() == supported and 0 < sum(supported) < len(supported)
    counting = found.scores <= joined["entailment"].to_numpy()
    assert counting.all() and (found.scores < joined["entailment"].to_numpy()).any(), "a guard lowers some"
    assert found.positive.tolist() == (joined["label"] == "supported").to_list()
    assert found.comparison == ">=" and len(joined) < len(rows)
    assert "the guards of the run's own policy" in found.notes[0]
    claim = claims[joined["row_id"][0]]
    assert found.texts is not None
    assert found.texts[0] == ("\n".join(item.text for item in claim.evidence), claim.claim)


def test_a_run_with_support_gives_it_and_its_comparison(tmp_path: Path) -> None:
    claims = [make_claim(n, label) for n, label in enumerate(["supported", "refuted", "supported", "refuted"])]
    rows = [row_of(claim, Outcome(None, (), None, n / 4), n) for n, claim in enumerate(claims)]
    rows[0]["document_id"] = rows[1]["document_id"] = "doc"
    rows[3] = row_of(claims[3], Outcome(None, (), PairError("unscored", "model_failure", "no answer")), 3)
    run = write_run(tmp_path / "run", rows, config={"policy": {"comparison": ">"}}, input={"inputs": [{"path": "x"}]})
    found = read_input(Input(run=str(run)))
    assert found.scores.tolist() == [0, 0.25, 0.5], "an unscored claim is left out"
    assert found.groups[0] == found.groups[1] != found.groups[2]
    assert found.comparison == ">" and found.source["inputs"] == [{"path": "x"}]
    with pytest.raises(ConfigurationError, match="has no work/ folder"):
        read_input(Input(run=str(run)), texts=True)
    write_work(run, claims)
    assert read_input(Input(run=str(run)), texts=True).texts is not None


def test_what_cannot_be_used_is_refused_in_one_sentence(tmp_path: Path) -> None:
    def refused(match: str, rows: list[dict[str, Any]], texts: bool = False, **columns: str) -> None:
        spec = Input(table=table(tmp_path / "t.jsonl", rows), columns=Columns(**columns))
        with pytest.raises(ConfigurationError, match=match) as raised:
            read_input(spec, texts)
        assert "\n" not in str(raised.value)

    refused("no column 'score'", [{"label": 1}])
    refused("no column 'doc': set input.columns.group to one of score, label", [{"score": 1, "label": 1}], group="doc")
    refused("reach from 0.5 to 3", [{"score": 0.5, "label": 1}, {"score": 3, "label": 0}])
    refused("no numbers", [{"score": "high", "label": 1}])
    refused("0 of 2 labelled claims are 'supported'", [{"score": 0.5, "label": "yes"}, {"score": 0.5, "label": "no"}])
    refused("0 of 0 labelled claims", [{"score": 0.5, "label": None}])
    refused("columns claim and evidence", [{"score": 0.5, "label": 1}, {"score": 0.5, "label": 0}], texts=True)
    refused("column group has empty values", [{**ROWS[0], "group": None}, ROWS[1]])
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read_input(Input(table=str(tmp_path / "none.jsonl")))
    with pytest.raises(ConfigurationError, match="give one of"):
        read_input(Input())
    with pytest.raises(ConfigurationError, match="holds no decided claims"):
        read_input(Input(run=str(tmp_path / "nothing")))
