"""Large and deep inputs end soon, in little memory and with a reason; for time see ``python -m tests.fuzz.growth``."""

import gzip
import json
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.fuzz.sizes import SCANNERS, TEXTS, bomb, bundle, cited, long_line, many_fields, prepared
from verifier.assays.cohorts.loading import LOADERS
from verifier.errors import ConfigurationError
from verifier.pipeline import sources
from verifier.pipeline.parquet import read_batches
from verifier.pipeline.prepare import prepare
from verifier.pipeline.sources import InputSpec

HARD = 300  # seconds that a process of its own may take: a hang and nothing else


def in_process(code: str) -> str:
    """What a process of its own prints; it may take ``HARD`` seconds."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=HARD, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()


def test_a_line_of_10_mb() -> None:
    assert prepared("claims", long_line(10 << 20)).rows == 1


def test_a_million_passages_are_refused_unread() -> None:
    row = b'{"claim_id":"c","claim":"x","evidence":[' + b"{}," * 999_999 + b"{}]}"
    summary = prepared("claims", row)
    assert summary.rejects_by_code == {"too_much_evidence": 1}
    assert "1000000 evidence items" in str(summary.first_reject)


@pytest.mark.parametrize(
    ("form", "row", "code"),
    [
        ("claims", many_fields(200_000), "repeated_field"),
        ("bundle", bundle(50_000), "no_cited_evidence"),
        ("cited", cited(20_000), "too_much_evidence"),
    ],
)
def test_many_of_everything(form: str, row: bytes, code: str) -> None:
    """Each took minutes where a list was searched for every item."""
    assert prepared(form, row).rejects_by_code == {code: 1}


@pytest.mark.parametrize("form", ["claims", "joined", "wice", "registration", "bundle", "cited", "answers", "corpus"])
@pytest.mark.parametrize("depth", [65, 600, 900, 10_000])
def test_depth(form: str, depth: int, tmp_path: Path) -> None:
    inner = b"[" * depth + b"]" * depth
    row = b'{"claim_id":"a","claim":' + inner + b',"evidence":[],"sentences":' + inner + b',"_own":' + inner + b"}"
    file = tmp_path / "a.json"
    file.write_bytes(b'{"protocol":{"cases":[' + row + b"]}}" if form == "registration" else row + b"\n" + row)
    spec = InputSpec(form, str(file), str(file) if form == "joined" else None)
    if form == "registration":
        with pytest.raises(ConfigurationError, match="nest"):
            prepare(spec, str(tmp_path / "out"))
        return
    summary = prepare(spec, str(tmp_path / "out"))
    assert summary.rows == 0 and set(summary.rejects_by_code) <= {"nested_too_deeply", "unparseable_json"}
    assert "nest" in str(summary.first_reject)


def test_as_deep_as_allowed() -> None:
    inner = b"[" * 63 + b"]" * 63
    row = b'{"claim_id":"a","claim":"x","evidence":[],"_own":' + inner + b"}"
    assert prepared("claims", row).rows == 1
    assert prepared("claims", row.replace(inner, b"[" + inner + b"]")).rejects_by_code == {"nested_too_deeply": 1}


def test_a_zip_bomb_is_one_reject(tmp_path: Path) -> None:
    """A line of 512 MiB in a file of 0.5 MB: the rows around it are kept, in a few times MAX_ROW_BYTES of memory."""
    file = tmp_path / "a.jsonl.gz"
    file.write_bytes(bomb(512))
    assert file.stat().st_size < 1 << 20
    code = (
        "import json, resource\n"
        "from verifier.pipeline.prepare import InputSpec, prepare\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        f"done = prepare(InputSpec('claims', {str(file)!r}), {str(tmp_path / 'out')!r})\n"
        "after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "print(json.dumps([done.rows, done.rejects_by_code, done.first_reject, (after - before) << 10]))"
    )
    rows, codes, reason, grown = json.loads(in_process(code))
    assert (rows, codes) == (2, {"row_too_large": 1}) and "a.jsonl.gz:2: the row is longer than 64 MiB" in reason
    assert grown < 6 * sources.MAX_ROW_BYTES


@pytest.mark.parametrize("form", ["claims", "registration"])
def test_a_bomb_of_one_document(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MAX_DOCUMENT_BYTES", 1 << 20)
    file = tmp_path / "a.json.gz"
    file.write_bytes(gzip.compress(b"[" + b" " * (64 << 20)))
    with pytest.raises(ConfigurationError, match="one JSON document of more than 1 MiB"):
        prepare(InputSpec(form, str(file)), str(tmp_path / "out"))


def test_an_item_of_an_array_that_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MAX_ROW_BYTES", 1 << 16)
    summary = prepared("claims", b"[" + long_line(100) + b"," + long_line(1 << 18) + b"]", "a.json")
    assert (summary.rows, summary.rejects_by_code) == (1, {"row_too_large": 1})


def test_a_cohort_line_that_is_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("verifier.assays.cohorts.reading.MAX_ROW_BYTES", 1 << 16)
    (tmp_path / "a").write_bytes(long_line(1 << 18))
    with pytest.raises(ConfigurationError, match="a:1: the row is longer"):
        LOADERS["wice"].load({"claims": tmp_path / "a"}, {})


@pytest.mark.parametrize("scanner", SCANNERS)
def test_scanners_get_through(scanner: str) -> None:
    """Each pattern over 16 KB: what is quadratic in it would take hours over all."""
    for pattern in TEXTS.values():
        SCANNERS[scanner]((pattern * (1 << 14))[: 1 << 14])


def _varint(number: int) -> bytes:
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def _node(children: int | None) -> bytes:
    """A SchemaElement of Thrift's compact protocol: optional, named a, with children or of the type BYTE_ARRAY."""
    if children is None:
        return b"\x15\x0c\x25\x02\x18\x01a\x00"
    return b"\x35\x02\x18\x01a\x15" + _varint(children << 1) + b"\x00"


