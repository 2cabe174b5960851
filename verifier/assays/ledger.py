"""The ledger: one line of JSON an event, append-only, each with the sha256 of the one before.

It says what was registered, observed, calibrated and unlocked. A line that is changed or taken out breaks the chain
and is told; a whole ledger that is deleted, or cut off at its end, can be seen only by what refers to it: a
registration names the last entry before it, and nothing runs that the ledger has not registered.
"""

import fcntl
import json
import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

from verifier.assays.events import Kind, lacking
from verifier.digests import canonical_json, sha256_text
from verifier.errors import ConfigurationError
from verifier.pipeline.storage import is_in_ray_copy

log = logging.getLogger(__name__)
_FIELDS = ("number", "at", "kind", "previous", "body")


@dataclass(frozen=True)
class Entry:
    """One event: ``number`` counts from 0, ``at`` is UTC in ISO 8601, ``previous`` the digest of the entry before."""

    number: int
    at: str
    kind: Kind
    previous: str | None
    body: Mapping[str, Any]

    @property
    def sha256(self) -> str:
        """The digest that its line ends with, and that the next one names."""
        return sha256_text(canonical_json({name: getattr(self, name) for name in _FIELDS}))

    def line(self) -> str:
        """Its line in the file."""
        return canonical_json({name: getattr(self, name) for name in _FIELDS} | {"sha256": self.sha256}) + "\n"


def now() -> str:
    """The time in UTC, ISO 8601, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def read_ledger(path: Path) -> list[Entry]:
    """The entries, none where there is no file; ConfigurationError where the chain is broken or a line is damaged."""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH)  # a writer at work is waited for: no line is seen half
            return _entries(file, path)
    except FileNotFoundError:
        if is_in_ray_copy(path.absolute().as_posix()):
            _tell_of_no_seals(path)
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"the ledger {path} cannot be read: {error}") from error


@cache
def _tell_of_no_seals(path: Path) -> None:
    log.warning(
        "%s is not in the copy of your folder that this job works in, so no sealed cohort is known: give ledger= an"
        " absolute path",
        path,
    )


def append(path: Path, kind: Kind, body: Mapping[str, Any]) -> Entry:
    """Write one event at the end, on disk when this returns; two writers wait for each other."""
    return append_after(path, None, [(kind, body)])[-1]


def append_after(
    path: Path, seen: Sequence[Entry] | None, events: Iterable[tuple[Kind, Mapping[str, Any]]]
) -> list[Entry]:
    """Write several events together, all or none.

    ``seen`` are the entries that the writer has decided by: ConfigurationError where there are others by now (None:
    it does not matter), and where the file cannot be written to, or lies where Ray would delete it.
    """
    if is_in_ray_copy(path.absolute().as_posix()):
        raise ConfigurationError(
            f"ledger is {path}, in the copy of your folder that Ray deletes after the job: give an absolute path"
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            entries = _entries(file, path)
            if seen is not None and len(entries) != len(seen):
                raise ConfigurationError(f"the ledger {path} was written to meanwhile: run the same command again")
            written: list[Entry] = []
            for kind, body in events:
                previous = [*entries, *written][-1:]
                head = previous[0].sha256 if previous else None
                written.append(Entry(len(entries) + len(written), now(), kind, head, json.loads(canonical_json(body))))
            file.write("".join(entry.line() for entry in written).encode())
            file.flush()
            os.fsync(file.fileno())
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"the ledger {path} cannot be written to: {error}") from error
    return written


def head_of(entries: Sequence[Entry]) -> str | None:
    """The digest of the last entry, None of an empty ledger."""
    return entries[-1].sha256 if entries else None


def of_kind(entries: Iterable[Entry], kind: Kind, registration: str | None = None) -> list[Entry]:
    """The entries of a kind, of one registration where its sha256 is given."""
    return [entry for entry in entries if entry.kind == kind and registration in (None, entry.body["registration"])]


def _entries(file: BinaryIO, path: Path) -> list[Entry]:
    entries: list[Entry] = []
    for number, line in enumerate(file):  # only a line feed parts entries
        damaged = f"the ledger {path} is damaged or was edited at line {number + 1}"
        if not line.endswith(b"\n"):
            raise ConfigurationError(f"{damaged}: the last line was cut off, and deleting it repairs the file")
        entry = _entry(line.decode())
        if entry is None or (entry.number, entry.previous) != (number, head_of(entries)):
            raise ConfigurationError(f"{damaged}: restore it")
        if problem := lacking(entry.kind, entry.body):
            raise ConfigurationError(f"{damaged}: {problem}; restore it")
        entries.append(entry)
    return entries


def _entry(line: str) -> Entry | None:
    """The entry that a line is the text of, None where it is none."""
    try:
        fields = json.loads(line)
        entry = Entry(*(fields[name] for name in _FIELDS))
        return entry if entry.line() == line else None
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
