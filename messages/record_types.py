"""Which classes of the user's travel as plain data, by name, and how their instances are made again.

A dataclass, a named tuple, an enum, an attrs class or a Pydantic model is said as `module:qualname`. The reader looks
that name up and never imports: it follows it to a class that was registered here, or that stands, in a module loaded
already, under the very name that the class bears itself. Looking up runs no code.

Whoever may speak to this process can make it build instances, so it builds nothing that acts: none of
Understudy's own classes (a peer would forge what this process only says to itself; messages travel as messages) but the
few named tuples that users hold in their hands, which are marked `@own_record`; no class of the standard library but
named tuples and enums, and none with a metaclass that makes instances its own way, or with a `__new__` of its own. Of a
dataclass its `__init__` runs, with what that calls; of the others nothing does (record_shape.py), so an attrs class or
a model may define whatever it likes beside these two.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from functools import lru_cache
from types import ModuleType
from typing import Any, TypeVar

from .attributes import attributes_of
from .errors import MalformedMessage, UnsupportedValue
from .job_record_types import RecordTypes, refused_by_job, types_of_job
from .record_shape import RecordShape, shape_of
from .registry import is_message, module_name
from .whose_code import is_ours

T = TypeVar("T", bound=type)

_as_data: ContextVar[bool] = ContextVar("records stay data", default=False)
_registered: dict[str, type] = {}
_own_records: set[type] = set()


def own_record(cls: T) -> T:
    """Class decorator of a named tuple of ours that users get and may put into records, as a window: it travels."""
    assert is_ours(cls), f"{cls} is not ours"
    assert issubclass(cls, tuple), f"{cls} is no named tuple"
    _own_records.add(cls)
    return cls


def register_record_type(cls: type) -> None:
    """Let a class travel that cannot be looked up, as one of a script's `__main__`. Both sides must register it."""
    if not _is_harmless(cls):
        raise UnsupportedValue(
            f"{_full_name(cls)} is no dataclass, named tuple, enum, attrs class or Pydantic model, or making one may "
            "do anything"
        )
    _registered[_full_name(cls)] = cls


def script_record_types() -> list[type]:
    """The record types at the top level of the script or notebook that runs, which no other process can look up. Those
    that have been replaced, and that a notebook keeps as `_3`, say, come first.
    """
    found = attributes_of(sys.modules["__main__"])
    types = [
        cls
        for cls in found.values()
        if isinstance(cls, type) and module_name(cls) == "__main__" and not is_message(cls) and _is_harmless(cls)
    ]
    return sorted(types, key=lambda cls: found.get(cls.__qualname__) is cls)


def record_types_of_script() -> RecordTypes:
    """The same by the names that they travel under: of several of one name the one that stands there under it."""
    return {_full_name(cls): cls for cls in script_record_types()}


def register_script_record_types() -> None:
    """Register what `script_record_types` finds, as it will be where the script's job runs."""
    for cls in script_record_types():
        register_record_type(cls)


def is_record(value: object) -> bool:
    """Whether the value is of a kind that travels by name: a dataclass, a named tuple, a member of an enum..."""
    if isinstance(value, Enum):
        return value.name in type(value).__members__  # flags put together are members by courtesy only
    return shape_of(type(value)) is not None


def record_parts(value: Any) -> tuple[str, Any]:
    """The name of a record's class and what to make it from again; raises UnsupportedValue."""
    cls: Any = type(value)
    name = _full_name(cls)
    types = types_of_job()
    if types is not None and (why := refused_by_job(types, cls, name)):
        raise UnsupportedValue(why)
    if _look_up(name) is None:
        if is_ours(cls):
            fields = ", ".join(getattr(cls, "_fields", ())) or "fields"
            raise UnsupportedValue(
                f"a {cls.__qualname__} of this library is no record: emit what you need of it ({fields}) in its place"
            )
        raise UnsupportedValue(
            f"{cls.__qualname__} of {cls.__module__} cannot be found by name elsewhere: "
            "move it to the top level of a script or module, or declare it with @understudy.message"
        )
    if isinstance(value, Enum):
        return name, value.name
    if isinstance(value, tuple):
        return name, list(value)
    shape: Any = shape_of(cls)
    values = shape.values(value)
    beside = None if shape.beside is None else shape.beside(value)
    return name, values if beside is None else [values, beside]


