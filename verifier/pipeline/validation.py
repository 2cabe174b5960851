"""From raw JSON to a validated claim: every way to fail has a stable code and a sentence that names the field."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

import pydantic
from pydantic import TypeAdapter
from pydantic_core import ErrorDetails

from verifier.errors import InputError
from verifier.records import Claim, Evidence

CLAIM_FIELDS = tuple(Claim.__dataclass_fields__)
EVIDENCE_FIELDS = tuple(Evidence.__dataclass_fields__)

_CLAIM = TypeAdapter(Claim)
_EVIDENCE = TypeAdapter(Evidence)
_EVIDENCE_SET = frozenset(EVIDENCE_FIELDS)
_MISSING = {
    "claim_id": "missing_claim_id",
    "id": "missing_claim_id",
    "claim": "missing_claim",
    "context": "missing_context",
    "answer_id": "missing_answer_id",
    "answer": "missing_answer",
    "passage_id": "missing_passage_id",
    "draft_span": "missing_draft_span",
}
_EMPTY = {
    "claim_id": "missing_claim_id",
    "id": "missing_claim_id",
    "context": "missing_context",
    "claim": "empty_claim",
    "text": "empty_passage",
    "rendered_text": "empty_passage",
    "reference": "empty_reference",
    "answer_id": "missing_answer_id",
    "passage_id": "missing_passage_id",
}
_NESTED: Mapping[str, Iterable[str]] = {"evidence": EVIDENCE_FIELDS}
_PLAIN = ("label", "category", "document_id")
_SHOWN = 80  # characters of a value that a message repeats
MAX_DEPTH = 64
"""Objects and lists of a row within one another; deeper rows are the reject ``nested_too_deeply``."""


def parse_object(raw: bytes) -> dict[str, Any]:
    """One JSON object, strictly: UTF-8, no NaN or infinity, no key twice, not too deep; else InputError."""
    try:
        value = _DECODER.decode(raw.decode())
    except InputError:
        raise
    except UnicodeDecodeError as error:
        raise InputError("invalid_utf8", f"the row is not valid UTF-8: {error.reason} at byte {error.start}") from None
    except RecursionError:
        raise InputError("unparseable_json", "the row is not readable JSON: it is nested too deeply") from None
    except ValueError as error:  # JSONDecodeError, and integers of more digits than Python reads
        raise InputError("unparseable_json", f"the row is not valid JSON: {str(error).split(';')[0]}") from None
    if type(value) is not dict:
        raise InputError("not_an_object", f"the row is {shown(value)}, not a JSON object")
    if raw.count(b"[") + raw.count(b"{") > MAX_DEPTH:
        refuse_depth(value)
    return value


def refuse_depth(value: Any) -> None:
    """Raise InputError for a row that is nested deeper than ``MAX_DEPTH``; nothing here recurses."""
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        level = [
            item
            for one in level
            for item in (one.values() if isinstance(one, Mapping) else one)
            if isinstance(item, (Mapping, list, tuple))
        ]
        if not level:
            return
    raise InputError("nested_too_deeply", f"the row nests objects and lists more than {MAX_DEPTH} deep")


def refuse_too_many(items: Any, limit: int) -> None:
    """Raise InputError for a list of more than ``limit`` evidence items, before any of them is looked at."""
    if isinstance(items, (list, tuple)) and len(items) > limit:
        message = f"the claim has {len(items)} evidence items; policy.max_evidence is {limit}"
        raise InputError("too_much_evidence", message)


def _finite(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise InputError("not_finite_number", f"the row holds {shown(digits)}, which is beyond a 64-bit number")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise InputError("not_finite_number", f"the row holds {name}, which is not a finite number")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        (repeated, _), *_ = Counter(name for name, _ in pairs).most_common(1)
        raise InputError("repeated_field", f"the row names the field {shown(repeated)} twice in one object")
    return value


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_float=_finite, parse_constant=_refuse_constant)


def refuse_unknown(value: Mapping[str, Any], allowed: Iterable[str]) -> None:
    """Raise InputError for a field that is neither allowed nor private (a name that starts with ``_``)."""
    names = tuple(allowed)
    for name in value:
        if name not in names and not name.startswith("_"):
            raise _unknown_field(name, names)


def _unknown_field(path: str, allowed: Iterable[str]) -> InputError:
    return InputError(
        "unknown_field",
        f"{shown(path)} is not a field here; known are {', '.join(allowed)} (names that start with _ are ignored)",
    )


def required_text(value: Mapping[str, Any], name: str, path: str | None = None) -> str:
    """The stripped text of a field that must be a non-empty string; ``path`` is its name in messages."""
    path = path or name
    text = value.get(name)
    if text is None:
        raise InputError(_MISSING.get(name, "missing_evidence_field"), f"{path} is missing")
    if not isinstance(text, str):
        raise _wrong_type(path, text, "not_a_string", "a string")
    if not text.strip():
        raise InputError(_EMPTY.get(name, "missing_evidence_field"), f"{path} is empty")
    refuse_surrogates(path, text)
    return text.strip()


def refuse_surrogates(path: str, text: str) -> None:
    """Raise InputError for a string that UTF-8 cannot hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _not_text(path, text) from None


