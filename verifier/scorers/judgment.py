"""What a judge's raw answer says: the seed's mapping to a score, and whether it says anything at all."""

import json
import math
from typing import Any

_NO_OPINION = 0.5


def parse_judgment(raw: str) -> float:
    """The support in [0, 1] of a raw answer with ``{"supported": …, "confidence": …}`` somewhere in it.

    With c = confidence clamped to [0.5, 1], and 0.5 where it is no number, support is c for a true ``supported``
    and 1 - c for any other. A text without a readable object is 0.0: for a mapping of strings there is nothing
    else to give. Use ``read_judgment`` where "no" and "unreadable" must not be the same.

    >>> parse_judgment('{"supported": true, "confidence": 0.9}')
    0.9
    >>> parse_judgment("no json here")
    0.0
    """
    answer = _first_object(raw)
    if answer is None:
        return 0.0
    confidence = _confidence(answer)
    return confidence if answer.get("supported") else 1 - confidence


def read_judgment(raw: str) -> float | None:
    """``parse_judgment``, or None for an answer that does not say what was asked.

    That is a text without a readable object, a ``supported`` that is neither a boolean nor 0 or 1 (is "no" true?),
    and a confidence of NaN.
    """
    answer = _first_object(raw)
    supported = None if answer is None else answer.get("supported")
    if answer is None or not isinstance(supported, bool | int | float) or supported not in (0, 1):
        return None
    confidence = answer.get("confidence")
    if isinstance(confidence, float) and math.isnan(confidence):
        return None
    return parse_judgment(raw)


def _first_object(raw: str) -> dict[str, Any] | None:
    start, end = raw.find("{"), raw.rfind("}")
    try:
        answer = json.loads(raw[start : end + 1]) if 0 <= start < end else None
    except (ValueError, RecursionError):
        return None
    return answer if isinstance(answer, dict) else None


def _confidence(answer: dict[str, Any]) -> float:
    try:
        confidence = float(answer.get("confidence", _NO_OPINION))
    except (TypeError, ValueError, OverflowError):
        return _NO_OPINION
    return _NO_OPINION if math.isnan(confidence) else min(max(confidence, _NO_OPINION), 1.0)
