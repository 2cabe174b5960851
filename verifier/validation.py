"""Configuration values as typed objects, with errors that name the field."""

from collections.abc import Mapping
from typing import Any, TypeVar

import pydantic
from pydantic import TypeAdapter

from verifier.errors import ConfigurationError

T = TypeVar("T")


def built(kind: type[T], values: Mapping[str, Any], name: str) -> T:
    """``kind(**values)`` with every value checked; ConfigurationError names the field of group ``name``."""
    fields = getattr(kind, "model_fields", None) or getattr(kind, "__dataclass_fields__", {})
    for field in values:
        if field not in fields:
            raise ConfigurationError(f"{name}.{field} is no field of {name}: known are {', '.join(fields)}")
    try:
        return TypeAdapter(kind).validate_python(dict(values))
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        field = ".".join([name, *(str(part) for part in first["loc"])])
        raise ConfigurationError(
            f"{field} is {first['input']!r}: {first['msg'][0].lower()}{first['msg'][1:]}"
        ) from error
