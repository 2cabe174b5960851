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
_MAX_FIXED_BYTES = 1 << 16  # of a column whose values have one length
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


def read_batches(source: Any, name: str, rows: int, row_bytes: int) -> Iterator[pa.RecordBatch | None]:
    """The rows of a parquet file in order, at most ``rows`` and ``row_bytes`` in a batch; None is a row that has more.

    Texts are read as a dictionary and its indices, so that one text that stands in every row is held once; what a batch
    would take is counted before it is expanded. Not bounded are numbers in a list, and pages larger than the metadata
    of their row group says.

    Raises ConfigurationError, which calls the file ``name``, for what no limit could be kept on.
    """
    file = open_parquet(source, name)
    schema, metadata = file.schema_arrow, file.metadata
    if len(set(schema.names)) < len(schema.names):
        raise ConfigurationError(f"{name} has two columns of one name; rename one")
    _check_sizes(file, name)
    file = pq.ParquetFile(source, metadata=metadata, read_dictionary=_texts(metadata.schema))
    for number in range(metadata.num_row_groups):
        large = metadata.row_group(number).total_byte_size > _GROUP_BYTES
        for batch in file.iter_batches(batch_size=min(rows, _FEW_ROWS) if large else rows, row_groups=[number]):
            yield from _expanded(batch, schema, row_bytes)


def _check_sizes(file: pq.ParquetFile, name: str) -> None:
    # Nothing is asked of the chunks of columns: Arrow ends the process where their metadata is damaged.
    schema = file.metadata.schema
    columns = [schema.column(index) for index in range(len(schema))]
    if any(column.physical_type == "FIXED_LEN_BYTE_ARRAY" and column.length > _MAX_FIXED_BYTES for column in columns):
        raise ConfigurationError(f"{name} has a column of values of over {_MAX_FIXED_BYTES} bytes each: write texts")
    if any(_is_opaque(kind) for kind in file.schema_arrow.types):
        raise ConfigurationError(f"{name} has texts in a column of an extension type: write them as plain texts")


def _texts(schema: pq.ParquetSchema) -> list[str]:
    columns = (schema.column(index) for index in range(len(schema)))
    return [column.path for column in columns if column.physical_type == "BYTE_ARRAY"]


def _is_opaque(kind: pa.DataType) -> bool:
    """Whether a type holds an extension type of texts, which Arrow reads as no dictionary."""
    if isinstance(kind, pa.BaseExtensionType):
        return not pa.types.is_primitive(kind.storage_type) and not pa.types.is_fixed_size_binary(kind.storage_type)
    return any(_is_opaque(kind.field(index).type) for index in range(kind.num_fields))


def _expanded(batch: pa.RecordBatch, schema: pa.Schema, row_bytes: int) -> Iterator[pa.RecordBatch | None]:
    size = sum(_bytes(column) for column in batch.columns)
    if size <= row_bytes:
        yield _plain(batch, schema)
    elif batch.num_rows == 1:
        yield None
    else:
        half = batch.num_rows // 2
        yield from _expanded(batch.slice(0, half), schema, row_bytes)
        yield from _expanded(batch.slice(half), schema, row_bytes)


def _plain(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    try:
        return batch.cast(schema)
    except pa.ArrowNotImplementedError:  # list and string views: the same values, more slowly read
        return batch


def _bytes(array: pa.Array) -> int:
    """The bytes that the values of an array take once its dictionaries are expanded."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        if not pa.types.is_string(kind.value_type) and not pa.types.is_binary(kind.value_type):
            return int(array.nbytes)
        return int(pc.sum(pc.binary_length(array.dictionary).take(array.indices)).as_py() or 0)
    if pa.types.is_struct(kind):
        return sum(_bytes(field) for field in array.flatten())
    return _bytes(array.flatten()) if pa.types.is_nested(kind) else int(array.nbytes)


def _shallow(file: pq.ParquetFile, name: str) -> pq.ParquetFile:
    schema = file.metadata.schema
    if any(schema.column(index).path.count(".") >= MAX_DEPTH for index in range(len(schema))):
        raise ConfigurationError(f"{name} has a column that nests more than {MAX_DEPTH} deep: flatten it")
    return file
