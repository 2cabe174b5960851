"""Configuration values as typed objects, with errors that name the field."""

import inspect
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, TypeVar

import pydantic
from pydantic import TypeAdapter

from verifier.errors import ConfigurationError

T = TypeVar("T")


def refuse_unknown(values: Iterable[str], known: Iterable[str], group: str) -> None:
    """Raise ConfigurationError, naming the known fields, for the first field of a group that is not known."""
    names = list(known)
    for field in values:
        if field not in names:
            name = f"{group}.{field}" if group and " " not in group else field
            where = f"{name} is no field of {group or 'the configuration'}"
            raise ConfigurationError(f"{where}: known are {', '.join(names)}")


def refuse_unknown_arguments(factory: partial[Any], group: str) -> None:
    """Raise ConfigurationError where ``factory`` would be called with an argument that it does not have."""
    refuse_unknown(factory.keywords, inspect.signature(factory.func).parameters, group)


def built(kind: type[T], values: Mapping[str, Any], name: str) -> T:
    """``kind(**values)`` with every value checked; ConfigurationError names the field of group ``name``."""
    fields = getattr(kind, "model_fields", None) or getattr(kind, "__dataclass_fields__", {})
    refuse_unknown(values, fields, name)
    try:
        return TypeAdapter(kind).validate_python(dict(values))
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        field = ".".join([name, *(str(part) for part in first["loc"])])
        message = f"{first['msg'][0].lower()}{first['msg'][1:]}".removeprefix("value error, ")
        raise ConfigurationError(f"{field} is {first['input']!r}: {message}" if first["loc"] else message) from error
