"""A property computed once."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class lazy(Generic[T]):
    """A property computed once; unlike ``functools.cached_property`` of Python 3.11 it takes no lock."""

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, owner: None, kind: type) -> "lazy[T]": ...
    @overload
    def __get__(self, owner: object, kind: type) -> T: ...
    def __get__(self, owner: object | None, kind: type) -> "lazy[T] | T":
        if owner is None:
            return self
        value = self._compute(owner)
        owner.__dict__[self._name] = value
        return value
