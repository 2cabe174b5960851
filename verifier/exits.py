"""Exit statuses of the jobs, and the one sentence that goes with each failure."""

import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Any

from rich.console import Console

from verifier.errors import ConfigurationError, LimitError, VerificationError
from verifier.redaction import without_secrets_in


class Exit(IntEnum):
    """What a job's exit status says."""

    DONE = 0
    LIMIT_FAILED = 1
    BAD_CONFIGURATION = 2
    FAILED_MIDWAY = 3


_CONFIGURATION_LIBRARIES = ("hydra.", "omegaconf.")
_CONFIGURATION_ERROR = f"{ConfigurationError.__module__}.{ConfigurationError.__name__}"
_OURS = (ConfigurationError, VerificationError)
_GROUP_WITHOUT_NAME = "Config group override must be a string"
_RESUMES = "what is finished is kept, the same command resumes"


def interrupt_on_sigterm() -> None:
    """Let SIGTERM end a job as an interrupt does; to be called again after Ray has set a handler of its own."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)


@contextmanager
def interrupted_after(seconds: float, error: BaseException) -> Iterator[None]:
    """Raise ``error`` in the block after so many seconds; no limit outside of the main thread."""

    def ring(*_: object) -> None:
        raise error

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def exit_status(job: Callable[[], object]) -> int:
    """Run a job and turn what it raises into an exit status, with one sentence on standard error."""
    stderr = Console(stderr=True, soft_wrap=True, highlight=False)
    try:
        job()
        return int(Exit.DONE)
    except KeyboardInterrupt:
        status, message = Exit.FAILED_MIDWAY, f"interrupted: {_RESUMES}"
    except Exception as error:
        status, message = _told(error)
    stderr.print(without_secrets_in(message), style="bold red", markup=False)
    return int(status)


def _told(error: Exception) -> tuple[Exit, str]:
    root = _root(error)
    if isinstance(root, LimitError):
        return Exit.LIMIT_FAILED, _one_line(root)
    if isinstance(root, ConfigurationError):
        return Exit.BAD_CONFIGURATION, _one_line(root)
    if type(error).__module__.startswith(_CONFIGURATION_LIBRARIES) or _GROUP_WITHOUT_NAME in str(error):
        return Exit.BAD_CONFIGURATION, _hydra_sentence(str(error))
    if type(root).__name__ == "OutOfMemoryError":  # Ray's, which says it in a page
        return Exit.FAILED_MIDWAY, (
            "failed midway: a node ran out of memory and Ray ended a worker: lower actors.max_size or"
            f" checkpoint.max_rows_lost, or use larger nodes: {_RESUMES}"
        )
    if type(root).__module__.startswith("ray.") and (raised := _last_line(root)):
        # an actor that could not be built: Ray gives the text of what was raised there, not the exception
        name, _, sentence = raised.partition(": ")
        if name == _CONFIGURATION_ERROR:
            return Exit.BAD_CONFIGURATION, sentence
        return Exit.FAILED_MIDWAY, f"failed midway: {raised}: {_RESUMES}"
    return Exit.FAILED_MIDWAY, f"failed midway: {_one_line(root)}: {_RESUMES}"


def _root(error: BaseException) -> BaseException:
    """The error that a worker raised, inside what Ray wraps around it."""
    wrapped = getattr(error, "cause", None)
    if isinstance(wrapped, BaseException) and wrapped is not error:
        return _root(wrapped)
    if isinstance(error, _OURS):
        return error
    # Ray Data marks errors of its own with an empty exception as their cause
    return _root(error.__cause__) if error.__cause__ is not None and str(error.__cause__) else error


def _last_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _one_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    # our own errors are one sentence, and what follows it was added by Ray
    return " ".join(lines[: 1 if isinstance(error, _OURS) else 2]) if lines else type(error).__name__


def _hydra_sentence(message: str) -> str:
    """What Hydra says in several lines, in one."""
    if field := re.match(r"Could not override '([^']*)'", message):
        return (
            f"{field[1]} is no field of the configuration: --cfg job shows those that there are;"
            " one that is added to an empty group has a + in front"
        )
    if choice := re.search(
        r"Could not find '(\S+)/(\S+)'\s+Available options in '\S+':\s+(.*?)\n\s*\n?Config", message, re.S
    ):
        group, name, options = choice.groups()
        return f"{group}={name} is no choice of {group}: choose one of {', '.join(options.split())}"
    if missing := re.search(r"Missing mandatory value: \S+\s+full_key: (\S+)", message):
        return f"{missing[1]} is not set: give {missing[1]}=…"
    if override := re.match(r"LexerNoViableAltException: (.*)", message):
        return (
            f"the override {override[1]} cannot be read: write group=option or group.field=value, and a value with"
            " = < > or a comma in two quotes, as in '+sweep.constraints.precision=\">=0.9\"'"
        )
    if _GROUP_WITHOUT_NAME in message:
        return "a group such as scorer= takes the name of one of its options: --help lists them"
    if key := re.match(r"Key '([^']*)' is not in struct", message):
        return f"{key[1]} is missing in the configuration: leave ~{key[1]} out"
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    return " ".join(lines[:2]) or "the configuration cannot be read"


class _WithoutNotice:
    """Standard error without the line that Hydra writes before it lets an exception through."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return len(text) if text.startswith("Error executing job with overrides") else int(self._stream.write(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def _quiet_hydra() -> Iterator[None]:
    stream = sys.stderr
    sys.stderr = _WithoutNotice(stream)
    try:
        yield
    finally:
        sys.stderr = stream


def run_job(main: Callable[[], object]) -> None:
    """Run a Hydra entry point and ``sys.exit`` with its status; Hydra's own errors become sentences too."""
    os.environ.setdefault("HYDRA_FULL_ERROR", "1")  # else Hydra prints a traceback and exits by itself
    interrupt_on_sigterm()
    with _quiet_hydra():
        status = exit_status(main)
    sys.exit(status)
