"""The evidence table of the joined form, staged on disk so that claims can stream past a table of any size."""

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import TypeAdapter

from verifier.errors import InputError
from verifier.pipeline.forms import evidence_from_table, evidence_set_of
from verifier.pipeline.sources import InputFile, Row, source
from verifier.pipeline.validation import shown
from verifier.records import Evidence

_EVIDENCE = TypeAdapter(Evidence)
_KEYS_A_QUERY = 500


class EvidenceSets:
    """Validated evidence by set, in the order of the table; a set that lost a line is known as damaged."""

    def __init__(self, path: str) -> None:
        self._database = sqlite3.connect(path, isolation_level=None)
        # scratch data that a kill throws away: no journal, no waiting for the disk
        self._database.execute("PRAGMA journal_mode=OFF")
        self._database.execute("PRAGMA synchronous=OFF")
        self._database.execute("CREATE TABLE evidence (position INTEGER PRIMARY KEY, set_key BLOB, item BLOB)")
        self._database.execute("CREATE TABLE damaged (set_key BLOB PRIMARY KEY, place INTEGER) WITHOUT ROWID")

    def close(self) -> None:
        """Close the database; its file is the caller's to delete."""
        self._database.close()

    def stage(self, rows: Sequence[Row]) -> Iterator[Row]:
        """Store parsed rows of the evidence table; yields those that cannot be used, their error filled in."""
        items, damaged = [], []
        for row in rows:
            if row.error is None:
                try:
                    name, evidence = evidence_from_table(row.value)
                    items.append((_key(name), _EVIDENCE.dump_json(evidence)))
                    continue
                except InputError as error:
                    row.error = error
            if (key := _set_of(row)) is not None:
                damaged.append((key, row.place))
            row.orphan = True
            yield row
        self._database.execute("BEGIN")
        self._database.executemany("INSERT INTO evidence (set_key, item) VALUES (?, ?)", items)
        self._database.executemany("INSERT OR IGNORE INTO damaged VALUES (?, ?)", damaged)
        self._database.execute("COMMIT")

    def finish(self) -> None:
        """Index what was staged."""
        self._database.execute("CREATE INDEX by_set ON evidence (set_key, position)")

    def attach(self, rows: Sequence[Row], limit: int, files: Sequence[InputFile]) -> list[list[dict[str, Any]] | None]:
        """The evidence of every row that names a usable set of at most ``limit`` items; else its error filled in."""
        keys: list[bytes | None] = []
        for row in rows:
            try:
                keys.append(None if row.error else _key(evidence_set_of(row.value)))
            except InputError as error:
                row.error = error
                keys.append(None)
        wanted = sorted({key for key in keys if key is not None})
        sets, counts, damaged = self._fetch(wanted, limit)
        attached: list[list[dict[str, Any]] | None] = []
        for row, key in zip(rows, keys, strict=True):
            attached.append(sets.get(key) if key is not None else None)
            if key in damaged:
                where = source(files, damaged[key])
                message = f"evidence_set {shown(row.value['evidence_set'])} lost a line of the evidence table, {where}"
                row.error = InputError("evidence_set_damaged", message)
            elif key is not None and key not in sets:
                message = f"evidence_set {shown(row.value['evidence_set'])} has no rows in the evidence table"
                row.error = InputError("evidence_set_without_rows", message)
            elif key is not None and counts[key] > limit:
                name = shown(row.value["evidence_set"])
                message = f"evidence_set {name} has {counts[key]} evidence items; policy.max_evidence is {limit}"
                row.error = InputError("too_much_evidence", message)
        return attached

    def _fetch(
        self, keys: list[bytes], limit: int
    ) -> tuple[dict[bytes, list[dict[str, Any]]], dict[bytes, int], dict[bytes, int]]:
        items: dict[bytes, list[bytes]] = {}
        counts: dict[bytes, int] = {}
        damaged: dict[bytes, int] = {}
        for start in range(0, len(keys), _KEYS_A_QUERY):
            some = keys[start : start + _KEYS_A_QUERY]
            among = f"WHERE set_key IN ({','.join('?' * len(some))})"
            damaged.update(self._database.execute(f"SELECT set_key, place FROM damaged {among}", some))
            query = f"SELECT set_key, item FROM evidence {among} ORDER BY set_key, position"
            for key, item in self._database.execute(query, some):
                counts[key] = counts.get(key, 0) + 1
                if counts[key] <= limit:  # a set that is too large is refused, not held in memory
                    items.setdefault(key, []).append(item)
        return {key: json.loads(b"[" + b",".join(found) + b"]") for key, found in items.items()}, counts, damaged


def _key(name: str) -> bytes:
    return hashlib.blake2b(name.encode(), digest_size=16).digest()


def _set_of(row: Row) -> bytes | None:
    if not isinstance(row.value, dict):
        return None
    try:
        return _key(evidence_set_of(row.value))
    except (InputError, UnicodeEncodeError):
        return None
