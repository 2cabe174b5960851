"""Reading a parquet file that anybody may have written: a small one can hold a schema or texts of any size."""

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from verifier.errors import ConfigurationError
from verifier.pipeline.validation import MAX_DEPTH

# Arrow and Polars go down a schema by recursion: some thousand levels, a file of 100 KB, overflow a usual stack.
_STACK_BYTES = 256 << 20
_MAX_SCHEMA_NODES = 1 << 15  # levels, columns or row groups; at most 3 KB of stack each
_MAX_FIXED_BYTES = 1 << 16  # of one value of each column whose values have one length, together
_OBJECT_BYTES = 64  # of a value as Python holds it, beside a text's own
_GROUP_BYTES = 1 << 30  # of a row group, decompressed: most of more may stand in a few of its rows
_FEW_ROWS = 256  # read together from such a group; each batch copies a page of texts


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


def read_batches(source: Any, name: str, rows: int, row_bytes: int) -> Iterator[tuple[pa.RecordBatch | None, int]]:
    """The rows of a parquet file in order, in batches of at most ``rows``, each with about its bytes in Python.

    Those are at most ``row_bytes``; None stands for one row that takes more.

    Texts are read as a dictionary and its indices, so that one text that stands in every row is held once; what a batch
    would take is counted before it is expanded. Not bounded are numbers in a list, and pages larger than the metadata
    of their row group says.

    Raises ConfigurationError, which calls the file ``name``, for what no limit could be kept on.
    """
    file = open_parquet(source, name)
    schema = file.schema_arrow
    if len(set(schema.names)) < len(schema.names):
        raise ConfigurationError(f"{name} has two columns of one name; rename one")
    if not schema.names and file.metadata.num_rows:
        raise ConfigurationError(f"{name} has rows and no columns; write what they hold")
    _check_sizes(file, name)
    texts = [column.path for column in _columns(file) if column.physical_type == "BYTE_ARRAY"]
    compact = pq.ParquetFile(source, metadata=file.metadata, read_dictionary=texts)
    for number in range(file.num_row_groups):
        for batch in _group(compact, file, number, rows):
            yield from _expanded(batch, schema, row_bytes)


def _group(compact: pq.ParquetFile, file: pq.ParquetFile, number: int, rows: int) -> Iterator[pa.RecordBatch]:
    """The batches of a row group, from ``compact`` with texts as dictionaries, from ``file`` where Arrow cannot."""
    few, done = min(rows, _FEW_ROWS), 0
    large = file.metadata.row_group(number).total_byte_size > _GROUP_BYTES
    try:
        for batch in compact.iter_batches(batch_size=few if large else rows, row_groups=[number]):
            done += batch.num_rows
            yield batch
    except OSError as error:
        if "Not yet implemented" not in str(error):
            raise
        # DELTA_BYTE_ARRAY and its like
        for batch in file.iter_batches(batch_size=few, row_groups=[number]):
            fresh = batch.slice(min(done, batch.num_rows))
            done -= batch.num_rows - fresh.num_rows
            if fresh.num_rows:
                yield fresh


def _check_sizes(file: pq.ParquetFile, name: str) -> None:
    # Nothing is asked of the chunks of columns: Arrow ends the process where their metadata is damaged.
    fixed = [column.length for column in _columns(file) if column.physical_type == "FIXED_LEN_BYTE_ARRAY"]
    if sum(fixed) > _MAX_FIXED_BYTES:
        raise ConfigurationError(f"{name} has values of fixed lengths of over {_MAX_FIXED_BYTES} bytes: write texts")
    if any(_is_opaque(kind) for kind in file.schema_arrow.types):
        raise ConfigurationError(f"{name} has texts in a column of an extension type: write them as plain texts")


def _columns(file: pq.ParquetFile) -> list[pq.ColumnSchema]:
    schema = file.metadata.schema
    return [schema.column(index) for index in range(len(schema))]


def _is_opaque(kind: pa.DataType) -> bool:
    """Whether a type holds an extension type of texts, which Arrow reads as no dictionary."""
    if isinstance(kind, pa.BaseExtensionType):
        return not pa.types.is_primitive(kind.storage_type) and not pa.types.is_fixed_size_binary(kind.storage_type)
    return any(_is_opaque(kind.field(index).type) for index in range(kind.num_fields))


def _expanded(batch: pa.RecordBatch, schema: pa.Schema, limit: int) -> Iterator[tuple[pa.RecordBatch | None, int]]:
    size = sum(_bytes(column) for column in batch.columns)
    if size <= limit:
        yield _plain(batch, schema), size
    elif batch.num_rows == 1:
        yield None, 0
    else:
        half = batch.num_rows // 2
        yield from _expanded(batch.slice(0, half), schema, limit)
        yield from _expanded(batch.slice(half), schema, limit)


def _plain(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    try:
        return batch.cast(schema)
    except pa.ArrowNotImplementedError:  # list and string views: the same values, more slowly read
        return batch


def _bytes(array: pa.Array) -> int:
    """About what the values of an array take as Python objects, its dictionaries expanded."""
    kind, own = array.type, _OBJECT_BYTES * len(array)
    if not len(array):
        return 0
    if pa.types.is_dictionary(kind):
        if not pa.types.is_string(kind.value_type) and not pa.types.is_binary(kind.value_type):
            return own
        return own + int(pc.sum(pc.binary_length(array.dictionary).take(array.indices)).as_py() or 0)
    if pa.types.is_struct(kind):
        return own + sum(_bytes(field) for field in array.flatten())
    if pa.types.is_map(kind):
        first, end = array.offsets[0].as_py(), array.offsets[-1].as_py()
        return own + sum(_bytes(part.slice(first, end - first)) for part in (array.keys, array.items))
    return own + (_bytes(array.flatten()) if pa.types.is_nested(kind) else int(array.nbytes))


def _shallow(file: pq.ParquetFile, name: str) -> pq.ParquetFile:
    if any(column.path.count(".") >= MAX_DEPTH for column in _columns(file)):
        raise ConfigurationError(f"{name} has a column that nests more than {MAX_DEPTH} deep: flatten it")
    return file
