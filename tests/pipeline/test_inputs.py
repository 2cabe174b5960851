"""Every kind of file and every form, through prepare."""

import gzip
import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.pipeline.runs import claim, rejects, work, write
from verifier.errors import ConfigurationError
from verifier.pipeline import sources
from verifier.pipeline.prepare import InputSpec, prepare
from verifier.schemas import claim_from_row

SHARED = Path(__file__).resolve().parents[3] / "shared"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="../shared with the published data is absent")


def test_lines_as_users_write_them(tmp_path: Path) -> None:
    rows = [b"\xef\xbb\xbf" + json.dumps(claim(0)).encode(), b"", b"  \t", claim(1, claim="nul \x00 inside"), b""]
    path = write(tmp_path / "in.jsonl", [*rows, claim(2, claim="x" * 5_000_000)], b"\r\n")
    path.write_bytes(path.read_bytes() + json.dumps(claim(3)).encode())  # no newline at the end
    summary = prepare(InputSpec("claims", str(path)), str(tmp_path / "out"))
    assert summary.rejects == 0
    assert [row["row_id"] for row in work(tmp_path / "out")] == [0, 1, 2, 3]
    assert work(tmp_path / "out")[1]["claim"] == "nul \x00 inside"


def test_long_raw_text_is_cut_with_a_mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MAX_ROW_BYTES", 1 << 20)
    long = json.dumps(claim(0, claim="é" * 100_000, extra=1), ensure_ascii=False).encode()
    path = write(tmp_path / "in.jsonl", [long, b"x" * (3 << 20), claim(1)])
    prepare(InputSpec("claims", str(path)), str(tmp_path / "out"))
    first, second = rejects(tmp_path / "out")
    assert (first["code"], second["code"]) == ("unknown_field", "row_too_large")
    assert first["raw"].endswith(f"é… [cut: the row has {len(long)} bytes]")
    assert len(first["raw"].encode()) < (64 << 10) + 100
    assert [row["row_id"] for row in work(tmp_path / "out")] == [2]


def test_folder_pattern_list_gz_and_json(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    (folder / "deep").mkdir(parents=True)
    (folder / "a.jsonl.gz").write_bytes(gzip.compress(json.dumps(claim(0)).encode() + b"\n" + b"bad\n"))
    items = b"\xef\xbb\xbf[" + json.dumps(claim(1)).encode() + b',\n {"claim": NaN}, "text", '
    (folder / "b.json").write_bytes(items + json.dumps(claim(2)).encode() + b'\n, {"claim": "\xff"}]')
    write(folder / "deep" / "c.jsonl", [claim(3)])
    write(folder / "d.json", [claim(4)])  # lines in a .json file, as many data sets have
    (folder / "_SUCCESS").touch()
    (folder / "notes.txt").touch()
    prepare(InputSpec("claims", str(folder)), str(tmp_path / "out"))
    assert [row["claim_id"] for row in work(tmp_path / "out")] == ["c0", "c1", "c2", "c4", "c3"]
    codes = ["unparseable_json", "not_finite_number", "not_an_object", "invalid_utf8"]
    assert [row["code"] for row in rejects(tmp_path / "out")] == codes
    patterns = {"*.json*": 4, "**/*.jsonl": 1, "?.jsonl.gz": 1, "deep/*": 1}
    for number, (pattern, count) in enumerate(patterns.items()):
        spec = InputSpec("claims", f"{folder}/{pattern}")
        assert prepare(spec, str(tmp_path / f"out{number}")).rows == count, pattern
    several = InputSpec("claims", [str(folder / "deep"), (folder / "d.json").as_uri()])
    assert prepare(several, (tmp_path / "uri").as_uri()).rows == 2
    assert [row["claim_id"] for row in work(tmp_path / "uri")] == ["c3", "c4"]


def test_parquet_with_nested_evidence(tmp_path: Path) -> None:
    kind = pa.struct(
        [("reference", pa.string()), ("text", pa.large_string()), ("event_time", pa.timestamp("us", tz="UTC"))]
    )
    when = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    columns = {
        "claim_id": pa.array(["c0", "c1", None, "c3"]),
        "claim": pa.array(["a", "b", "c", "d"], pa.string()).dictionary_encode(),
        "evidence": pa.array(
            [[{"reference": "m", "text": "t", "event_time": when}], [], [], [{"reference": "m", "text": None}]],
            pa.list_(kind),
        ),
        "label": pa.array([None, "supported", None, None]),
        "__index_level_0__": pa.array([0, 1, 2, 3]),
    }
    pq.write_table(pa.table(columns), tmp_path / "in.parquet")
    summary = prepare(InputSpec("claims", str(tmp_path / "in.parquet")), str(tmp_path / "out"))
    first, second = work(tmp_path / "out")
    assert first["evidence"][0]["event_time"] == "2026-01-02T03:04:05Z"
    assert claim_from_row(second).label == "supported"
    bad = rejects(tmp_path / "out")
    assert [(row["row_id"], row["code"]) for row in bad] == [(2, "missing_claim_id"), (3, "missing_evidence_field")]
    assert bad[0]["source"] == f"{tmp_path / 'in.parquet'}:3"
    assert json.loads(bad[0]["raw"])["claim"] == "c"
    assert summary.inputs[0].sha256 == hashlib.sha256((tmp_path / "in.parquet").read_bytes()).hexdigest()


def test_parquet_values_that_python_cannot_hold(tmp_path: Path) -> None:
    offsets, content = pa.py_buffer(b"\0\0\0\0\1\0\0\0\2\0\0\0"), pa.py_buffer(b"a\xff")
    broken = pa.Array.from_buffers(pa.string(), 2, [None, offsets, content])
    evidence = pa.array([[], []], pa.list_(pa.string()))
    table = pa.table({"claim_id": ["c0", "c1"], "claim": broken, "evidence": evidence})
    pq.write_table(table, tmp_path / "in.parquet")
    prepare(InputSpec("claims", str(tmp_path / "in.parquet")), str(tmp_path / "out"))
    assert [row["claim_id"] for row in work(tmp_path / "out")] == ["c0"]
    assert [row["code"] for row in rejects(tmp_path / "out")] == ["invalid_utf8"]


def joined_tables() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    claims = [{"claim_id": f"c{n}", "claim": "x", "evidence_set": s} for n, s in enumerate(["s1", "s2", "s1", "s9"])]
    claims.append({"claim_id": "c4", "claim": "x", "evidence_set": None})
    claims.append({"claim_id": "c5", "claim": "x", "evidence_set": "big"})
    order = [("s2", "b"), ("s1", "z"), ("s2", "a"), ("s1", "y")]
    evidence = [{"evidence_set": s, "reference": r, "text": f"text {r}"} for s, r in order]
    evidence += [{"evidence_set": "big", "reference": f"r{n}", "text": "x"} for n in range(70)]
    return claims, evidence


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[{"a": 1}]\n[{"a": 2}]', "data.format=jsonl"),
        ('[{"a": 1}] left', "goes on after"),
        ('[{"a": 1} {"a": 2}]', "no comma stands after item 1"),
        ('[{"a": 1},]', "item 2 cannot be parsed"),
        ('[,{"a": 1}]', "item 1 cannot be parsed"),
        ('[{"a": 1}', "no comma"),
    ],
)
def test_a_json_array_that_is_none_is_refused_whole(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "in.json").write_text(text)
    with pytest.raises(ConfigurationError, match=says):
        prepare(InputSpec("claims", str(tmp_path / "in.json")), str(tmp_path / "out"))


