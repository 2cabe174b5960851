"""Runs a job once for every line of standard input, each in a fork of this process: imports are paid once.

A line is JSON: folder, overrides, settings (environment variables). Standard output and error go to files there.
"""

import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from verifier.exits import run_job

SECONDS = 150


def fork(main: Callable[[], object], folder: Path, overrides: list[str], settings: dict[str, str]) -> int:
    child = os.fork()
    if child:
        return child
    os.chdir(folder)
    os.environ.update(settings)
    for number, name in ((1, "stdout.txt"), (2, "stderr.txt")):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    sys.argv = ["job", *overrides]
    status = 99
    try:
        run_job(main)
    except SystemExit as end:
        status = int(end.code or 0)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def wait(child: int) -> int:
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return -9


if __name__ == "__main__":
    main = importlib.import_module(f"jobs.{sys.argv[1]}").main
    for line in sys.stdin:
        case = json.loads(line)
        folder = Path(case["folder"])
        status = wait(fork(main, folder, case["overrides"], case["settings"]))
        print(json.dumps([status, (folder / "stderr.txt").read_text()]), flush=True)