def deep_parquet(depth: int) -> bytes:
    """A parquet file without rows whose one column is nested ``depth`` deep; Arrow itself writes none such."""
    nodes = [_node(1)] * (depth + 1) + [_node(None)]
    schema = b"\x19\xfc" + _varint(len(nodes)) + b"".join(nodes)
    footer = b"\x15\x02" + schema + b"\x16\x00\x19\x0c\x00"
    return b"PAR1" + footer + struct.pack("<I", len(footer)) + b"PAR1"


def test_a_parquet_schema_that_is_nested_deeply(tmp_path: Path) -> None:
    """It ended the process: Arrow and Polars go down a schema by recursion."""
    for depth in (100, 20_000, 200_000):
        (tmp_path / f"{depth}.parquet").write_bytes(deep_parquet(depth))
    code = (
        "from pathlib import Path\n"
        "from verifier.assays.cohorts.loading import LOADERS\n"
        "from verifier.errors import ConfigurationError\n"
        "from verifier.pipeline.prepare import InputSpec, prepare\n"
        f"for file in sorted(Path({str(tmp_path)!r}).glob('*.parquet')):\n"
        "    for read in (lambda: prepare(InputSpec('claims', str(file)), f'{file}.out'),\n"
        "                 lambda: LOADERS['aggrefact'].load({'claims': file}, {})):\n"
        "        try:\n"
        "            read()\n"
        "        except ConfigurationError as error:\n"
        "            print(error)\n"
    )
    told = in_process(code).splitlines()
    assert len(told) == 6
    assert sum("nests more than 64 deep" in line for line in told) == 4  # of 100 and 20,000 levels
    assert sum("limit" in line for line in told) == 2  # what Arrow says of a list of 200,000


