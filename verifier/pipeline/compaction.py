"""Many small result files and their marks as a few large ones: a long run leaves one of each for every block.

A file that takes the place of others is written and marked first; then each of those loses its mark and is deleted.
Killed in between, rows stand twice or without a mark, which ``drop_leftovers`` mends.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs as pafs

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

FILE_ROWS = 100_000
_FEW = 8
_PREFIX = "compact"


def compact(run_dir: str, file_rows: int = FILE_ROWS) -> None:
    """Put result files with fewer than half of ``file_rows`` together, up to so many rows a file; few are left alone.

    What has no mark yet is not touched, and nothing is where rows were finished twice. Memory is that of one small
    file and of the ids of all rows.
    """
    filesystem, root = open_filesystem(run_dir)
    marks = marks_of(filesystem, root)
    paths = parquet_in(filesystem, f"{root}/results")
    files_of = Counter(mark_of(path) for path in paths)
    sizes = {path: read_footer(filesystem, path).num_rows for path in paths if mark_of(path) in marks}
    small = {path: rows for path, rows in sizes.items() if rows < file_rows // 2 and files_of[mark_of(path)] == 1}
    if len(small) <= _FEW or _has_repeated(filesystem, marks.values()):
        return
    names = (
        name for name in (f"{_PREFIX}_{number}" for number in count()) if name not in marks and name not in files_of
    )
    for group in _groups(small, file_rows):
        _put_together(filesystem, root, next(names), {path: marks[mark_of(path)] for path in group})


def _has_repeated(filesystem: pafs.FileSystem, marks: Iterable[str]) -> bool:
    ids = np.concatenate([read_column(filesystem, mark, "row_id").to_numpy() for mark in marks])
    return len(np.unique(ids)) < len(ids)


def _groups(sizes: Mapping[str, int], file_rows: int) -> Iterator[Sequence[str]]:
    """Files that go together, in order."""
    group: list[str] = []
    rows = 0
    for path, size in sizes.items():
        if group and rows + size > file_rows:
            if len(group) > 1:
                yield group
            group, rows = [], 0
        group.append(path)
        rows += size
    if len(group) > 1:
        yield group


def _put_together(filesystem: pafs.FileSystem, root: str, name: str, marks: Mapping[str, str]) -> None:
    """Write one file of all of these, mark it, and delete them; ``marks`` has the mark of each file."""
    schema: pa.Schema = read_footer(filesystem, next(iter(marks))).schema.to_arrow_schema()
    results = f"{root}/results/{name}-0.parquet"
    with filesystem.open_output_stream(results) as stream, pq.ParquetWriter(stream, schema) as writer:
        for path in marks:
            writer.write_table(read_table(filesystem, path).cast(schema))
    finished = pa.concat_arrays(
        [chunk for mark in marks.values() for chunk in read_column(filesystem, mark, "row_id").chunks]
    )
    replace_table(filesystem, f"{root}/checkpoint/{name}.parquet", pa.table({"row_id": finished}))
    for path, mark in marks.items():
        filesystem.delete_file(mark)
        filesystem.delete_file(path)
