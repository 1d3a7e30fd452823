"""The serializers that users register, by name and by type.

A serializer with a `type` makes that class's instances, and those of its subclasses, travel as plain data: in channels,
in questions and answers, and in state (plain.py). One without is there for declarations of state that name it.

Both sides need it: a job's program takes along those registered where it is submitted. A peer that may speak to
this process may hand any bytes to `deserialize`, so it must parse them, and never unpickle.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Protocol

from .errors import MalformedMessage, UnsupportedValue
from .shown import one_of_kind, shown


class Serializer(Protocol):
    """A user's own serializer. `version` grows when the bytes change; `deserialize` gets the one that was written.

    With an attribute `type`, a class, instances of that class travel by it without being declared.
    """

    name: str
    version: int

    def serialize(self, value: Any) -> bytes:
        """The value as bytes."""
        ...

    def deserialize(self, data: bytes, version: int) -> Any:
        """The value of bytes that this version wrote: parse them, and never unpickle them."""
        ...


_by_name: dict[str, Serializer] = {}
_by_type: dict[Any, Serializer] = {}
CARRIED: set[Any] = {object}
"""Types that plain data carries by itself, and that no serializer can take over; plain.py adds its own."""


def register_serializer(serializer: Serializer) -> None:
    """Let `serializer` write values: those of its `type`, wherever they travel, and those of the states that name it.

    `ValueState(Image, serializer="png")` names it. A later serializer of the same name, or for the same type, replaces
    the earlier one. Register before the job is submitted; the TaskManagers get a copy with the program. Raises
    TypeError for what is not a serializer, and for a type that travels already.
    """
    kind = _checked(serializer)
    if (before := _by_name.get(serializer.name)) is not None:
        _by_type.pop(getattr(before, "type", None), None)
    _by_name[serializer.name] = serializer
    if kind is not None:
        _by_type[kind] = serializer
    _serializer_for.cache_clear()


def find_serializer(serializer: Serializer | str) -> Serializer:
    """The serializer itself, or the one registered under this name; raises LookupError."""
    if not isinstance(serializer, str):
        return serializer
    known = _by_name.get(serializer)
    if known is None:
        raise LookupError(f"no serializer {serializer!r} is registered; {_registered_names()}")
    return known


@lru_cache(maxsize=1024)
def _serializer_for(cls: Any) -> Serializer | None:
    return next((_by_type[base] for base in cls.__mro__ if base in _by_type), None)


serializer_for: Callable[[type], Serializer | None] = _serializer_for
"""The serializer whose type is this class or, failing that, the nearest of its bases."""


def registered_serializers() -> tuple[Serializer, ...]:
    """All of them, each once."""
    return tuple(_by_name.values())


def serialized(serializer: Serializer, value: Any) -> list[Any]:
    """Name, version and bytes of a value. Raises UnsupportedValue, whatever the serializer raises."""
    try:
        data = serializer.serialize(value)
    except Exception as error:
        raise UnsupportedValue(
            f"serializer {serializer.name!r} cannot write {one_of_kind(type(value))}: {type(error).__name__}: {error}"
        ) from error
    if not isinstance(data, bytes):
        raise UnsupportedValue(f"serializer {serializer.name!r}: serialize returned a {type(data).__name__}, not bytes")
    return [serializer.name, serializer.version, data]


def deserialized(name: Any, version: Any, data: Any) -> Any:
    """The value of `serialized`; raises MalformedMessage, whatever the serializer raises."""
    if not (type(name) is str and type(version) is int and type(data) is bytes):
        raise MalformedMessage("wanted the name and version of a serializer, and bytes")
    serializer = _by_name.get(name)
    if serializer is None:
        raise MalformedMessage(f"no serializer {name!r:.80} is registered here; {_registered_names()}")
    if version > serializer.version:
        raise MalformedMessage(
            f"serializer {name!r:.80} is of version {serializer.version} here, and version {version} wrote this"
        )
    try:
        return serializer.deserialize(data, version)
    except Exception as error:
        raise MalformedMessage(f"serializer {name!r:.80} cannot read this: {type(error).__name__}: {error}") from error


def _registered_names() -> str:
    return f"registered are: {', '.join(sorted(map(repr, _by_name))) or 'none'}"


def _checked(serializer: Any) -> type | None:
    """The type of a serializer that is whole."""
    methods = all(callable(getattr(serializer, method, None)) for method in ("serialize", "deserialize"))
    if isinstance(serializer, type) or not methods:
        raise TypeError(
            "register_serializer: wanted an instance with name, version, serialize(value) and "
            f"deserialize(data, version), found {shown(serializer)}"
        )
    name, version, kind = (getattr(serializer, each, None) for each in ("name", "version", "type"))
    if not (isinstance(name, str) and name and type(version) is int):
        raise TypeError(f"register_serializer: wanted a name and an integer version, found {name!r} and {version!r}")
    if kind is not None and not isinstance(kind, type):
        raise TypeError(f"register_serializer: type of serializer {name!r} is a class, found {shown(kind)}")
    if kind is not None and kind in CARRIED:
        raise TypeError(f"register_serializer: {one_of_kind(kind)} needs no serializer, and cannot have one")
    return kind