def _tables() -> dict[str, tuple[pa.Table, str | dict[str, int]]]:
    row = {"claim_id": ["a"], "claim": ["x"], "evidence": pa.array([[]], pa.list_(pa.string()))}
    twice = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    words = pa.array(["a"]).dictionary_encode()
    large = pa.table(row).replace_schema_metadata({"x": "y" * 20_000_000})
    return {
        "10,000 columns": (pa.table(row | {f"_{n}": [n] for n in range(10_000)}), {}),
        "two columns of one name": (
            pa.Table.from_arrays([words, words], ["claim", "claim"]),
            "two columns of one name",
        ),
        "two nested fields of one name": (pa.table(row | {"claim": twice}), {"bad_time": 1}),
        "a dictionary": (pa.table(row | {"claim_id": words, "claim": words}), {}),
        "large metadata": (large, {}),
        "numbers": (pa.table(row | {"claim": [1]}), {"not_a_string": 1}),
        "bytes": (pa.table(row | {"claim": pa.array([b"\xff"])}), {"invalid_utf8": 1}),
        "a list of numbers": (pa.table(row | {"evidence": [[1]]}), {"evidence_not_an_object": 1}),
        "a date beyond the calendar": (pa.table(row | {"claim": pa.array([2**31 - 1], pa.date32())}), {"bad_time": 1}),
        "no such time zone": (pa.table(row | {"_t": pa.array([1], pa.timestamp("us", "No/Where"))}), "cannot be read"),
        "a UUID": (pa.table(row | {"claim_id": pa.array([b"1" * 16], pa.uuid())}), {"not_a_string": 1}),
        "nothing": (pa.table({}), {}),
        "long values of one length": (
            pa.table(row | {"_b": pa.array([b"x" * 70_000], pa.binary(70_000))}),
            "fixed lengths",
        ),
        "texts of an extension type": (pa.table(row | {"claim": pa.array(['"x"'], pa.json_())}), "extension type"),
        "a map": (pa.table(row | {"_m": pa.array([[("k", "v")]], pa.map_(pa.string(), pa.string()))}), {}),
        "views": (pa.table(row | {"claim": pa.array(["x"], pa.string_view())}), {}),
    }


@pytest.mark.parametrize("name", _tables())
def test_hostile_parquet(name: str, tmp_path: Path) -> None:
    table, expected = _tables()[name]
    pq.write_table(table, tmp_path / "a.parquet")
    spec = InputSpec("claims", str(tmp_path / "a.parquet"))
    if isinstance(expected, str):
        with pytest.raises(ConfigurationError, match=expected):
            prepare(spec, str(tmp_path / "out"))
    else:
        assert prepare(spec, str(tmp_path / "out")).rejects_by_code == expected


def repeated(text: str, times: int, rows: int | None = None) -> pa.Table:
    """A table of some KB as parquet: one text ``times`` times, in a row each or in the evidence of each of ``rows``."""
    texts = pa.DictionaryArray.from_arrays(pa.array(np.zeros(times * (rows or 1), np.int32)), [text])
    ids = pa.array([f"c{number}" for number in range(rows or times)])
    if rows is None:
        return pa.table({"claim_id": pa.array(["c"] * times), "claim": texts, "evidence": [[]] * times})
    references = pa.array([f"r{number}" for number in range(times)] * rows)
    items = pa.StructArray.from_arrays([references, texts], ["reference", "text"])
    lists = pa.ListArray.from_arrays(pa.array(range(0, times * rows + 1, times), pa.int32()), items)
    return pa.table({"claim_id": ids, "claim": ids, "evidence": lists})


