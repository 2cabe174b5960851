"""Opening a parquet file that anybody may have written."""

import threading
from concurrent.futures import Future
from typing import Any

import pyarrow.parquet as pq

from verifier.errors import ConfigurationError
from verifier.pipeline.validation import MAX_DEPTH

# Arrow and Polars go down a schema by recursion: some thousand levels, a file of 100 KB, overflow a usual stack.
_STACK_BYTES = 256 << 20
_MAX_SCHEMA_NODES = 1 << 15  # levels, columns or row groups; at most 3 KB of stack each


def open_parquet(source: Any, name: str) -> pq.ParquetFile:
    """A parquet file, of a path or an open handle; Arrow's errors where it is none.

    Raises ConfigurationError, which calls the file ``name``, for columns that nest more than ``MAX_DEPTH`` deep.
    """
    opened: Future[pq.ParquetFile] = Future()

    def open_shallow() -> None:
        try:
            opened.set_result(_shallow(pq.ParquetFile(source, thrift_container_size_limit=_MAX_SCHEMA_NODES), name))
        except Exception as error:
            # Without its traceback, whose frames would keep a deep schema alive beyond this stack.
            opened.set_exception(error.with_traceback(None))

    before = threading.stack_size(_STACK_BYTES)
    try:
        thread = threading.Thread(target=open_shallow)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    return opened.result()


def _shallow(file: pq.ParquetFile, name: str) -> pq.ParquetFile:
    schema = file.metadata.schema
    if any(schema.column(index).path.count(".") >= MAX_DEPTH for index in range(len(schema))):
        raise ConfigurationError(f"{name} has a column that nests more than {MAX_DEPTH} deep: flatten it")
    return file
