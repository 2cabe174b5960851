"""Unscored claims are taken out of a run directory so that they are asked again, whatever interrupts that."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from verifier.errors import ConfigurationError
from verifier.pipeline import leftovers
from verifier.pipeline.leftovers import failed_rows, finished_rows, forget_unscored, written_rows
from verifier.results import read_results, results_table

CODES = {1: "timeout", 2: None, 3: "missing_score", 4: None, 5: "not_finite", 6: "timeout"}


def write_result(output: Path, mark: str, rows: list[int]) -> None:
    blank = dict.fromkeys(results_table([]).column_names)
    for folder in ("results", "checkpoint"):
        (output / folder).mkdir(parents=True, exist_ok=True)
    table = results_table(
        [
            blank | {"row_id": row, "outcome": "unscored" if CODES[row] else "decided", "error_code": CODES[row]}
            for row in rows
        ]
    )
    pq.write_table(table, output / "results" / f"{mark}-0.parquet")
    pq.write_table(table.select(["row_id"]), output / "checkpoint" / f"{mark}.parquet")


@pytest.fixture
def output(tmp_path: Path) -> Path:
    write_result(tmp_path, "a_0", [1, 2, 3])
    write_result(tmp_path, "b_0", [4])
    write_result(tmp_path, "c_0", [5, 6])
    return tmp_path


def rows(output: Path) -> list[int]:
    return read_results(output)["row_id"].to_list()


def test_failed_claims_are_forgotten_and_missing_scores_stay(output: Path) -> None:
    untouched = (output / "results/b_0-0.parquet").stat().st_mtime_ns
    assert failed_rows(str(output)) == forget_unscored(str(output)) == 3
    assert rows(output) == [2, 3, 4] and finished_rows(str(output)) == written_rows(str(output)) == 3
    assert not (output / "checkpoint/c_0.parquet").exists(), "a file of no rows is none"
    assert (output / "results/b_0-0.parquet").stat().st_mtime_ns == untouched
    assert failed_rows(str(output)) == forget_unscored(str(output)) == 0


@pytest.mark.parametrize("steps", range(5))
def test_an_interruption_loses_and_doubles_nothing(output: Path, steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    done = 0
    replace = leftovers.replace_table

    def interrupted(filesystem: object, path: str, table: pa.Table) -> None:
        nonlocal done
        if done == steps:
            raise KeyboardInterrupt
        done += 1
        replace(filesystem, path, table)  # type: ignore[arg-type]

    monkeypatch.setattr(leftovers, "replace_table", interrupted)
    try:
        forget_unscored(str(output))
    except KeyboardInterrupt:
        marked = {
            row
            for path in (output / "checkpoint").glob("*.parquet")
            for row in pq.read_table(path)["row_id"].to_pylist()
        }
        assert {2, 3, 4} <= marked <= set(rows(output)), "what is marked as finished has its result"
    monkeypatch.setattr(leftovers, "replace_table", replace)
    forget_unscored(str(output))
    assert [row for row in rows(output) if row not in (5, 6)] == [2, 3, 4]
    assert finished_rows(str(output)) == 3


def test_a_damaged_file_is_named(output: Path) -> None:
    (output / "checkpoint/b_0.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(ConfigurationError, match=r"b_0\.parquet is damaged"):
        forget_unscored(str(output))
