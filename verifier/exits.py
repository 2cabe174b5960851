"""Exit statuses of the jobs, and the one sentence that goes with each failure."""

import os
import sys
from collections.abc import Callable
from enum import IntEnum

from rich.console import Console

from verifier.errors import ConfigurationError, LimitError


class Exit(IntEnum):
    """What a job's exit status says."""

    DONE = 0
    LIMIT_FAILED = 1
    BAD_CONFIGURATION = 2
    FAILED_MIDWAY = 3


_CONFIGURATION_LIBRARIES = ("hydra.", "omegaconf.")


def exit_status(job: Callable[[], object]) -> int:
    """Run a job and turn what it raises into an exit status, with one sentence on standard error."""
    stderr = Console(stderr=True, soft_wrap=True, highlight=False)
    try:
        job()
        return int(Exit.DONE)
    except LimitError as error:
        status, message = Exit.LIMIT_FAILED, str(error)
    except ConfigurationError as error:
        status, message = Exit.BAD_CONFIGURATION, str(error)
    except KeyboardInterrupt:
        status, message = Exit.FAILED_MIDWAY, "interrupted: what is finished is kept, the same command resumes"
    except Exception as error:
        if type(error).__module__.startswith(_CONFIGURATION_LIBRARIES):
            status, message = Exit.BAD_CONFIGURATION, _one_line(error)
        else:
            status = Exit.FAILED_MIDWAY
            message = f"failed midway: {_one_line(_root(error))}: what is finished is kept, the same command resumes"
    stderr.print(message, style="bold red", markup=False)
    return int(status)


def _root(error: BaseException) -> BaseException:
    """The error that a worker raised, inside what Ray wraps around it."""
    cause = getattr(error, "cause", None) or error.__cause__
    return _root(cause) if isinstance(cause, BaseException) and cause is not error else error


def _one_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(lines[:2]) if lines else type(error).__name__


def run_job(main: Callable[[], object]) -> None:
    """Run a Hydra entry point and ``sys.exit`` with its status; Hydra's own errors become sentences too."""
    os.environ.setdefault("HYDRA_FULL_ERROR", "1")  # else Hydra prints a traceback and exits by itself
    sys.exit(exit_status(main))
