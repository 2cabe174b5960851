"""The files of ``results/`` and the marks of the checkpoint that belong to them.

Ray Data names a result file ``<mark>-<n>.parquet``, and writes ``checkpoint/<mark>.parquet`` once it is whole.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs as pafs

from verifier.errors import ConfigurationError

_PENDING = ".pending"


def marks_of(filesystem: pafs.FileSystem, root: str) -> dict[str, str]:
    """The name of every mark of the run directory ``root``, and its file."""
    names = {PurePosixPath(path).stem: path for path in parquet_in(filesystem, f"{root}/checkpoint")}
    return {name: path for name, path in names.items() if not name.endswith(_PENDING)}


def mark_of(path: str) -> str:
    """The name of the mark that a result file has once it is whole."""
    return PurePosixPath(path).stem.rpartition("-")[0]


def parquet_in(filesystem: pafs.FileSystem, folder: str) -> list[str]:
    """The parquet files of a folder, sorted; none where there is no such folder."""
    infos = filesystem.get_file_info(pafs.FileSelector(folder, allow_not_found=True))
    return sorted(info.path for info in infos if info.extension == "parquet")


def read_footer(filesystem: pafs.FileSystem, path: str) -> pq.FileMetaData:
    """What a parquet file says of itself."""
    with _readable(path), filesystem.open_input_file(path) as file:
        return pq.read_metadata(file)


def read_column(filesystem: pafs.FileSystem, path: str, name: str) -> pa.ChunkedArray:
    """One column of a parquet file."""
    return read_table(filesystem, path, [name])[name]


def read_table(filesystem: pafs.FileSystem, path: str, columns: list[str] | None = None) -> pa.Table:
    """A parquet file, all columns or some; ConfigurationError where it is damaged."""
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


def replace_table(filesystem: pafs.FileSystem, path: str, table: pa.Table) -> None:
    """Write a parquet file, perhaps in place of another; a kill leaves what was there whole. No rows: no file."""
    if not table.num_rows:
        filesystem.delete_file(path)
        return
    with filesystem.open_output_stream(f"{path}{_PENDING}") as stream:
        pq.write_table(table, stream)
    filesystem.move(f"{path}{_PENDING}", path)
