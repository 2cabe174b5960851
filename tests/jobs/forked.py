"""Runs a job once for every line of standard input, each in a fork of this process: imports are paid once.

A line is JSON: name, folder, overrides, settings (environment variables), seconds. Standard output and error go to
files there; the answer is the exit status, null where the run was not done in that time and was killed.
"""

import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from tests.jobs.driver import ERRORS, OUTPUT, die_with_parent
from verifier.exits import run_job


def fork(main: Callable[[], object], folder: Path, overrides: list[str], settings: dict[str, str]) -> int:
    child = os.fork()
    if child:
        return child
    die_with_parent()
    os.setsid()
    os.chdir(folder)
    os.environ.update(settings)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, name in ((1, OUTPUT), (2, ERRORS)):
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


def wait(child: int, seconds: float) -> int | None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    for process in [*psutil.Process(child).children(recursive=True), psutil.Process(child)]:
        process.kill()
    os.waitpid(child, 0)
    return None


if __name__ == "__main__":
    for line in sys.stdin:
        case = json.loads(line)
        main = importlib.import_module(f"jobs.{case['name']}").main
        status = wait(fork(main, Path(case["folder"]), case["overrides"], case["settings"]), case["seconds"])
        print(json.dumps(status), flush=True)
