"""What a failed call to a chat model means: ask again, leave this pair unscored, or stop. No message shows a key."""

import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx

from verifier.errors import VerificationError
from verifier.protocol import PairError

_SECRET_NAME = re.compile("KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
_SHORTEST_SECRET = 8  # shorter values of such variables are settings, and would blot out ordinary words
_EXCERPT = 160  # characters of a server's own words in a message
# Refused because of what was asked, which may be the settings or this pair alone.
_ABOUT_THE_REQUEST = (400, 413, 422)

REFUSED = "refused_request"


class CallFailed(Exception):
    """A call that gave no answer.

    Attributes:
        error: why the pair has no score.
        transient: whether asking again may help.
        retry_after: seconds that the endpoint asks to wait, 0 where it does not say.
    """

    def __init__(self, error: PairError, transient: bool = False, retry_after: float = 0.0) -> None:
        super().__init__(error.message)
        self.error = error
        self.transient = transient
        self.retry_after = retry_after


def failure(error: Exception, key_name: str | None, group: str = "scorer") -> CallFailed | VerificationError:
    """What an exception of LiteLLM means; a VerificationError is one that every later call would meet too.

    ``key_name`` is the environment variable that holds the key, None where LiteLLM looks for it by its own rule;
    ``group`` is the configuration group that messages name. The result keeps no reference to ``error``, whose text
    and traceback can hold the key.
    """
    status = getattr(error, "status_code", None)
    causes = [type(cause) for cause in _chain(error)]
    if status == 408 or any(issubclass(cause, httpx.TimeoutException) for cause in causes):
        return _transient("timeout", "the endpoint did not answer in time", error)
    if any(issubclass(cause, httpx.TransportError) for cause in causes):
        return _transient("connection_failed", "the endpoint cannot be reached or broke the connection", error)
    if status == 429:
        return _transient("rate_limited", "the endpoint's rate limit was met (status 429)", error)
    if type(error).__name__ == "ContextWindowExceededError":
        return CallFailed(PairError("rejected", "pair_too_long", "the text does not fit the model's context window"))
    if status in _ABOUT_THE_REQUEST:
        reason = f"the endpoint refused the request (status {status}: {excerpt(str(error), key_name)})"
        return CallFailed(PairError("rejected", REFUSED, reason))
    if isinstance(status, int) and 400 <= status < 500 and status != 409:
        return VerificationError(_refusal(status, key_name, group))
    return _transient("server_error", f"the endpoint failed or sent no chat completion (status {status})", error)


def excerpt(text: str, key_name: str | None) -> str:
    """The beginning of someone else's text on one line, with every secret of the environment blotted out."""
    for name, value in os.environ.items():
        if value and (name == key_name or (_SECRET_NAME.search(name) and len(value) >= _SHORTEST_SECRET)):
            text = text.replace(value, "***")
    line = " ".join(text.split()).encode(errors="backslashreplace").decode()  # half a character fits in no table
    return line if len(line) <= _EXCERPT else f"{line[:_EXCERPT]}…"


def _refusal(status: int, key_name: str | None, group: str) -> str:
    if status in (401, 402, 403):
        found = f"the key that LiteLLM found (or none: set {group}.api_key_env)"
        holder = f"the key in {key_name}" if key_name else found
        return f"the endpoint refused {holder} with status {status}: set a key that may use {group}.model"
    if status == 404:
        return f"the endpoint has no such model or address (status 404): check {group}.model and {group}.api_base"
    return f"the endpoint refused the request with status {status}: check {group}.model and {group}.api_base"


def _transient(code: str, message: str, error: Exception) -> CallFailed:
    return CallFailed(PairError("unscored", code, message), transient=True, retry_after=_retry_after(error))


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _retry_after(error: Exception) -> float:
    """The Retry-After header of RFC 9110, seconds or a date, as seconds from now; 0 where there is none to read."""
    of_response = getattr(getattr(error, "response", None), "headers", None)
    for headers in (of_response, getattr(error, "litellm_response_headers", None)):
        value = (headers or {}).get("retry-after")
        if value:
            return _seconds(value)
    return 0.0


def _seconds(value: str) -> float:
    if re.fullmatch(r"\s*\d+(\.\d+)?\s*", value):
        return float(value)
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return 0.0
    return max((moment.replace(tzinfo=moment.tzinfo or UTC) - datetime.now(UTC)).total_seconds(), 0.0)
