"""Raw input rows from files: JSONL by bytes, JSON arrays and registered assays, parquet by record batches."""

import gzip
import hashlib
import io
import json
import logging
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import pyarrow as pa
from pyarrow import fs as pafs

from verifier.errors import ConfigurationError, InputError
from verifier.pipeline.forms import registered_cases
from verifier.pipeline.parquet import read_batches
from verifier.pipeline.storage import list_files
from verifier.pipeline.validation import parse_object
from verifier.redaction import without_secrets_in

logger = logging.getLogger(__name__)

MAX_ROW_BYTES = 64 << 20
"""The longest line of JSON lines, in bytes, after decompression; a longer one is the reject ``row_too_large``."""
MAX_DOCUMENT_BYTES = 256 << 20
"""The largest JSON array or registered assay, in bytes, after decompression; a larger one is a ConfigurationError."""
_NOT_SHOWN = b"(not shown: the parquet row cannot be read)"
_SKIPPED_BYTES = 1 << 20  # of a row that is too long, read at a time
RAW_BYTES = 64 << 10  # of a rejected row's text that is kept
_JSON_SPACE = re.compile(r"[ \t\r\n]*+")
_LINE_BITS = 40  # a place is the file's number and the line's, packed in 63 bits
# KeyError: an unknown time zone; UnicodeDecodeError: the name of a column
_UNREADABLE = (OSError, EOFError, KeyError, UnicodeDecodeError, zlib.error, pa.ArrowException)
_SUFFIXES = {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json", ".parquet": "parquet", ".pq": "parquet"}


@dataclass(frozen=True)
class InputSpec:
    """What to read.

    Attributes:
        form: ``claims``, ``joined``, ``wice``, ``registration``, ``bundle`` or ``cited``.
        path: a file, folder, pattern or URI (``s3://``, ``gs://``), or several of them.
        evidence_path: the evidence table of form ``joined``, given in the same ways.
        format: ``auto`` (by extension), ``jsonl``, ``json`` or ``parquet``; ``.gz`` is seen by extension.
        ignore: names of the user's own columns to leave out of rows and evidence items.
    """

    form: str
    path: str | Sequence[str]
    evidence_path: str | Sequence[str] | None = None
    format: str = "auto"
    ignore: Sequence[str] = ()

    @property
    def paths(self) -> list[str]:
        """Everything that is read, as it was given."""
        given = (self.path, self.evidence_path or ())
        return [path for one in given for path in ([one] if isinstance(one, str) else one)]


@dataclass
class InputFile:
    """One file of the input; ``sha256`` and ``size`` (bytes) are known once it has been read."""

    role: str
    number: int
    filesystem: pafs.FileSystem
    path: str
    kind: str
    sha256: str = ""
    size: int = 0


@dataclass(slots=True)
class Row:
    """One raw row: its place, and its bytes, its value or the error that reading it gave.

    ``size`` is about what the row takes, in bytes, where there is no ``raw``; ``orphan`` says that the row belongs to
    no claim that could be named.
    """

    place: int
    raw: bytes | None = None
    value: Any = None
    error: InputError | None = None
    orphan: bool = False
    size: int = 0


def find_input(spec: InputSpec) -> list[InputFile]:
    """The files of an input, claims first, each part in sorted order."""
    tables = [(spec.form if spec.form in ("answers", "corpus") else "claims", spec.path)]
    if spec.form == "joined":
        if spec.evidence_path is None:
            raise ConfigurationError("the joined form needs the path of its evidence table; set data.evidence_path")
        tables.append(("evidence", spec.evidence_path))
    elif spec.evidence_path is not None:
        raise ConfigurationError(f"the {spec.form} form has no evidence table; leave data.evidence_path out")
    files: list[InputFile] = []
    for role, paths in tables:
        if not paths or not all(path.strip() for path in ([paths] if isinstance(paths, str) else paths)):
            raise ConfigurationError(f"the {role} table of the input has no path; set data.path")
        for path in [paths] if isinstance(paths, str) else paths:
            filesystem, names = list_files(path)
            known = [(name, kind) for name in names if (kind := _kind(name, spec))]
            for name in sorted(set(names) - {name for name, _ in known}):
                logger.warning("%s is not read: its extension is none of %s", name, ", ".join(_SUFFIXES))
            if not known:
                raise ConfigurationError(f"{path} holds no {'/'.join(_SUFFIXES)} file; set data.format to read it so")
            files += [InputFile(role, len(files) + n, filesystem, *entry) for n, entry in enumerate(known)]
    return files


def _kind(name: str, spec: InputSpec) -> str | None:
    if spec.form == "registration":
        return "registration"
    if spec.format != "auto":
        return spec.format
    stem = name.removesuffix(".gz").lower()
    return next((kind for suffix, kind in _SUFFIXES.items() if stem.endswith(suffix)), None)


def source(files: Sequence[InputFile], place: int) -> str:
    """A place as ``file:line``."""
    return f"{without_secrets_in(files[place >> _LINE_BITS].path)}:{place & ((1 << _LINE_BITS) - 1)}"


def read_rows(files: Sequence[InputFile], batch_rows: int) -> Iterator[Row]:
    """The rows of files in order, JSON not yet parsed; a file that cannot be read is a ConfigurationError."""
    for file in files:
        first = file.number << _LINE_BITS
        try:
            for number, row in _rows(file, batch_rows):
                row.place = first + number
                yield row
        except FileNotFoundError as error:
            raise ConfigurationError(f"{file.path} does not exist; check the path") from error
        except _UNREADABLE as error:
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise ConfigurationError(f"{file.path} cannot be read as {file.kind}: {reason}") from error


def _rows(file: InputFile, batch_rows: int) -> Iterator[tuple[int, Row]]:
    if file.kind == "parquet":
        hash_file(file)
        yield from _parquet_rows(file, batch_rows)
        return
    with _Hashed(file) as hashed:
        buffered: io.BufferedReader = io.BufferedReader(hashed, 1 << 20)
        text = buffered
        if file.path.lower().endswith(".gz"):
            text = io.BufferedReader(cast(io.RawIOBase, gzip.GzipFile(fileobj=buffered)), 1 << 20)
        if file.kind == "registration":
            yield from _registered(file, _document(file, text))
        elif file.kind == "json" and text.peek(64).removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"[":
            yield from _array_rows(file, _document(file, text))
        else:
            yield from _lines(text)
        while buffered.read(1 << 20):
            pass  # what a decompressor leaves unread belongs to the digest too


class _Hashed(io.RawIOBase):
    """A file's bytes as they are stored, digested while they are read."""

    def __init__(self, file: InputFile) -> None:
        self._file = file
        self._stream = file.filesystem.open_input_stream(file.path, compression=None)
        self._digest = hashlib.sha256()
        self._size = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = int(self._stream.readinto(buffer))
        self._digest.update(memoryview(buffer)[:count])
        self._size += count
        if count == 0:
            self._file.sha256, self._file.size = self._digest.hexdigest(), self._size
        return count

    def close(self) -> None:
        self._stream.close()
        super().close()


def hash_file(file: InputFile) -> None:
    """Fill in a file's sha256 and size."""
    with _Hashed(file) as hashed:
        while hashed.read(1 << 20):
            pass


def _lines(stream: io.BufferedReader) -> Iterator[tuple[int, Row]]:
    number = 0
    while line := stream.readline(MAX_ROW_BYTES):
        number += 1
        if len(line) == MAX_ROW_BYTES and not line.endswith(b"\n"):
            while (more := stream.readline(_SKIPPED_BYTES)) and not more.endswith(b"\n"):
                pass
            yield number, _too_large(line)
            continue
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        line = line.strip(b" \t\r\n")
        if line:
            yield number, Row(0, raw=line)


def _too_large(raw: bytes) -> Row:
    error = InputError("row_too_large", f"the row is longer than {MAX_ROW_BYTES >> 20} MiB")
    return Row(0, raw=raw[: RAW_BYTES + 1], error=error)


def _document(file: InputFile, stream: io.BufferedReader) -> bytes:
    content = stream.read(MAX_DOCUMENT_BYTES + 1)
    if len(content) > MAX_DOCUMENT_BYTES:
        raise ConfigurationError(
            f"{file.path} is one JSON document of more than {MAX_DOCUMENT_BYTES >> 20} MiB: write its rows one a line"
            " (data.format=jsonl)"
        )
    return content


def _array_rows(file: InputFile, content: bytes) -> Iterator[tuple[int, Row]]:
    """The items of a JSON array as the bytes they stand in, so that one bad item is one reject."""
    text = content.removeprefix(b"\xef\xbb\xbf").decode(errors="surrogateescape")
    decoder, number = json.JSONDecoder(), 0
    position = _after_space(text, text.index("[") + 1)
    while text[position : position + 1] != "]" or number:
        number += 1
        try:
            _, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError) as error:
            raise ConfigurationError(f"{file.path} is not a JSON array: item {number} cannot be parsed") from error
        raw = text[position:end].encode(errors="surrogateescape")
        yield number, _too_large(raw) if len(raw) > MAX_ROW_BYTES else Row(0, raw=raw)
        position = _after_space(text, end)
        if text[position : position + 1] == "]":
            break
        if text[position : position + 1] != ",":
            raise ConfigurationError(f"{file.path} is not a JSON array: no comma stands after item {number}")
        position = _after_space(text, position + 1)
    if _after_space(text, position + 1) < len(text):
        raise ConfigurationError(
            f"{file.path} goes on after its JSON array: rows that stand one a line want data.format=jsonl"
        )


