"""What a killed session may have left in ``results/``, told from what is finished by the checkpoint.

Ray Data names a result file ``<mark>-<n>.parquet``, and writes ``checkpoint/<mark>.parquet`` once it is whole. A
writer that outlives its driver for a moment can leave a file without a mark, or rows that were verified again.
"""

from collections import Counter
from pathlib import PurePosixPath

import pyarrow.parquet as pq
from pyarrow import fs as pafs

from verifier.pipeline.storage import open_filesystem

_PENDING = ".pending"


def finished_rows(run_dir: str) -> int:
    """Rows that the checkpoint marks as finished."""
    filesystem, root = open_filesystem(run_dir)
    return sum(_footer(filesystem, path).num_rows for path in _marks(filesystem, root).values())


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


def _marks(filesystem: pafs.FileSystem, root: str) -> dict[str, str]:
    names = {PurePosixPath(path).stem: path for path in _parquet(filesystem, f"{root}/checkpoint")}
    return {name: path for name, path in names.items() if not name.endswith(_PENDING)}


def _mark(path: str) -> str:
    return PurePosixPath(path).stem.rpartition("-")[0]


def _parquet(filesystem: pafs.FileSystem, folder: str) -> list[str]:
    infos = filesystem.get_file_info(pafs.FileSelector(folder, allow_not_found=True))
    return sorted(info.path for info in infos if info.extension == "parquet")


def _footer(filesystem: pafs.FileSystem, path: str) -> pq.FileMetaData:
    with filesystem.open_input_file(path) as file:
        return pq.read_metadata(file)


def _row_ids(filesystem: pafs.FileSystem, path: str) -> list[int]:
    with filesystem.open_input_file(path) as file:
        ids: list[int] = pq.read_table(file, columns=["row_id"])["row_id"].to_pylist()
    return ids
