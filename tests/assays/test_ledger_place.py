"""A ledger in the folder that Ray deletes after a submitted job."""

import logging
from pathlib import Path

import pytest

from verifier.assays.ledger import append, read_ledger
from verifier.errors import ConfigurationError


def test_nothing_is_registered_there_and_a_missing_one_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    copy = tmp_path / "runtime_resources/working_dir_files/_ray_pkg_1"
    copy.mkdir(parents=True)
    monkeypatch.chdir(copy)
    ledger = Path("runs/assays.jsonl")
    with pytest.raises(ConfigurationError, match="that Ray deletes after the job: give an absolute path"):
        append(ledger, "registration", {})
    assert not ledger.parent.exists()
    with caplog.at_level(logging.WARNING):
        assert read_ledger(ledger) == [] == read_ledger(ledger)
    [told] = caplog.messages
    assert "no sealed cohort is known: give ledger=" in told
    caplog.clear()
    assert read_ledger(tmp_path / "none.jsonl") == [] and caplog.messages == []