@contextmanager
def records_as_data() -> Iterator[None]:
    """Within it no record is made, of classes that are loaded or not: a dict of its fields stands for it, the tuple of
    its values for a named tuple, and for a member of an enum its name.
    """
    before = _as_data.set(True)
    try:
        yield
    finally:
        _as_data.reset(before)


def are_records_data() -> bool:
    return _as_data.get()


def _data_of(parts: Any) -> Any:
    match parts:
        case [dict(values), _]:
            return values
        case list():
            return tuple(parts)
    return parts


def make_record(name: Any, parts: Any) -> Any:
    """The record of `record_parts`; raises MalformedMessage, whatever its constructor raises."""
    if _as_data.get():
        return _data_of(parts)
    cls: Any = _look_up(name) if type(name) is str else None
    if cls is None:
        raise MalformedMessage(
            f"no record type {name!r:.80} is loaded here: records travel by module and class, and are stored so as "
            "keys, and where a state declares no type (object, reduce, windows, joins): let the class stand there, "
            "in a module that is loaded"
        )
    try:
        if issubclass(cls, Enum):
            return cls._member_map_[parts]
        if issubclass(cls, tuple):
            return _make_named_tuple(cls, parts)
        return _make_of_shape(shape_of(cls), parts)
    except Exception as error:
        raise MalformedMessage(
            f"no {name:.80} can be made of what was sent: {type(error).__name__} {error}{_advice(cls, parts, error)}"
        ) from error


def _advice(cls: Any, parts: Any, error: Exception) -> str:
    """What has changed between the class that `parts` were made of and the one that is here."""
    if issubclass(cls, Enum):
        members = ", ".join(cls.__members__)
        return (
            f"; it has {members:.200} today: keep the member, or make its name that of another one, as "
            f"{parts} = {next(iter(cls.__members__), '...')} in the class{_STORED}"
        )
    if issubclass(cls, tuple):
        return f"; it has ({', '.join(cls._fields)}) today{_IN_STATE}{_STORED}" if isinstance(parts, list) else ""
    shape, values = shape_of(cls), parts[0] if type(parts) is list and parts else parts
    if shape is None or not isinstance(values, dict):
        return ""
    gone = [name for name in values if name not in shape.fields]
    new = [name for name in shape.fields if name not in values and name not in shape.optional]
    if not gone and not new and not isinstance(error, TypeError):
        return ""
    changes = (_listed(gone, "is", "are", "not there any more"), _listed(new, "has", "have", "no default"))
    changed = " and ".join(filter(None, changes))
    return (
        f"; it came with ({', '.join(map(str, values)):.200}), and the class has ({', '.join(shape.fields):.200}) today"
        f"{': ' if changed else ''}{changed}{_IN_STATE}{_STORED}"
    )


_IN_STATE = (
    "; as keys, and where a state declares no type (object, reduce, windows, joins), records lose and rename no "
    "fields, and gain those with defaults"
)
_STORED = "; a state of values is changed by Savepoint.open(path).edit(), see docs/upgrades.md"


def _listed(names: list[str], one: str, several: str, what: str) -> str:
    return f"{', '.join(map(repr, names)):.200} {several if len(names) > 1 else one} {what}" if names else ""


def _make_named_tuple(cls: Any, values: list[Any]) -> Any:
    if len(values) != len(cls._fields):
        raise ValueError(f"{len(values)} values for {len(cls._fields)} fields")
    return tuple.__new__(cls, values)


def _make_of_shape(shape: RecordShape | None, parts: Any) -> Any:
    assert shape is not None, "only record types are looked up"
    values, beside = parts if type(parts) is list and shape.beside is not None else (parts, None)
    if not shape.later <= values.keys():
        raise ValueError(f"{', '.join(sorted(shape.later - values.keys()))} is missing")
    return shape.make(values, beside)


def _full_name(cls: type) -> str:
    return f"{module_name(cls)}:{cls.__qualname__}"


def _look_up(name: str) -> type | None:
    """The class of this name if it may travel."""
    types = types_of_job()
    if types is not None and (of_job := types.get(name)) is not None:
        return of_job
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
    if is_ours(cls) and cls not in _own_records:
        return False
    if issubclass(cls, Enum) or (issubclass(cls, tuple) and hasattr(cls, "_fields")):
        return True
    return (
        shape_of(cls) is not None
        and cls.__module__.partition(".")[0] not in sys.stdlib_module_names
        and type(cls).__call__ is type.__call__
        and cls.__new__ is object.__new__
    )
