"""Numbered parquet parts, written as streams."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs as pafs


class PartWriter:
    """Writes rows to ``<folder>/<prefix>-%05d.parquet``; every write is a row group, a part holds ``part_rows``.

    There is always a first part, so that an empty table can be read and has its schema.
    """

    def __init__(self, filesystem: pafs.FileSystem, folder: str, prefix: str, schema: pa.Schema, part_rows: int):
        self._filesystem = filesystem
        self._name = f"{folder}/{prefix}"
        self._schema = schema
        self._part_rows = part_rows
        self._rows = 0
        self.parts = 0
        self._stream: Any = None
        self._writer: pq.ParquetWriter | None = None
        filesystem.create_dir(folder, recursive=True)
        self._open()

    def _open(self) -> pq.ParquetWriter:
        self._stream = self._filesystem.open_output_stream(f"{self._name}-{self.parts:05d}.parquet")
        self._writer = pq.ParquetWriter(self._stream, self._schema, compression="zstd")
        self.parts += 1
        self._rows = 0
        return self._writer

    def write(self, rows: Sequence[dict[str, Any]]) -> None:
        """Append rows as one row group."""
        if not rows:
            return
        writer = self._writer or self._open()
        writer.write_table(pa.Table.from_pylist(list(rows), schema=self._schema))
        self._rows += len(rows)
        if self._rows >= self._part_rows:
            self.close()

    def close(self) -> None:
        """Finish the part that is open."""
        if self._writer is not None:
            self._writer.close()
            self._stream.close()
            self._writer = None
