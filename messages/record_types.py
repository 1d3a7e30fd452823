"""Which classes of the user's travel as plain data, by name, and how their instances are made again.

A dataclass, a named tuple or an enum is said as `module:qualname`. The reader looks that name up and never imports: it
follows it to a class that was registered here, or that stands, in a module loaded already, under the very name that
the class bears itself. Looking up runs no code.

Whoever may speak to this process may thereby make it build instances, so it builds nothing that acts: none of
Understudy's own classes (a peer would forge what this process only says to itself; messages travel as messages), no
dataclass of the standard library, and none with a metaclass or a `__new__` of its own. Of a dataclass its `__init__`
runs, with what that calls; of a named tuple and an enum nothing does.
"""

from __future__ import annotations

import sys
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import lru_cache
from types import ModuleType
from typing import Any

from .errors import MalformedMessage, UnsupportedValue
from .registry import is_message, is_own, module_name

_registered: dict[str, type] = {}


def register_record_type(cls: type) -> None:
    """Let a class travel that cannot be looked up, as one of a script's `__main__`. Both sides must register it."""
    if not _is_harmless(cls):
        raise UnsupportedValue(f"{_full_name(cls)} is no dataclass, named tuple or enum, or making one may do anything")
    _registered[_full_name(cls)] = cls


def script_record_types() -> list[type]:
    """The record types at the top level of the script or notebook that runs, which no other process can look up."""
    found = list(vars(sys.modules["__main__"]).values())
    return [
        cls
        for cls in found
        if isinstance(cls, type) and module_name(cls) == "__main__" and not is_message(cls) and _is_harmless(cls)
    ]


def is_record(value: object) -> bool:
    """Whether the value is of a kind that travels by name: a dataclass, a named tuple, a member of an enum."""
    if isinstance(value, Enum):
        return value.name in type(value).__members__  # flags put together are members by courtesy only
    return is_dataclass(value) or (isinstance(value, tuple) and hasattr(value, "_fields"))


def record_parts(value: Any) -> tuple[str, Any]:
    """The name of a record's class and what to make it from again; raises UnsupportedValue."""
    cls: Any = type(value)
    name = _full_name(cls)
    if _look_up(name) is None:
        raise UnsupportedValue(
            f"{cls.__qualname__} of {cls.__module__} cannot be found by name elsewhere: "
            "move it to the top level of a script or module, or declare it with @understudy.message"
        )
    if isinstance(value, Enum):
        return name, value.name
    if isinstance(value, tuple):
        return name, list(value)
    return name, {field: getattr(value, field) for part in _fields_of(cls) for field in part}


def make_record(name: Any, parts: Any) -> Any:
    """The record of `record_parts`; raises MalformedMessage, whatever its constructor raises."""
    cls: Any = _look_up(name) if type(name) is str else None
    if cls is None:
        raise MalformedMessage(f"no record type {name!r:.80} is loaded here")
    try:
        if issubclass(cls, Enum):
            return cls._member_map_[parts]
        if issubclass(cls, tuple):
            return _make_named_tuple(cls, parts)
        return _make_dataclass(cls, parts)
    except Exception as error:
        raise MalformedMessage(f"no {name:.80} can be made of what was sent: {type(error).__name__} {error}") from error


def _make_named_tuple(cls: Any, values: list[Any]) -> Any:
    if len(values) != len(cls._fields):
        raise ValueError(f"{len(values)} values for {len(cls._fields)} fields")
    return tuple.__new__(cls, values)


def _make_dataclass(cls: Any, values: dict[str, Any]) -> Any:
    _, later = _fields_of(cls)
    if not later:
        return cls(**values)
    made = cls(**{name: value for name, value in values.items() if name not in later})
    for name in later:
        object.__setattr__(made, name, values[name])
    return made


@lru_cache(maxsize=1024)
def _fields_of(cls: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The fields that the constructor takes, and those that it does not."""
    every = fields(cls)
    return tuple(field.name for field in every if field.init), tuple(field.name for field in every if not field.init)


def _full_name(cls: type) -> str:
    return f"{module_name(cls)}:{cls.__qualname__}"


def _look_up(name: str) -> type | None:
    """The class of this name if it may travel."""
    if (registered := _registered.get(name)) is not None:
        return registered
    module, _, path = name.partition(":")
    found: Any = sys.modules.get(module)
    if module == "__main__" or not isinstance(found, ModuleType):
        return None
    scope: Any = object.__getattribute__(found, "__dict__")  # a module to be loaded lazily would load now
    for part in path.split("."):
        found = scope.get(part)
        if not isinstance(found, type):
            return None
        scope = vars(found)
    return found if _full_name(found) == name and _is_harmless(found) else None


@lru_cache(maxsize=1024)
def _is_harmless(cls: Any) -> bool:
    if is_own(cls):
        return False
    if issubclass(cls, Enum) or (issubclass(cls, tuple) and hasattr(cls, "_fields")):
        return True
    return (
        is_dataclass(cls)
        and cls.__module__.partition(".")[0] not in sys.stdlib_module_names
        and type(cls).__call__ is type.__call__
        and cls.__new__ is object.__new__
    )
