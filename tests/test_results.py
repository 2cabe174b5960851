import json
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest

from tests.run_fixture import POLICY, make_claim, make_outcome, make_run, row_of, write_run
from verifier.protocol import Outcome, PairError, ScoredPair
from verifier.records import Status, Verification
from verifier.results import (
    PAIR,
    RECORD,
    RESULT_SCHEMA,
    read_rejects,
    read_results,
    record_of,
    result_row,
    results_table,
    scored_pairs,
)

# Floats whose decimal forms are long or extreme: any lossy step on the way would change a digest.
SCORES = [(0.1 + 0.2, 1e-17), (1 / 3, 2 / 3), (0.8, 5e-324), (0.9999999999999999, 0.0), (0.7999999999999999, 0.1)]


def test_record_schema_has_exactly_the_fields_of_a_verification() -> None:
    record = make_outcome(make_claim(0), Status.SUPPORTED, (0.9, 0.0)).verification
    assert record is not None
    assert [field.name for field in RECORD] == list(record.to_dict())


@pytest.mark.parametrize("status", list(Status))
@pytest.mark.parametrize("scores", SCORES)
def test_records_come_back_equal_with_digests_that_recompute(
    tmp_path: Path, status: Status, scores: tuple[float, float]
) -> None:
    claim = make_claim(3, category="Ünï \x00 code \U0001f980")
    outcome = make_outcome(claim, status, scores)
    write_run(tmp_path, [row_of(claim, outcome, 0)])
    (row,) = read_results(tmp_path).to_dicts()
    record = record_of(row)
    assert record == outcome.verification
    assert json.dumps(record.to_dict()) == json.dumps(outcome.verification.to_dict())
    assert record.result_sha256 == record.computed_result_sha256()
    assert record.evaluation_id == record.computed_evaluation_id()
    assert (row["status"], row["category"], row["outcome"]) == (status.value, claim.category, "decided")


@pytest.mark.parametrize("version", [1, 2])
def test_records_of_older_schemas_come_back_equal(tmp_path: Path, version: int) -> None:
    claim = make_claim(0)
    old = Verification(
        claim.claim,
        Status.INSUFFICIENT,
        "m",
        "r",
        None,
        False,
        "c",
        "d",
        "e",
        schema_version=version,  # type: ignore[arg-type]
    )
    write_run(tmp_path, [row_of(claim, Outcome(old), 0)])
    assert record_of(read_results(tmp_path).row(0, named=True)) == old


def test_scored_pairs_are_flat_and_in_order(tmp_path: Path) -> None:
    claims = [make_claim(n) for n in range(4)]
    statuses = [Status.SUPPORTED, Status.INCOMPLETE, Status.REFUTED, Status.INSUFFICIENT]
    rows = [
        row_of(claim, make_outcome(claim, status, scores, windows=2), 3 - n)
        for n, (claim, status, scores) in enumerate(zip(claims, statuses, SCORES, strict=False))
    ]
    write_run(tmp_path, rows)
    pairs = scored_pairs(tmp_path)
    assert pairs.columns == ["row_id", "claim_id", *(field.name for field in PAIR)]
    assert pairs["row_id"].to_list() == [0, 0, 1, 1, 3, 3]  # the incomplete claim (2) asked for none
    assert pairs["references"].to_list()[:2] == [["doc-3:1"], ["doc-3:2"]]
    assert pairs["entailment"].to_list()[-1] == SCORES[0][0]
    assert pairs.row(0, named=True)["model"] == POLICY.model
    assert read_results(tmp_path, ["premises_windowed"]).to_series().to_list() == [2, 2, 0, 2]


def test_values_of_other_kinds_and_errors(tmp_path: Path) -> None:
    claim = make_claim(0)
    values = {"cosine": 0.25, "lexical": 1.0, "support": 0.625, "gate_tripped": 1.0}
    pair = ScoredPair("window", ("a", "b"), "p", "h", values, window=1, windows=3, truncated=True)
    error = PairError("unscored", "model_failure", "the model returned NaN")
    row = {"row_id": 1, "claim_id": claim.claim_id, "document_id": "d"}
    made = result_row(
        row, Outcome(None, (pair,), error), method="fusion", model="m", revision="r", dtype="x", seconds=1
    )
    write_run(tmp_path, [made])
    (read,) = read_results(tmp_path).to_dicts()
    (flat,) = scored_pairs(tmp_path).to_dicts()
    assert read["outcome"] == "unscored" and read["error_code"] == "model_failure" and read["status"] is None
    assert read["premises_truncated"] == 1 and read["record"] is None and read["document_id"] == "d"
    assert flat["gate_tripped"] is True and flat["cosine"] == 0.25 and flat["support"] == 0.625
    assert flat["entailment"] is None and flat["window"] == 1
    with pytest.raises(ValueError, match="not decided"):
        record_of(read)


def test_a_run_without_files_reads_as_empty(tmp_path: Path) -> None:
    assert read_results(tmp_path).columns == RESULT_SCHEMA.names
    assert scored_pairs(tmp_path).is_empty() and read_rejects(tmp_path).is_empty()


def test_unfinished_and_foreign_files_are_not_read(tmp_path: Path) -> None:
    claim = make_claim(0)
    run_dir = write_run(tmp_path / "a run with [odd] name*", [row_of(claim, make_outcome(claim, *_supported()), 0)])
    for name in (".hidden.parquet", "_partial.parquet", "notes.txt"):
        (run_dir / "results" / name).write_text("not parquet")
    assert len(read_results(run_dir)) == 1


def test_a_file_lacking_a_later_column_and_pair_field_reads_with_nulls(tmp_path: Path) -> None:
    claim = make_claim(0)
    row = row_of(claim, make_outcome(claim, *_supported()), 0)
    frame = pl.DataFrame(results_table([row])).drop("premises_truncated")
    names = [field.name for field in PAIR if field.name != "dtype"]
    fields = [pl.element().struct.field(name) for name in names]
    older = frame.with_columns(pl.col("pairs").list.eval(pl.struct(fields)))
    (tmp_path / "results").mkdir()
    pq.write_table(older.to_arrow(), tmp_path / "results" / "0.parquet")
    assert read_results(tmp_path)["premises_truncated"].to_list() == [None]
    assert scored_pairs(tmp_path)["dtype"].to_list() == [None, None]


def test_rejects_come_back(tmp_path: Path) -> None:
    make_run(tmp_path, 20)
    rejects = read_rejects(tmp_path)
    assert rejects["code"].to_list() == ["unparseable_json", "unparseable_json", "empty_passage"]
    assert rejects["row_id"].to_list() == [20, 21, 22]


def _supported() -> tuple[Status, tuple[float, float]]:
    return Status.SUPPORTED, (0.9, 0.05)
