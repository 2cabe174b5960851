"""What a session left that the next one must not take for finished, told by the checkpoint.

Ray Data names a result file ``<mark>-<n>.parquet``, and writes ``checkpoint/<mark>.parquet`` once it is whole. A
writer that outlives its driver for a moment can leave a file without a mark, or rows that were verified again.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs as pafs

from verifier.errors import ConfigurationError
from verifier.pipeline.storage import open_filesystem

_PENDING = ".pending"


def finished_rows(run_dir: str) -> int:
    """Rows that the checkpoint marks as finished."""
    filesystem, root = open_filesystem(run_dir)
    return sum(_footer(filesystem, path).num_rows for path in _marks(filesystem, root).values())


def written_rows(run_dir: str) -> int:
    """Rows of ``results/``."""
    filesystem, root = open_filesystem(run_dir)
    return sum(_footer(filesystem, path).num_rows for path in _parquet(filesystem, f"{root}/results"))


def drop_leftovers(run_dir: str, claims: int) -> list[str]:
    """Delete result files that no mark belongs to, and those all of whose rows stand in others; returns their paths."""
    filesystem, root = open_filesystem(run_dir)
    marks = _marks(filesystem, root)
    files = {path: _mark(path) for path in _parquet(filesystem, f"{root}/results")}
    dropped = []
    if marks.keys() & set(files.values()):  # else the files are not named as this module knows them
        dropped = [path for path, mark in files.items() if mark not in marks]
    kept = [path for path in files if path not in dropped]
    if sum(_footer(filesystem, path).num_rows for path in kept) > claims:
        rows = {path: _row_ids(filesystem, path) for path in kept}
        times = Counter(row for ids in rows.values() for row in ids)
        for path, ids in rows.items():
            if all(times[row] > 1 for row in ids):
                times.subtract(ids)
                dropped.append(path)
    for path in dropped:
        filesystem.delete_file(path)
        if files[path] in marks:
            filesystem.delete_file(marks[files[path]])
    return dropped


def failed_rows(run_dir: str) -> int:
    """Rows of ``results/`` whose claim a scorer failed on."""
    filesystem, root = open_filesystem(run_dir)
    columns = ["outcome", "error_code"]
    return sum(
        int(pc.sum(_failed(_table(filesystem, path, columns))).as_py() or 0)
        for path in _parquet(filesystem, f"{root}/results")
    )


def _failed(rows: pa.Table) -> pa.ChunkedArray:
    """Which rows are to be asked again: what was not recorded stays missing."""
    return pc.and_(
        pc.equal(rows["outcome"], "unscored"), pc.not_equal(pc.fill_null(rows["error_code"], ""), "missing_score")
    )


def forget_unscored(run_dir: str) -> int:
    """Take claims that a scorer failed on out of checkpoint and results, so that they are asked again; how many.

    A score that was not recorded stays missing, so those claims stay. The checkpoint is changed first: killed in
    between, a row that no mark has is taken out of the results by the next call.
    """
    filesystem, root = open_filesystem(run_dir)
    marks, forgotten = _marks(filesystem, root), 0
    for path in _parquet(filesystem, f"{root}/results"):
        mark = marks.get(_mark(path))
        if mark is None:
            continue
        finished = _column(filesystem, mark, "row_id")
        rows = _table(filesystem, path, ["row_id", "outcome", "error_code"])
        again = rows["row_id"].filter(_failed(rows))
        if len(again):
            finished = finished.filter(pc.invert(pc.is_in(finished, again)))
            _replace(filesystem, mark, pa.table({"row_id": finished}))
            forgotten += len(again)
        marked = pc.is_in(rows["row_id"], finished)
        if not pc.all(marked).as_py():
            _replace(filesystem, path, _table(filesystem, path).filter(marked))
    return forgotten


def _marks(filesystem: pafs.FileSystem, root: str) -> dict[str, str]:
    names = {PurePosixPath(path).stem: path for path in _parquet(filesystem, f"{root}/checkpoint")}
    return {name: path for name, path in names.items() if not name.endswith(_PENDING)}


def _mark(path: str) -> str:
    return PurePosixPath(path).stem.rpartition("-")[0]


def _parquet(filesystem: pafs.FileSystem, folder: str) -> list[str]:
    infos = filesystem.get_file_info(pafs.FileSelector(folder, allow_not_found=True))
    return sorted(info.path for info in infos if info.extension == "parquet")


def _footer(filesystem: pafs.FileSystem, path: str) -> pq.FileMetaData:
    with _readable(path), filesystem.open_input_file(path) as file:
        return pq.read_metadata(file)


def _row_ids(filesystem: pafs.FileSystem, path: str) -> list[int]:
    ids: list[int] = _column(filesystem, path, "row_id").to_pylist()
    return ids


def _column(filesystem: pafs.FileSystem, path: str, name: str) -> pa.ChunkedArray:
    return _table(filesystem, path, [name])[name]


def _table(filesystem: pafs.FileSystem, path: str, columns: list[str] | None = None) -> pa.Table:
    with _readable(path), filesystem.open_input_file(path) as file:
        return pq.read_table(file, columns=columns)


@contextmanager
def _readable(path: str) -> Iterator[None]:
    try:
        yield
    except pa.ArrowInvalid as error:
        raise ConfigurationError(
            f"{path} is damaged: delete results and checkpoint of this run directory and run again"
        ) from error


def _replace(filesystem: pafs.FileSystem, path: str, table: pa.Table) -> None:
    """Write a parquet file in place of another; a kill leaves one or the other whole. No rows: no file."""
    if not table.num_rows:
        filesystem.delete_file(path)
        return
    with filesystem.open_output_stream(f"{path}{_PENDING}") as stream:
        pq.write_table(table, stream)
    filesystem.move(f"{path}{_PENDING}", path)
