"""Moves the clock of every Python process back by a day, ``CLOCK_MOVES_AT`` (seconds of the monotonic clock)."""

import os
import time

if moves_at := os.environ.get("CLOCK_MOVES_AT"):
    true_time = time.time

    def moved() -> float:
        return true_time() - (86_400 if time.monotonic() > float(moves_at) else 0)

    time.time = moved