def test_a_parquet_time_zone_that_nobody_knows_names_the_file(tmp_path: Path) -> None:
    table = pa.table({"claim_id": ["c"], "_at": pa.array([0], pa.timestamp("s", tz="Bogus/Zone"))})
    pq.write_table(table, tmp_path / "in.parquet")
    with pytest.raises(ConfigurationError, match=r"in\.parquet cannot be read as parquet"):
        prepare(InputSpec("claims", str(tmp_path / "in.parquet")), str(tmp_path / "out"))


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
@pytest.mark.parametrize("chunk_rows", [2, 2000])
def test_joined(tmp_path: Path, kind: str, chunk_rows: int) -> None:
    for name, rows in zip(("claims", "evidence"), joined_tables(), strict=True):
        if kind == "parquet":
            pq.write_table(pa.Table.from_pylist(rows), tmp_path / f"{name}.parquet")
        else:
            write(tmp_path / f"{name}.jsonl", rows)
    spec = InputSpec("joined", str(tmp_path / f"claims.{kind}"), str(tmp_path / f"evidence.{kind}"))
    summary = prepare(spec, str(tmp_path / "out"), chunk_rows=chunk_rows)
    found = {row["claim_id"]: [e["reference"] for e in row["evidence"]] for row in work(tmp_path / "out")}
    assert found == {"c0": ["z", "y"], "c1": ["b", "a"], "c2": ["z", "y"]}
    codes = ["evidence_set_without_rows", "missing_evidence_field", "too_much_evidence"]
    bad = rejects(tmp_path / "out")
    assert [(row["row_id"], row["code"]) for row in bad] == list(zip([3, 4, 5], codes, strict=True))
    assert "70 evidence items" in bad[2]["message"]
    assert summary.rows_read == 6
    assert [file.role for file in summary.inputs] == ["claims", "evidence"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["prepare.json", "rejects", "work"]


def test_a_damaged_evidence_set_is_not_decided_on_less(tmp_path: Path) -> None:
    claims, evidence = joined_tables()
    rows = [*evidence[:4], {"evidence_set": "s1", "reference": "w", "text": " "}, b"{", {"reference": "q", "text": "t"}]
    spec = InputSpec("joined", str(write(tmp_path / "c.jsonl", claims[:3])), str(write(tmp_path / "e.jsonl", rows)))
    summary = prepare(spec, str(tmp_path / "out"))
    assert [row["claim_id"] for row in work(tmp_path / "out")] == ["c1"]
    bad = rejects(tmp_path / "out")
    codes = ["empty_passage", "unparseable_json", "missing_evidence_field", *["evidence_set_damaged"] * 2]
    assert [row["code"] for row in bad] == codes
    assert [row["row_id"] for row in bad] == [None, None, None, 0, 2]
    assert f"{tmp_path / 'e.jsonl'}:5" in bad[3]["message"]
    assert (summary.rows_read, summary.rejects) == (3, 5)


def test_bundles(tmp_path: Path) -> None:
    items = [{"reference": f"m{n}", "text": "hidden", "rendered_text": f"shown {n}"} for n in range(70)]
    rows = [claim(0, context="[m3] x [m1]", evidence=items, evidence_refs=["m3", "m1"]), claim(1, context="none")]
    prepare(InputSpec("bundle", str(write(tmp_path / "in.jsonl", rows))), str(tmp_path / "out"))
    assert [e["text"] for e in work(tmp_path / "out")[0]["evidence"]] == ["shown 3", "shown 1"]
    assert [row["code"] for row in rejects(tmp_path / "out")] == ["no_cited_evidence"]


def test_wice_lines_need_not_stand_together(tmp_path: Path) -> None:
    def line(name: str, text: Any, **changes: Any) -> dict[str, Any]:
        return {"label": "supported", "claim": name, "evidence": text, "meta": {"id": name, "chunk_idx": 0}} | changes

    rows = [line("a", ["1"]), line("b", ["1"]), line("a", ["2"]), b"{", line("x", ["1"], meta={}), line("c", [""])]
    summary = prepare(InputSpec("wice", str(write(tmp_path / "in.jsonl", rows))), str(tmp_path / "out"))
    assert [(row["row_id"], len(row["evidence"])) for row in work(tmp_path / "out")] == [(0, 2), (1, 1)]
    found = [(row["row_id"], row["claim_id"], row["code"]) for row in rejects(tmp_path / "out")]
    orphans = [(None, None, "unparseable_json"), (None, None, "missing_claim_id")]
    assert found == [*orphans, (2, "c", "empty_passage")]
    assert summary.rows_read == 3


@needs_shared
def test_published_wice(tmp_path: Path) -> None:
    summary = prepare(InputSpec("wice", str(SHARED / "data/wice/test.jsonl")), str(tmp_path / "out"))
    assert (summary.rows_read, summary.rows, summary.evidence_items, summary.rejects) == (358, 358, 1070, 0)
    assert summary.labels == {"insufficient": 248, "supported": 110}
    assert summary.categories == {"not_supported": 32, "partially_supported": 216, "supported": 110}
    assert summary.inputs[0].sha256.startswith("234bb8c2")


@needs_shared
def test_published_registration(tmp_path: Path) -> None:
    path = SHARED / "data/claim-verifier/guards44/registration.json"
    summary = prepare(InputSpec("registration", str(path)), str(tmp_path / "out"))
    assert (summary.rows, summary.rejects) == (44, 0)
    assert summary.labels["incomplete"] == 4


def test_registration_with_a_bad_case(tmp_path: Path) -> None:
    case = {"id": "a", "claim": "x", "evidence": [], "expected_status": "supported"}
    (tmp_path / "r.json").write_text(json.dumps({"protocol": {"cases": [case, 3, case, case | {"id": 1}]}}))
    prepare(InputSpec("registration", str(tmp_path / "r.json")), str(tmp_path / "out"))
    codes = [(row["row_id"], row["code"]) for row in rejects(tmp_path / "out")]
    assert codes == [(1, "not_an_object"), (2, "repeated_claim_id"), (3, "not_a_string")]


def test_own_columns_can_be_ignored_by_name(tmp_path: Path) -> None:
    evidence = [{"reference": "m", "text": "t", "score": 1}]
    path = write(tmp_path / "in.jsonl", [claim(0, url="x", score=2, evidence=evidence)])
    assert prepare(InputSpec("claims", str(path)), str(tmp_path / "a")).rejects == 1
    assert prepare(InputSpec("claims", str(path), ignore=("url", "score")), str(tmp_path / "b")).rows == 1


def test_an_answer_with_one_bad_sentence_is_rejected_whole(tmp_path: Path) -> None:
    sentences = [{"id": f"d:{n}", "text": f"Sentence {n}."} for n in range(3)]
    documents = [{"doc_id": "d", "sentences": sentences}]
    cited = [{"text": "Good.", "supporting_sentence_ids": ["d:0"]}]
    many = [*cited, {"text": "A lie.", "supporting_sentence_ids": ["d:0", "d:1", "d:2"]}]
    rows = [{"answer_id": name, "sentences": of, "documents": documents} for name, of in (("a", many), ("b", cited))]
    path = write(tmp_path / "in.jsonl", rows)
    summary = prepare(InputSpec("cited", str(path)), str(tmp_path / "out"), max_evidence=2)
    assert [row["claim_id"] for row in work(tmp_path / "out")] == ["b#0"]
    assert [(row["claim_id"], row["code"]) for row in rejects(tmp_path / "out")] == [("a", "too_much_evidence")]
    assert summary.rows == 1
