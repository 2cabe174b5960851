"""Where the shared data lie: beside the repository on the machines that have them."""

import json
from pathlib import Path
from typing import Any

import pytest

SHARED = Path(__file__).parents[2] / "shared" / "data"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="../shared/data is not beside this clone")


def read_lines(name: str) -> list[dict[str, Any]]:
    """The objects of a JSON-lines file of the shared data; none where there are no shared data."""
    path = SHARED / name
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.is_file() else []
