"""The prepare phase: every bad line, limits, a rerun, a kill."""

import gzip
import json
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.runs import claim, digests, rejects, work, write
from verifier.errors import ConfigurationError
from verifier.pipeline.prepare import InputSpec, TooManyRejects, prepare
from verifier.pipeline.seen import SeenIds

ROOT = Path(__file__).resolve().parents[2]


BAD_LINES: list[tuple[Any, str]] = [
    (b'{"claim_id": "x"', "unparseable_json"),
    (b"[" * 100_000, "unparseable_json"),
    (b'{"claim_id": "x\x00"}', "unparseable_json"),
    (b"\x00\x00\x00", "unparseable_json"),
    (b"[]", "not_an_object"),
    (claim(1, claim=...), "missing_claim"),
    (claim(2, claim=" "), "empty_claim"),
    (claim(3, evidence=...), "missing_evidence_field"),
    (claim(4, evidence=[{"reference": "a"}]), "missing_evidence_field"),
    (claim(5, evidence=[{"reference": "a", "text": ""}]), "empty_passage"),
    (claim(6, evidence=[{"reference": "a", "text": 1}]), "not_a_string"),
    (claim(7, evidence=[{"reference": "a", "text": "x"}, {"reference": " a", "text": "y"}]), "repeated_reference"),
    (
        claim(8, evidence=[{"reference": r, "text": "x", "memory_id": "0" * 32} for r in "ab"]),
        "repeated_memory_id",
    ),
    (claim(9, evidence=[{"reference": "a", "text": "x", "source_type": "?"}]), "unknown_enum_value"),
    (claim(10, evidence=[{"reference": f"r{n}", "text": "x"} for n in range(65)]), "too_much_evidence"),
    (claim(11, claim_id=...), "missing_claim_id"),
    (claim(100), "repeated_claim_id"),
    (b'{"claim_id": "n", "claim": "x", "evidence": [], "label": NaN}', "not_finite_number"),
    (b'{"claim_id": "n", "claim": "x", "evidence": [], "label": 1e999}', "not_finite_number"),
    (b'{"claim_id": "n", "claim": "\xff", "evidence": []}', "invalid_utf8"),
    (b'{"claim_id": "\\ud800", "claim": "x", "evidence": []}', "invalid_utf8"),
    (b'{"claim_id": "n", "claim": "x", "evidence": [], "\\ud800": 1}', "invalid_utf8"),
    (b'{"claim_id": "n", "claim_id": "m", "claim": "x", "evidence": []}', "repeated_field"),
    (claim(12, source="web"), "unknown_field"),
    (claim(13, evidence=[{"reference": "a", "text": "x", "event_time": "?"}]), "bad_time"),
    (claim(14, evidence=[{"reference": "a", "text": "x", "memory_id": "?"}]), "bad_memory_id"),
]


@pytest.mark.parametrize("chunk_rows", [1, 3, 2000])
def test_every_bad_line_is_a_reject_and_the_others_survive(tmp_path: Path, chunk_rows: int) -> None:
    lines: list[Any] = [claim(100)]
    for n, (bad, _) in enumerate(BAD_LINES):
        lines += [bad, claim(101 + n)]
    path = write(tmp_path / "in.jsonl", lines)
    summary = prepare(InputSpec("claims", str(path)), str(tmp_path / "out"), chunk_rows=chunk_rows)
    good, bad = work(tmp_path / "out"), rejects(tmp_path / "out")
    assert [row["claim_id"] for row in good] == [f"c{100 + n}" for n in range(len(BAD_LINES) + 1)]
    assert [row["row_id"] for row in good] == list(range(0, len(lines), 2))
    assert [row["code"] for row in bad] == [code for _, code in BAD_LINES]
    assert [row["row_id"] for row in bad] == list(range(1, len(lines), 2))
    assert [row["source"] for row in bad] == [f"{path}:{n}" for n in range(2, len(lines) + 1, 2)]
    assert f"{path}:1" in next(row["message"] for row in bad if row["code"] == "repeated_claim_id")
    assert next(row["raw"] for row in bad if row["message"].endswith("byte 28")).count("\\xff") == 1
    assert next(row["claim_id"] for row in bad if row["code"] == "empty_claim") == "c2"
    assert (summary.rows_read, summary.rows, summary.rejects) == (len(lines), len(good), len(bad))
    assert summary.rejects_by_code == Counter(code for _, code in BAD_LINES)


