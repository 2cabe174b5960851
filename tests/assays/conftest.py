"""What the tests of seals share."""

from pathlib import Path

import pytest

from tests.assays.assay_files import fever_rows, write_rows
from tests.assays.sealed_place import Place, sealing


@pytest.fixture
def place(tmp_path: Path) -> Place:
    write_rows(tmp_path / "sealed.jsonl", fever_rows("red"))
    write_rows(tmp_path / "calibration.jsonl", fever_rows("blue"))
    return Place(tmp_path, sealing(tmp_path, "sealed"))