@pytest.mark.parametrize(
    ("megabytes", "times", "rows", "expected"),
    [
        (20, 80, None, {"repeated_claim_id": 79}),
        (65, 30, None, {"row_too_large": 30}),
        (4, 17, 30, {"row_too_large": 30}),
    ],
    ids=["in every row", "longer than a row may be", "in every item of a list"],
)
def test_one_text_many_times_in_parquet(
    megabytes: int, times: int, rows: int | None, expected: dict[str, int], tmp_path: Path
) -> None:
    path, table = tmp_path / "a.parquet", repeated("x" * (megabytes << 20), times, rows)
    pq.write_table(table, path, dictionary_pagesize_limit=1 << 30, compression="zstd", store_schema=False)
    assert path.stat().st_size < 100_000
    code = (
        "from pathlib import Path\n"
        "from verifier.pipeline.prepare import prepare\n"
        "from verifier.pipeline.sources import InputSpec\n"
        f"summary = prepare(InputSpec('claims', {str(path)!r}), {str(tmp_path / 'out')!r})\n"
        "[peak] = [line for line in Path('/proc/self/status').read_text().splitlines() if line.startswith('VmHWM')]\n"
        "print(summary.rejects_by_code, peak.split()[1])\n"
    )
    rejects, _, kilobytes = in_process(code).rpartition(" ")
    assert rejects == str(expected)
    assert int(kilobytes) < 1_200_000, "the texts together are 1.6 GB or more"


def test_batches_of_a_text_that_stays_a_dictionary_are_bounded_too(tmp_path: Path) -> None:
    """Arrow's schema in the file says that the column is a dictionary, so that the batch has one."""
    pq.write_table(repeated("x" * (1 << 20), 17, rows=30), tmp_path / "a.parquet", dictionary_pagesize_limit=1 << 30)
    batches = list(read_batches(str(tmp_path / "a.parquet"), "a", 2000, 64 << 20))
    assert sum(batch.num_rows for batch, _ in batches if batch) == 30
    assert all(17 << 20 < size < 64 << 20 for _, size in batches) and sum(size for _, size in batches) > 30 * 17 << 20


@pytest.mark.parametrize("encoding", ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY", "PLAIN"])
def test_every_encoding_of_texts_is_read(encoding: str, tmp_path: Path) -> None:
    claims = [f"Claim {number} holds." for number in range(5000)]
    table = pa.table({"claim_id": claims, "claim": claims, "evidence": [[]] * 5000})
    columns = {"claim": encoding}
    pq.write_table(table, tmp_path / "a.parquet", use_dictionary=["claim_id"], column_encoding=columns)
    assert prepare(InputSpec("claims", str(tmp_path / "a.parquet")), str(tmp_path / "out")).rows == 5000
    assert pl.read_parquet(tmp_path / "out/work/*.parquet")["claim"].to_list() == claims


def test_a_pickle_in_arrow_metadata_is_not_run(tmp_path: Path) -> None:
    """Older releases of Arrow unpickled the extension type that a file names."""
    mark = tmp_path / "mark"
    pickled = f"cbuiltins\nopen\n(V{mark}\nVw\ntR.".encode()
    metadata = {"ARROW:extension:name": "arrow.py_extension_type", "ARROW:extension:metadata": pickled}
    field = pa.field("claim", pa.string(), metadata=metadata)
    pq.write_table(pa.table([pa.array(["x"])], schema=pa.schema([field])), tmp_path / "a.parquet")
    prepare(InputSpec("claims", str(tmp_path / "a.parquet")), str(tmp_path / "out"))
    pl.read_parquet(tmp_path / "a.parquet")
    assert not mark.exists()


def test_a_message_is_short_however_long_an_id() -> None:
    evidence = [{"reference": "r" * 100_000, "text": "t"}] * 2
    row = json.dumps({"claim_id": "c" * 100_000, "claim": "x", "evidence": evidence}).encode()
    assert len(str(prepared("claims", row).first_reject)) < 1_500


def test_carriage_returns_alone_are_no_line_ends() -> None:
    """One reject that says so, and not a file that seems empty."""
    summary = prepared("claims", long_line(100) + b"\r" + long_line(100) + b"\r")
    assert summary.rejects_by_code == {"unparseable_json": 1}
