"""What a job whose output is no terminal says while it works."""

import pytest

from verifier import terminal
from verifier.pipeline.execution import LOADING


def test_the_lines_of_a_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "LOG_SECONDS", 0.0)
    with terminal.console.capture() as said, terminal.shown_progress() as progress:
        progress(LOADING, 0, None, {"CPU": 8.0, "GPU": 0.0})
        progress("verify", 40, 100, {"pairs": 0.0})
        progress("verify", 70, 100, {"pairs": 1234.0, "unscored": 2.0})
    loading, first, later = said.get().splitlines()
    assert loading == "load: no actor is ready yet, the cluster has 8 CPUs and 0 GPUs"
    assert first == "verify: 40 of 100 rows, 0/s"
    assert later.startswith("verify: 70 of 100 rows, ") and "1,234 pairs, 2 unscored, about 0:00 left" in later
