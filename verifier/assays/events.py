"""What the body of each kind of entry must have: the fields that are read of it, with their types."""

from collections.abc import Mapping
from typing import Any, Literal

import pydantic
from pydantic import BaseModel

Kind = Literal["registration", "observation", "calibration", "unlock"]


class _File(BaseModel):
    sha256: str


class _Cohort(BaseModel):
    name: str
    files: dict[str, _File]
    selected: list[str] | None


class _Registration(BaseModel):
    registration: str
    sealed: bool
    cohort: _Cohort
    identities: list[str]


class _Observation(BaseModel):
    registration: str
    identities: list[str]


class _Gate(BaseModel):
    required: bool | int | float
    passed: bool


class _Gates(BaseModel):
    results: dict[str, _Gate]


class _Calibration(BaseModel):
    registration: str
    passed: bool
    gates: _Gates
    chosen: dict[str, Any]
    cohort_sha256: str


class _Unlock(BaseModel):
    registration: str


_BODIES: dict[str, type[BaseModel]] = {
    "registration": _Registration,
    "observation": _Observation,
    "calibration": _Calibration,
    "unlock": _Unlock,
}


def lacking(kind: Any, body: Any) -> str | None:
    """What is wrong with an entry of this kind and body, as the end of a sentence; None for nothing."""
    if not isinstance(kind, str) or kind not in _BODIES:
        return f"{kind!r} is no kind of entry"
    try:
        _BODIES[kind].model_validate(body, strict=True)
    except pydantic.ValidationError as error:
        first: Mapping[str, Any] = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in ("body", *first["loc"]))
        return f"{where} of the {kind}: {first['msg'][:1].lower()}{first['msg'][1:]}"
    return None
