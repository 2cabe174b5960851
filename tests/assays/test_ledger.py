"""The ledger: a chain that tells when it was touched."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

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
    with path.open("a") as file:
        file.write("[" * 100_000 + "\n")
    with pytest.raises(ConfigurationError, match="at line 4"):
        read_ledger(path)