def _after_space(text: str, position: int) -> int:
    space = _JSON_SPACE.match(text, position)
    return space.end() if space else position


def _registered(file: InputFile, content: bytes) -> Iterator[tuple[int, Row]]:
    try:
        document = parse_object(content.removeprefix(b"\xef\xbb\xbf"))
    except InputError as error:
        raise ConfigurationError(f"{file.path} is not a registered assay: {error}") from error
    for number, case in enumerate(registered_cases(document, file.path), 1):
        yield number, Row(0, value=case)


def _parquet_rows(file: InputFile, batch_rows: int) -> Iterator[tuple[int, Row]]:
    with file.filesystem.open_input_file(file.path) as handle:
        number = 0
        for batch, size in read_batches(handle, file.path, batch_rows, MAX_ROW_BYTES):
            size_of_row = size // batch.num_rows if batch else 0
            for row in [_too_large(_NOT_SHOWN)] if batch is None else _batch_rows(batch):
                number, row.size = number + 1, size_of_row
                yield number, row


def _batch_rows(batch: pa.RecordBatch) -> Iterator[Row]:
    try:
        values = batch.to_pylist()
    except (ValueError, OverflowError):  # one value that Python cannot hold spoils the batch: row by row, then
        for index in range(batch.num_rows):
            yield _single_row(batch.slice(index, 1))
        return
    for value in values:
        yield Row(0, value=value)


def _single_row(batch: pa.RecordBatch) -> Row:
    try:
        return Row(0, value=batch.to_pylist()[0])
    except UnicodeDecodeError as error:
        problem = InputError("invalid_utf8", f"the row holds a string that is not valid UTF-8: {error.reason}")
    except (ValueError, OverflowError) as error:
        problem = InputError("bad_time", f"the row holds a value that cannot be read: {error}")
    return Row(0, raw=_NOT_SHOWN, error=problem)


def raw_text(row: Row) -> str:
    """A row as text for a person, at most RAW_BYTES of UTF-8; bytes that are not UTF-8 as ``\\xNN``."""
    raw = row.raw
    if raw is None:
        raw = json.dumps(row.value, ensure_ascii=False, default=str).encode(errors="backslashreplace")
    if len(raw) <= RAW_BYTES:
        return raw.decode(errors="backslashreplace")
    kept = raw[:RAW_BYTES]
    for _ in range(3):  # do not cut inside a character
        if kept[-1] & 0xC0 == 0x80:
            kept = kept[:-1]
    kept = kept[:-1] if kept[-1] >= 0xC0 else kept
    return f"{kept.decode(errors='backslashreplace')}… [cut: the row has {len(raw)} bytes]"
