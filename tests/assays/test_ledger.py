"""The ledger: a chain that tells when it was touched."""

import fcntl
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Timer
from typing import Any

import pytest

from verifier.assays.ledger import append, append_after, of_kind, read_ledger
from verifier.errors import ConfigurationError


def ledger(tmp_path: Path, n: int = 3) -> Path:
    path = tmp_path / "deep" / "ledger.jsonl"
    for number in range(n):
        append(path, "unlock", {"registration": f"r{number}", "cohort": "Übung"})
    return path


def test_each_entry_names_the_one_before(tmp_path: Path) -> None:
    entries = read_ledger(ledger(tmp_path))
    assert [entry.number for entry in entries] == [0, 1, 2]
    assert [entry.previous for entry in entries] == [None, entries[0].sha256, entries[1].sha256]
    assert entries[1].body == {"registration": "r1", "cohort": "Übung"}
    assert of_kind(entries, "unlock", "r1") == [entries[1]] and of_kind(entries, "observation") == []


def test_none_yet(tmp_path: Path) -> None:
    assert read_ledger(tmp_path / "none.jsonl") == []


def test_every_edit_is_told(tmp_path: Path) -> None:
    path = ledger(tmp_path)
    text = path.read_text("utf-8")
    lines = text.splitlines(keepends=True)
    edits = [
        text.replace("r0", "r9"),
        text.replace("r2", "r9"),
        "".join(lines[1:]),
        lines[0] + lines[2],
        lines[1] + lines[0] + lines[2],
        text + lines[2],
        text[:-5],
        text + "{}\n",
        text.replace('"number":1', '"number": 1'),
        text.replace("unlock", "other"),
    ]
    for edited in edits:
        path.write_text(edited, "utf-8")
        with pytest.raises(ConfigurationError, match="damaged or was edited at line"):
            read_ledger(path)
        with pytest.raises(ConfigurationError, match="damaged or was edited at line"):
            append(path, "unlock", {"registration": "r", "cohort": "c"})
        assert path.read_text("utf-8") == edited
    path.write_text(text, "utf-8")
    assert len(read_ledger(path)) == 3


def test_what_was_there_is_never_touched(tmp_path: Path) -> None:
    path = ledger(tmp_path)
    before = path.read_bytes()
    append(path, "observation", {"registration": "r", "cohort": "c", "identities": []})
    assert path.read_bytes().startswith(before)
    assert json.loads(path.read_text("utf-8").splitlines()[3])["kind"] == "observation"


def test_a_decision_by_an_older_state_is_refused(tmp_path: Path) -> None:
    path = ledger(tmp_path)
    seen = read_ledger(path)
    append(path, "unlock", {"registration": "x", "cohort": "c"})
    with pytest.raises(ConfigurationError, match="was written to meanwhile"):
        append_after(path, seen, [("unlock", {"registration": "y", "cohort": "c"})])
    assert len(read_ledger(path)) == 4


def test_two_writers_wait_for_each_other(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: append(path, "unlock", {"registration": f"r{n}", "cohort": "c"}), range(40)))
    assert len(read_ledger(path)) == 40


def test_only_a_line_feed_parts_entries(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    for name in ("a\u2028b", "c\u0085d", "e\rf"):
        append(path, "unlock", {"registration": name})
    assert [entry.body["registration"] for entry in read_ledger(path)] == ["a\u2028b", "c\u0085d", "e\rf"]
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"\n", b"\r\n"))
    for look in (read_ledger, lambda path: append(path, "unlock", {"registration": "g"})):
        with pytest.raises(ConfigurationError, match="at line 1: restore it"):
            look(path)
    path.write_bytes(whole)
    with path.open("a") as file:
        file.write("[" * 100_000 + "\n")
    with pytest.raises(ConfigurationError, match="at line 4"):
        read_ledger(path)


def test_a_line_that_was_cut_off_is_told_and_deleting_it_repairs_the_file(tmp_path: Path) -> None:
    path = ledger(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    for torn in (lines[2][:20], lines[2][:-1]):
        path.write_bytes(b"".join([*lines[:2], torn]))
        with pytest.raises(ConfigurationError, match="line 3: the last line was cut off, and deleting it repairs"):
            read_ledger(path)
    path.write_bytes(b"".join(lines[:2]))
    assert len(read_ledger(path)) == 2


def test_a_reader_waits_for_a_writer(tmp_path: Path) -> None:
    path = ledger(tmp_path, 1)
    line = path.read_bytes()
    with path.open("r+b") as writer:
        fcntl.flock(writer, fcntl.LOCK_EX)
        writer.truncate(20)

        def finish() -> None:
            writer.write(line)
            writer.flush()
            fcntl.flock(writer, fcntl.LOCK_UN)

        timer = Timer(0.2, finish)
        timer.start()
        assert len(read_ledger(path)) == 1
        timer.join()


@pytest.mark.parametrize(
    ("kind", "body", "words"),
    [
        ("registration", {}, "body.registration of the registration: field required"),
        ("observation", {"registration": "r"}, "body.identities of the observation"),
        ("calibration", {"registration": "r", "passed": "yes"}, "body.passed of the calibration"),
        ("unlock", {"registration": 1}, "body.registration of the unlock"),
        ("gift", {}, "'gift' is no kind of entry"),
    ],
)
def test_an_entry_that_lacks_what_is_read_of_it(tmp_path: Path, kind: Any, body: dict[str, Any], words: str) -> None:
    path = tmp_path / "ledger.jsonl"
    append(path, kind, body)
    with pytest.raises(ConfigurationError, match=words):
        read_ledger(path)


def test_a_ledger_that_cannot_be_written_to(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path, tmp_path / "file" / "ledger.jsonl"):
        with pytest.raises(ConfigurationError, match="cannot be written to"):
            append(path, "unlock", {"registration": "r"})