def test_empty_input_has_readable_tables(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").touch()
    summary = prepare(InputSpec("claims", str(tmp_path / "in.jsonl")), str(tmp_path / "out"))
    assert (summary.rows_read, summary.rows, summary.rejects) == (0, 0, 0)
    assert work(tmp_path / "out") == rejects(tmp_path / "out") == []


def test_first_bad_row_fails_where_asked(tmp_path: Path) -> None:
    path = write(tmp_path / "in.jsonl", [claim(0), claim(0), claim(1, claim="")])
    spec, output = InputSpec("claims", str(path)), str(tmp_path / "out")
    for _ in range(2):  # in the pass itself, and from the record of a finished one
        with pytest.raises(ConfigurationError, match=r"in\.jsonl:2: .*'c0' stands first at .*:1 \(repeated_claim_id\)"):
            prepare(spec, output, on_error="fail")
        prepare(spec, output)


def test_too_many_rejects_keep_the_work(tmp_path: Path) -> None:
    path = write(tmp_path / "in.jsonl", [claim(0), b"{", b"{", claim(1)])
    spec, output = InputSpec("claims", str(path)), tmp_path / "out"
    for _ in range(2):
        with pytest.raises(TooManyRejects, match=r"2 rows were rejected \(unparseable_json 2\)") as caught:
            prepare(spec, str(output), max_rejects=1)
        assert caught.value.summary.rows == 2
    assert len(work(output)) == len(rejects(output)) == 2
    assert prepare(spec, str(output), max_rejects=2).rejects == 2


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (InputSpec("claims", "none.jsonl"), "none.jsonl does not exist"),
        (InputSpec("claims", "none-*.jsonl"), "names no file"),
        (InputSpec("claims", "empty"), "names no file"),
        (InputSpec("claims", "a.txt"), "data.format"),
        (InputSpec("claims", "bad.parquet"), "cannot be read as parquet"),
        (InputSpec("claims", "bad.jsonl.gz"), "cannot be read as jsonl"),
        (InputSpec("claims", "cut.jsonl.gz"), "cannot be read as jsonl"),
        (InputSpec("claims", "bad.json"), "item 2 cannot be parsed"),
        (InputSpec("registration", "a.txt"), "not a registered assay"),
        (InputSpec("joined", "a.txt", format="jsonl"), "evidence_path"),
        (InputSpec("claims", "a.txt", "a.txt"), "no evidence table"),
        (InputSpec("other", "a.txt"), "no input form"),
        (InputSpec("claims", "a.txt", format="csv"), "no input format"),
        (InputSpec("claims", []), "no path"),
        (InputSpec("claims", "nowhere://x"), "cannot be opened"),
    ],
)
def test_unusable_input_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spec: InputSpec, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("{}\n")
    Path("empty").mkdir()
    for name in ("bad.parquet", "bad.jsonl.gz"):
        Path(name).write_text("not this")
    Path("cut.jsonl.gz").write_bytes(gzip.compress(json.dumps(claim(0)).encode() * 50)[:-12])
    Path("bad.json").write_text("[{}, {]")
    with pytest.raises(ConfigurationError, match=words) as caught:
        prepare(spec, "out")
    assert "\n" not in str(caught.value)
    assert not Path("out/prepare.json").exists()


def test_a_rerun_does_nothing_and_another_input_is_refused(tmp_path: Path) -> None:
    path, output = write(tmp_path / "in.jsonl", [claim(0), b"{"]), tmp_path / "out"
    spec = InputSpec("claims", str(path))
    first = prepare(spec, str(output))
    part = output / "work" / "part-00000.parquet"
    before = (digests(output), part.stat().st_mtime_ns)
    assert prepare(spec, str(output)) == first
    assert (digests(output), part.stat().st_mtime_ns) == before
    with pytest.raises(ConfigurationError, match="max_evidence was 64, now it is 3"):
        prepare(spec, str(output), max_evidence=3)
    part.unlink()
    prepare(spec, str(output))
    assert digests(output) == before[0]
    write(path, [claim(1)])
    with pytest.raises(ConfigurationError, match=r"another input: .*in\.jsonl differs"):
        prepare(spec, str(output))
    assert digests(output) == before[0]


def test_parts_and_progress(tmp_path: Path) -> None:
    path = write(tmp_path / "in.jsonl", [claim(n) for n in range(25)] + [b"{"])
    seen: list[tuple[int, int]] = []
    spec = InputSpec("claims", str(path))
    summary = prepare(
        spec, str(tmp_path / "out"), chunk_rows=4, part_rows=10, progress=lambda *counts: seen.append(counts)
    )
    assert summary.work_files == len(list((tmp_path / "out" / "work").iterdir())) == 3
    assert [row["row_id"] for row in work(tmp_path / "out")] == list(range(25))
    assert seen[0] == (4, 0)
    assert seen[-1] == (26, 1)


SLOW_PREPARE = """
import sys, time
from verifier.pipeline.prepare import InputSpec, prepare
form, output, *paths = sys.argv[1:]
def progress(rows, rejects):
    print(rows, flush=True)
    time.sleep(0.02)
prepare(InputSpec(form, *paths), output, chunk_rows=50, part_rows=200, progress=progress)
"""


