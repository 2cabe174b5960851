"""What a session left that the next one must not take for finished, told by the checkpoint.

A writer that outlives its driver for a moment can leave a file without a mark, or rows that were verified again.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from verifier.pipeline.marks import (
    mark_of,
    marks_of,
    parquet_in,
    read_column,
    read_footer,
    read_table,
    replace_table,
)
from verifier.pipeline.storage import open_filesystem


def finished_rows(run_dir: str) -> int:
    """Rows that the checkpoint marks as finished."""
    filesystem, root = open_filesystem(run_dir)
    return sum(read_footer(filesystem, path).num_rows for path in marks_of(filesystem, root).values())


def written_rows(run_dir: str) -> int:
    """Rows of ``results/``."""
    filesystem, root = open_filesystem(run_dir)
    return sum(read_footer(filesystem, path).num_rows for path in parquet_in(filesystem, f"{root}/results"))


def drop_leftovers(run_dir: str, claims: int) -> list[str]:
    """Delete result files that no mark belongs to, and those all of whose rows stand in others; returns their paths."""
    filesystem, root = open_filesystem(run_dir)
    marks = marks_of(filesystem, root)
    files = {path: mark_of(path) for path in parquet_in(filesystem, f"{root}/results")}
    dropped = []
    if marks.keys() & set(files.values()):  # else the files are not named as this module knows them
        dropped = [path for path, mark in files.items() if mark not in marks]
    kept = [path for path in files if path not in dropped]
    if sum(read_footer(filesystem, path).num_rows for path in kept) > claims:
        rows = {path: read_column(filesystem, path, "row_id").to_numpy() for path in kept}
        times = np.bincount(np.concatenate(list(rows.values())))
        for path, ids in rows.items():
            if (times[ids] > 1).all():
                np.subtract.at(times, ids, 1)
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
        int(pc.sum(_failed(read_table(filesystem, path, columns))).as_py() or 0)
        for path in parquet_in(filesystem, f"{root}/results")
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
    marks, forgotten = marks_of(filesystem, root), 0
    for path in parquet_in(filesystem, f"{root}/results"):
        mark = marks.get(mark_of(path))
        if mark is None:
            continue
        finished = read_column(filesystem, mark, "row_id")
        rows = read_table(filesystem, path, ["row_id", "outcome", "error_code"])
        again = rows["row_id"].filter(_failed(rows))
        if len(again):
            finished = finished.filter(pc.invert(pc.is_in(finished, again)))
            replace_table(filesystem, mark, pa.table({"row_id": finished}))
            forgotten += len(again)
        marked = pc.is_in(rows["row_id"], finished)
        if not pc.all(marked).as_py():
            replace_table(filesystem, path, read_table(filesystem, path).filter(marked))
    return forgotten
