"""The sweep part of the benchmark on few claims: that both sides agree and a wrong one shows, never how fast."""

import numpy as np
import pytest

from verifier.bench.sweep import measure_sweep
from verifier.sweep.groups import GroupTable


def test_both_sides_agree_on_every_claim() -> None:
    part = measure_sweep({}, claims=120, thresholds="0.5:1.0:0.25", compared=3, target=1e9)
    assert part.details["decisions_compared"] == 360 and part.details["different"] == 0
    assert [figure.met for figure in part.figures[:2]] == [True, True]
    assert part.notes[0].startswith("360 of 360")


def test_a_wrong_sweep_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    support = GroupTable._support_of
    monkeypatch.setattr(
        GroupTable,
        "_support_of",
        lambda self, size, limit, guarded, threshold: support(
            self, size, limit, guarded, np.nextafter(threshold, 2) + 0.1
        ),
    )
    part = measure_sweep({}, claims=60, thresholds="0.5:1.0:0.5", compared=1)
    assert part.details["different"] > 0
    assert part.notes[0].startswith("DECISIONS DIFFER")