@pytest.mark.parametrize("form", ["claims", "joined"])
def test_a_killed_run_leaves_no_trace_in_the_next(tmp_path: Path, form: str) -> None:
    rows = [b"{" if n % 97 == 0 else claim(n % 1900) for n in range(2000)]
    paths = [write(tmp_path / "in.jsonl", rows)]
    if form == "joined":
        plain = [{"claim_id": f"c{n}", "claim": "x", "evidence_set": f"s{n % 100}"} for n in range(2000)]
        evidence = [{"evidence_set": f"s{n % 100}", "reference": f"r{n}", "text": "x"} for n in range(300)]
        paths = [write(tmp_path / "c.jsonl", plain), write(tmp_path / "e.jsonl", evidence)]
    names = [str(path) for path in paths]
    output, still = tmp_path / "out", tmp_path / "still"
    command = [sys.executable, "-c", SLOW_PREPARE, form, str(output), *names]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as process:
        assert process.stdout is not None
        while int(process.stdout.readline()) < 700:
            pass
        process.send_signal(signal.SIGKILL)
    assert not (output / "prepare.json").exists()
    assert list((output / "work").iterdir())
    spec, sizes = InputSpec(form, *names), {"chunk_rows": 50, "part_rows": 200}
    assert prepare(spec, str(output), **sizes) == prepare(spec, str(still), **sizes)
    assert digests(output) == digests(still)


def test_seen_ids_across_merges() -> None:
    seen = SeenIds()
    assert seen.add([], []) == []
    for start in range(0, 1000, 10):
        ids = [f"id{n}" for n in range(start, start + 10)]
        assert seen.add([*ids, ids[0]], [*range(start, start + 10), 5000]) == [None] * 10 + [start]
    assert seen.add(["id7", "new", "id993"], [1, 2, 3]) == [7, None, 993]


def test_a_chunk_is_bounded_by_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("verifier.pipeline.rows._CHUNK_BYTES", 1000)
    path = write(tmp_path / "in.jsonl", [claim(n, claim="x" * 600) for n in range(8)])
    seen: list[int] = []
    prepare(InputSpec("claims", str(path)), str(tmp_path / "out"), progress=lambda rows, _: seen.append(rows))
    assert seen == [2, 4, 6, 8]


FIELDS = "claim_id claim evidence label evidence_set context evidence_refs meta id reference text memory_id event_time"
VALUES = ["a", "[m1]", "", "\ud800", "\0", "supported", None, True, 0, 10**300, float("nan"), 1e300, [], {}, [[]], "s1"]


def broken(rng: random.Random, value: Any) -> Any:
    """The value with something in it replaced, added or nested, at any depth."""
    if isinstance(value, dict) and value and rng.random() < 0.8:
        name = rng.choice([*value, *FIELDS.split()])
        return value | {name: broken(rng, value.get(name))}
    if isinstance(value, list) and value and rng.random() < 0.8:
        return [broken(rng, item) if rng.random() < 0.5 else item for item in value]
    return rng.choice([*VALUES, [value], {"text": value}])


@pytest.mark.parametrize("form", ["claims", "joined", "wice", "bundle"])
def test_broken_rows_never_crash_and_are_never_dropped(tmp_path: Path, form: str) -> None:
    rng = random.Random(form)
    changes: dict[str, Any] = {"bundle": {"context": "[m1]"}, "joined": {"evidence": ..., "evidence_set": "s1"}}

    def lines(row: Any, count: int) -> list[bytes]:
        found = []
        for n in range(count):
            value = row(n)
            for _ in range(rng.randrange(3)):
                value = broken(rng, value)
            text = bytearray(json.dumps(value, ensure_ascii=rng.random() < 0.5).encode(errors="surrogatepass"))
            if rng.random() < 0.1:
                text[rng.randrange(len(text))] = rng.choice(b'\xff\x00"}]1x')
            found.append(bytes(text))
        return found

    def row(n: int) -> Any:
        wice = {"label": "supported", "claim": "x", "evidence": ["a"], "meta": {"id": f"w{n}"}}
        return wice if form == "wice" else claim(n, **changes.get(form, {}))

    count = 1000
    paths = [str(write(tmp_path / "in.jsonl", lines(row, count)))]
    evidence = 0
    if form == "joined":
        table = lines(lambda n: {"evidence_set": f"s{n % 150}", "reference": f"m{n}", "text": "x"}, 300)
        evidence = len(table)
        paths.append(str(write(tmp_path / "e.jsonl", table)))
    output = tmp_path / "out"
    summary = prepare(InputSpec(form, *paths), str(output))
    good, bad = work(output), rejects(output)
    assert (len(good), len(bad)) == (summary.rows, summary.rejects)
    assert sorted(row["row_id"] for row in [*good, *bad] if row["row_id"] is not None) == list(range(summary.rows_read))
    orphans = [row for row in bad if row["row_id"] is None]
    assert len(orphans) <= count if form == "wice" else len(orphans) <= evidence
    assert summary.rows_read == count or form == "wice"
    assert summary.rows > 100 or form == "joined"
