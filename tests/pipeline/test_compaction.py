"""Small result files become large ones; whatever interrupts that, nothing is lost and nothing doubled."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from verifier.pipeline import compaction
from verifier.pipeline.compaction import compact
from verifier.pipeline.leftovers import drop_leftovers, finished_rows, written_rows
from verifier.pipeline.storage import open_filesystem
from verifier.results import read_results, results_table

FILES, ROWS = 24, 5


def write_result(output: Path, mark: str, rows: list[int], marked: bool = True) -> None:
    for folder in ("results", "checkpoint"):
        (output / folder).mkdir(parents=True, exist_ok=True)
    blank = dict.fromkeys(results_table([]).column_names)
    pq.write_table(results_table([blank | {"row_id": row} for row in rows]), output / f"results/{mark}-0.parquet")
    if marked:
        pq.write_table(pa.table({"row_id": rows}), output / f"checkpoint/{mark}.parquet")


@pytest.fixture
def output(tmp_path: Path) -> Path:
    for number in range(FILES):
        write_result(tmp_path, f"m{number:02d}", list(range(number * ROWS, (number + 1) * ROWS)))
    return tmp_path


def check(output: Path) -> None:
    assert read_results(output)["row_id"].to_list() == list(range(FILES * ROWS))
    assert finished_rows(str(output)) == written_rows(str(output)) == FILES * ROWS


def files(output: Path, folder: str = "results") -> list[str]:
    return sorted(path.name for path in (output / folder).iterdir())


def test_many_small_files_become_few_and_the_next_ones_join_later(output: Path) -> None:
    compact(str(output), file_rows=60)
    assert files(output) == ["compact_0-0.parquet", "compact_1-0.parquet"]
    assert files(output, "checkpoint") == ["compact_0.parquet", "compact_1.parquet"]
    check(output)
    before = [(output / "results" / name).stat().st_mtime_ns for name in files(output)]
    compact(str(output), file_rows=60)
    assert before == [(output / "results" / name).stat().st_mtime_ns for name in files(output)]
    for number in range(9):
        write_result(output, f"n{number}", [1000 + number])
    compact(str(output), file_rows=60)
    assert files(output) == ["compact_0-0.parquet", "compact_1-0.parquet", "compact_2-0.parquet"]


def test_few_files_unmarked_ones_and_rows_finished_twice_are_left_alone(tmp_path: Path) -> None:
    for number in range(8):
        write_result(tmp_path, f"m{number}", [number])
    compact(str(tmp_path))
    assert len(files(tmp_path)) == 8
    for number in range(8, 12):
        write_result(tmp_path, f"m{number}", [number])
    write_result(tmp_path, "z", [99], marked=False)
    write_result(tmp_path, "twice", [3])
    compact(str(tmp_path))
    assert len(files(tmp_path)) == 14, "which of two is dropped is not for this module to say"
    (tmp_path / "results/twice-0.parquet").unlink()
    (tmp_path / "checkpoint/twice.parquet").unlink()
    compact(str(tmp_path))
    assert files(tmp_path) == ["compact_0-0.parquet", "z-0.parquet"]


class Interrupted:
    """A filesystem that ends the process, so to speak, in its n-th change: of a file it leaves a piece."""

    def __init__(self, filesystem: Any, changes: int) -> None:
        self._filesystem, self._left = filesystem, changes

    def __getattr__(self, name: str) -> Any:
        if name in ("open_output_stream", "delete_file", "move"):
            if not self._left:
                return self._cut_short if name == "open_output_stream" else _interrupt
            self._left -= 1
        return getattr(self._filesystem, name)

    def _cut_short(self, path: str) -> None:
        Path(path).write_bytes(b"PAR1")
        raise KeyboardInterrupt


def _interrupt(*_: str) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("changes", [*range(8), 20, 40, 51])
def test_an_interruption_loses_and_doubles_nothing(output: Path, changes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(path: str) -> Any:
        filesystem, root = open_filesystem(path)
        return Interrupted(filesystem, changes), root

    monkeypatch.setattr(compaction, "open_filesystem", interrupted)
    with pytest.raises(KeyboardInterrupt):
        compact(str(output), file_rows=60)
    monkeypatch.undo()
    marked = finished_rows(str(output))
    assert marked >= FILES * ROWS, "a row is marked as long as it is there"
    drop_leftovers(str(output), FILES * ROWS)
    check(output)
    compact(str(output), file_rows=60)
    check(output)
    assert len(files(output)) <= 8
