"""Canonical JSON and its sha256: what every digest of a record is computed over."""

import hashlib
import json
from pathlib import Path
from typing import Any

_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def canonical_json(value: Any) -> str:
    """JSON with sorted keys, no spaces and characters kept as they are; NaN and infinity raise ValueError."""
    return _CANONICAL.encode(value)


def sha256_text(text: str) -> str:
    """Hexadecimal sha256 of the UTF-8 bytes of ``text``."""
    return hashlib.sha256(text.encode()).hexdigest()


def sha256_json(value: Any) -> str:
    """Hexadecimal sha256 of the canonical JSON of ``value``."""
    return sha256_text(canonical_json(value))


def sha256_file(path: Path) -> str:
    """Hexadecimal sha256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
