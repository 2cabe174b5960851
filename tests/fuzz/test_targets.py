"""Every fuzz target with a few examples, the same ones each time; more of them by ``python -m tests.fuzz``."""

import pytest

from tests.fuzz.all import TARGETS
from tests.fuzz.registry import Target, run

_LIMIT = 60.0  # seconds: an example that takes longer hangs


@pytest.mark.parametrize("one", TARGETS.values(), ids=list(TARGETS))
def test_a_target(one: Target) -> None:
    report = run(one, max(2, round(50 * min(one.share, 1))), _LIMIT, None)
    assert not report.crashes, report.crashes[0]
    assert report.examples > 1
