"""Fuzzing by hand: ``python -m tests.fuzz --examples 200000``; exit status 1 on a crash or an example that hangs."""

import argparse
import faulthandler
import random
import sys

from tests.fuzz.all import TARGETS
from tests.fuzz.registry import Report, run


def main() -> int:
    """Spread the examples over all targets by their shares and print a table."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--examples", type=int, default=2000, help="of all targets together")
    parser.add_argument("--limit", type=float, default=10.0, help="seconds that one example may take")
    parser.add_argument("--seed", type=int, default=None, help="default: another one each time")
    parser.add_argument("--only", default="", help="targets whose name holds this text")
    options = parser.parse_args()
    number = random.SystemRandom().getrandbits(32) if options.seed is None else options.seed
    chosen = [one for name, one in TARGETS.items() if options.only in name]
    shares = sum(one.share for one in chosen)
    print(f"seed {number}\n{'target':<26}{'examples':>9}{'seconds':>9}{'crashes':>9}{'slowest':>10}", flush=True)
    reports = []
    for one in chosen:
        faulthandler.dump_traceback_later(3600, exit=True)  # a hang inside of C, which no alarm interrupts
        reports.append(run(one, -int(-options.examples * one.share // shares), options.limit, number))
        _show(reports[-1])
    total = sum(report.examples for report in reports)
    crashes = [f"{report.name}: {crash}" for report in reports for crash in report.crashes]
    seconds = sum(report.seconds for report in reports)
    print(f"{'all':<26}{total:>9}{seconds:>9.1f}{len(crashes):>9}")
    print("\n".join(crashes))
    return 1 if crashes else 0


def _show(report: Report) -> None:
    line = f"{report.name:<26}{report.examples:>9}{report.seconds:>9.1f}{len(report.crashes):>9}"
    print(f"{line}{report.slowest * 1000:>7.0f} ms", flush=True)


if __name__ == "__main__":
    sys.exit(main())
