"""How time grows with size: ``python -m tests.fuzz.growth`` doubles sizes and prints seconds and the fitted exponent.

The exponent is the slope of log seconds over log size; 1 is linear. Best of three runs each.
"""

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator

import numpy as np

from tests.fuzz.sizes import ROWS, SCANNERS, TEXTS, prepared

_LEAST = 0.02  # seconds: faster runs are noise, and no part of a fit
_STEEP = 1.4  # an exponent beyond this is told


def main() -> int:
    """Measure every reader and every scanner with every text; exit status 1 where one is steep."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.growth", description=__doc__)
    parser.add_argument("--size", type=int, default=1 << 18, help="characters of the first text")
    parser.add_argument("--doublings", type=int, default=3)
    parser.add_argument("--only", default="", help="measurements whose name holds this text")
    options = parser.parse_args()
    steep = []
    for name, first, work in _measurements(options.size):
        if options.only not in name:
            continue
        sizes = [first << n for n in range(options.doublings + 1)]
        seconds = [_seconds(work(size)) for size in sizes]
        exponent = _exponent(sizes, seconds)
        shown = "  ".join(f"{size:>9,} {one:7.3f} s" for size, one in zip(sizes, seconds, strict=True))
        told = "   –" if exponent is None else f"{exponent:4.2f}"
        print(f"{name:<42}{shown}  exponent {told}", flush=True)
        if exponent is not None and exponent > _STEEP:
            steep.append(name)
    print(f"steep: {', '.join(steep) or 'none'}")
    return 1 if steep else 0


def _measurements(size: int) -> Iterator[tuple[str, int, Callable[[int], Callable[[], object]]]]:
    for name, (form, make, first) in ROWS.items():

        def row(size: int, form: str = form, make: Callable[[int], bytes] = make) -> Callable[[], object]:
            content = make(size) + b"\n"
            return lambda: prepared(form, content)

        yield f"row: {name}", first, row
    for scanner, scan in SCANNERS.items():
        for name, pattern in TEXTS.items():

            def text(size: int, scan: Callable[[str], object] = scan, pattern: str = pattern) -> Callable[[], object]:
                whole = (pattern * (size // len(pattern) + 1))[:size]
                return lambda: scan(whole)

            yield f"{scanner}: {name}", size, text


def _seconds(work: Callable[[], object]) -> float:
    best = math.inf
    for _ in range(3):
        started = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - started)
        if best > 2:
            break
    return best


def _exponent(sizes: list[int], seconds: list[float]) -> float | None:
    points = [(math.log(size), math.log(one)) for size, one in zip(sizes, seconds, strict=True) if one >= _LEAST]
    return None if len(points) < 2 else float(np.polyfit(*zip(*points, strict=True), 1)[0])


if __name__ == "__main__":
    sys.exit(main())