def _not_text(path: str, value: Any) -> InputError:
    return InputError("invalid_utf8", f"{path} is {shown(value)}, which holds a lone surrogate and is not text")


def evidence_items(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The evidence list of a row, each item an object without its private fields; else InputError."""
    items = value.get("evidence")
    if items is None:
        raise InputError("missing_evidence_field", "evidence is missing; a claim without any says an empty list")
    if not isinstance(items, (list, tuple)):
        raise _wrong_type("evidence", items, "evidence_not_a_list", "a list")
    return [_public(item, f"evidence[{index}]") for index, item in enumerate(items)]


def _public(item: Any, path: str) -> dict[str, Any]:
    if type(item) is not dict:
        raise _wrong_type(path, item, "evidence_not_an_object", "an object")
    if item.keys() <= _EVIDENCE_SET:
        return item
    return {name: field for name, field in item.items() if not name.startswith("_")}


def validated_claim(
    value: Mapping[str, Any], allowed: Iterable[str] = CLAIM_FIELDS, evidence: Sequence[Evidence] | None = None
) -> Claim:
    """The claim of a row's public fields; null means absent.

    ``allowed`` are the names that a message offers; ``evidence``, where given, is used in place of the row's.
    """
    fields = {name: field for name, field in value.items() if field is not None and not name.startswith("_")}
    fields["evidence"] = evidence_items(value) if evidence is None else evidence
    try:
        claim = _CLAIM.validate_python(fields)
    except pydantic.ValidationError as error:
        raise input_error(error, allowed) from None
    for name in _PLAIN:
        text = getattr(claim, name)
        if text is not None:
            refuse_surrogates(name, text)  # pydantic looks inside strings only where it has to strip them
    return claim


def validated_evidence(
    value: Mapping[str, Any], allowed: Iterable[str] = EVIDENCE_FIELDS, prefix: str = ""
) -> Evidence:
    """One evidence item; ``prefix`` stands before its field names in messages."""
    fields = {name: field for name, field in value.items() if not name.startswith("_")}
    try:
        return _EVIDENCE.validate_python(fields)
    except pydantic.ValidationError as error:
        raise input_error(error, allowed, prefix) from None


def input_error(
    error: pydantic.ValidationError,
    allowed: Iterable[str],
    prefix: str = "",
    nested: Mapping[str, Iterable[str]] = _NESTED,
) -> InputError:
    """The first thing that is wrong with a row, in our words.

    Args:
        error: what pydantic says.
        allowed: the fields of a row, for the message on one that is not known.
        prefix: stands before field names.
        nested: the fields of the items in its lists, by the list's name.
    """
    first = error.errors(include_url=False)[0]
    path = prefix + _path(first["loc"]) or "a field name"  # a name that is not text has no location
    kind, name, value = first["type"], path.rpartition(".")[2], first["input"]
    if kind in ("unexpected_keyword_argument", "extra_forbidden"):
        return _unknown_field(path, nested.get(str(first["loc"][0]), allowed) if len(first["loc"]) > 1 else allowed)
    if kind == "missing" or value is None:
        return InputError(_MISSING.get(name, "missing_evidence_field"), f"{path} is missing")
    if isinstance(value, float) and not math.isfinite(value):
        return InputError("not_finite_number", f"{path} is {value}, which is not a finite number")
    if kind in ("string_too_short", "string_pattern_mismatch"):
        return InputError(_EMPTY.get(name, "empty_string"), f"{path} is empty")
    if kind == "string_unicode":
        return _not_text(path, value)
    if kind == "literal_error":
        return InputError("unknown_enum_value", f"{path} is {shown(value)}; known are {_expected(first)}")
    if kind.startswith("uuid"):
        return InputError("bad_memory_id", f"{path} is {shown(value)}, which is not a UUID")
    if kind.startswith(("datetime", "date", "time")):
        return InputError("bad_time", f"{path} is {shown(value)}, which is not an ISO 8601 time")
    if kind.startswith("string"):
        return _wrong_type(path, value, "not_a_string", "a string")
    if kind == "tuple_type":
        return _wrong_type(path, value, "not_a_list", "a list")
    if kind in ("model_type", "dict_type"):
        return _wrong_type(path, value, "not_an_object", "an object")
    if kind.startswith("bool"):
        return _wrong_type(path, value, "not_a_boolean", "true or false")
    return InputError("invalid_value", f"{path} is {shown(value)}: {first['msg']}")


def _wrong_type(path: str, value: Any, code: str, wanted: str) -> InputError:
    if isinstance(value, float) and not math.isfinite(value):
        return InputError("not_finite_number", f"{path} is {value}, which is not a finite number")
    return InputError(code, f"{path} is {shown(value)}, not {wanted}")


def _expected(error: ErrorDetails) -> str:
    return str(error.get("ctx", {}).get("expected", "listed in the documentation"))


def _path(location: tuple[int | str, ...]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).lstrip(".")


def shown(value: Any) -> str:
    """A value as a message repeats it: short, printable, whatever it is."""
    if value is None:
        return "null"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, (list, tuple)):
        return "a list"
    text = ascii(value[: _SHOWN + 1]) if isinstance(value, str) and not value.isprintable() else repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
