"""Targets: every input form, row by row and file by file."""

import io
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from tests.fuzz import rows
from tests.fuzz.registry import target
from tests.fuzz.strategies import files, json_bytes, leaf, text, value
from tests.fuzz.strategies import rows as spoilt
from verifier.errors import ConfigurationError, InputError
from verifier.pipeline.cluster import ActorPool, Cluster
from verifier.pipeline.kinds import FORMS
from verifier.pipeline.prepare import prepare
from verifier.pipeline.rows import cited_claims, claimed_id, parsed_row, printable, wice_claims
from verifier.pipeline.run import Checkpointing, InputLimits, Output
from verifier.pipeline.sources import InputSpec, Row, raw_text
from verifier.validation import built

GROUPS = {"data": InputSpec, "input": InputLimits, "output": Output, "checkpoint": Checkpointing}
GROUPS |= {"actors": ActorPool, "cluster": Cluster}
MOST = 64


def _row_target(form: str) -> None:
    """Any bytes become items that Arrow can hold, or an error with a code and a sentence that can be stored."""
    kind, build = FORMS[form]

    def check(raw: bytes) -> None:
        parsed = [parsed_row(Row(0, raw=raw), frozenset())]
        if form == "wice":
            parsed = list(wice_claims(parsed))
        elif form == "cited":
            parsed = list(cited_claims(parsed, MOST))
        elif form == "registration" and parsed[0].error is None:
            parsed = [Row(0, value=case) for case in _cases(parsed[0].value)]
        for row in parsed:
            try:
                if row.error is not None:
                    raise row.error
                item = build(parsed_row(row, frozenset()).value if form == "registration" else row.value)
                kind.check(item, MOST)
            except InputError as error:
                assert error.code.isidentifier() and str(error)
                for told in (printable(str(error)), raw_text(row), claimed_id(form, row.value) or ""):
                    told.encode()
                continue
            stored = pa.Table.from_pylist([kind.row(0, item)], schema=kind.schema)
            assert stored.num_rows == 1

    check.__name__ = f"row_{form}"
    good = rows.FORMS[form]
    target(json_bytes(spoilt(good)))(check)


def _cases(document: dict[str, Any]) -> list[Any]:
    protocol = document.get("protocol")
    cases = protocol.get("cases") if isinstance(protocol, dict) else None
    return [case for case in cases if isinstance(case, dict)] if isinstance(cases, list) else []


for _form in rows.FORMS:
    _row_target(_form)


def _prepared(spec_of: Any, written: dict[str, bytes]) -> None:
    """A prepare phase ends in a whole summary or in one sentence, and writes nowhere but into its folder."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, content in written.items():
            (folder / file).write_bytes(content)
        before = set(folder.rglob("*"))
        try:
            summary = prepare(spec_of(folder), str(folder / "out"), MOST)
        except ConfigurationError as error:
            assert str(error)
        else:
            assert sum(summary.rejects_by_code.values()) == summary.rejects
            assert summary.rows <= summary.rows_read
            found = (folder / "out" / "work").glob("*.parquet")
            assert sum(pq.read_metadata(path).num_rows for path in found) == summary.rows
        assert all((folder / "out") in (path, *path.parents) for path in set(folder.rglob("*")) - before)


def _file_of(form: str) -> st.SearchStrategy[tuple[str, tuple[str, bytes]]]:
    return st.tuples(st.just(form), files(json_bytes(spoilt(rows.FORMS[form]))))


@target(st.sampled_from(sorted(rows.FORMS)).flatmap(_file_of), share=0.3)
def input_files(data: tuple[str, tuple[str, bytes]]) -> None:
    form, (name, content) = data
    _prepared(lambda folder: InputSpec(form, str(folder / name)), {name: content})


@target(
    st.tuples(files(json_bytes(spoilt(rows.joined_claims))), files(json_bytes(spoilt(rows.joined_evidence)))), share=0.3
)
def joined_files(data: tuple[tuple[str, bytes], tuple[str, bytes]]) -> None:
    (name, claims), (evidence_name, evidence) = data
    evidence_name = f"evidence-{evidence_name}"
    _prepared(
        lambda folder: InputSpec("joined", str(folder / name), str(folder / evidence_name)),
        {name: claims, evidence_name: evidence},
    )


_types = st.recursive(
    st.sampled_from(
        [
            *(pa.string(), pa.large_string(), pa.binary(), pa.int8(), pa.uint64(), pa.float16(), pa.float64()),
            *(pa.bool_(), pa.null(), pa.date32(), pa.date64(), pa.time64("ns"), pa.timestamp("ns")),
            *(pa.timestamp("us", "UTC"), pa.timestamp("ms", "Nowhere/X"), pa.duration("s"), pa.decimal128(38, 10)),
            *(pa.string_view(), pa.uuid(), pa.json_(), pa.dictionary(pa.int32(), pa.string())),
        ]
    ),
    lambda inner: st.one_of(
        inner.map(pa.list_),
        inner.map(lambda kind: pa.struct([("reference", kind), ("text", kind)])),
        inner.map(lambda kind: pa.struct([("a", kind), ("a", kind)])),
        inner.map(lambda kind: pa.map_(pa.string(), kind)),
    ),
    max_leaves=3,
)
_columns = st.lists(
    st.tuples(st.sampled_from(["claim_id", "claim", "evidence", "label", "_x", "\u202e"]), _types, leaf), max_size=5
)


@target(st.tuples(_columns, st.booleans(), st.binary(max_size=3), st.integers(0, 1 << 30)), share=0.4)
def parquet_files(data: tuple[list[tuple[str, pa.DataType, Any]], bool, bytes, int]) -> None:
    columns, with_schema, splice, place = data
    arrays = [_array(kind, value) for _, kind, value in columns]
    buffer = io.BytesIO()
    try:
        table = pa.Table.from_arrays(arrays, names=[name for name, _, _ in columns])
        pq.write_table(table, buffer, store_schema=with_schema)
    except (pa.ArrowException, ValueError):
        return  # what Arrow does not write
    content = buffer.getvalue()
    at = place % (len(content) + 1)
    content = content[:at] + splice + content[at + len(splice) :]
    _prepared(lambda folder: InputSpec("claims", str(folder / "a.parquet")), {"a.parquet": content})


def _array(kind: pa.DataType, one: Any) -> pa.Array:
    for attempt in ([one, None], [b"\xff", None], [[one], []], [1, 0]):
        try:
            return pa.array(attempt, kind)
        except (pa.ArrowException, ValueError, TypeError, OverflowError, KeyError):
            continue
    return pa.nulls(2, kind)


@target(st.tuples(st.sampled_from(sorted(GROUPS)), st.dictionaries(text, value, max_size=3), value, st.integers(0, 9)))
def configuration_groups(data: tuple[str, dict[str, Any], Any, int]) -> None:
    """A configuration group is built or refused with one sentence."""
    name, values, one, field = data
    known = list(GROUPS[name].__dataclass_fields__)
    try:
        built(GROUPS[name], {**values, known[field % len(known)]: one}, name)
    except ConfigurationError as error:
        assert str(error)
