"""Plain data: the values that keys, questions, answers and Python records may hold, as msgpack without pickle.

What is carried: None, bool, int (of any size), float, str, bytes, list, tuple, dict, set, frozenset, datetime, date,
time, timedelta, Decimal, UUID, Row, NumPy scalars (as the Python value they hold), messages, and dataclasses that
live in an importable module. A tuple comes back as a tuple and a list as a list, so a key keeps its hash."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import UUID

import msgpack

from .errors import MalformedMessage, UnsupportedValue
from .row import Row, row_type

if TYPE_CHECKING:
    Plain: TypeAlias = Any
else:

    class Plain:
        """Annotation for a field of a message that holds plain data."""


_TUPLE, _BIG_INT, _SET, _FROZENSET, _ROW, _DATACLASS = 1, 2, 3, 4, 5, 6
_DATETIME, _DATE, _TIME, _TIMEDELTA, _DECIMAL, _UUID = 7, 8, 9, 10, 11, 12

_record_types: dict[str, type] = {}
_record_names: dict[type, str] = {}


def register_record_type(cls: type, name: str) -> None:
    """Let dataclass `cls` travel as `name` even where its module cannot be imported (`@message` does this)."""
    _record_types[name] = cls
    _record_names[cls] = name


def pack_plain(value: Any) -> bytes:
    """Plain data to bytes. Raises UnsupportedValue, naming the type that cannot travel."""
    try:
        return msgpack.packb(value, default=_to_ext, strict_types=True)  # type: ignore[no-any-return]
    except OverflowError:  # an integer of more than 64 bits: found by the packer before `default` sees it
        return msgpack.packb(_wrap_big_ints(value), default=_to_ext, strict_types=True)  # type: ignore[no-any-return]
    except (TypeError, ValueError) as error:
        if isinstance(error, UnsupportedValue):
            raise
        raise UnsupportedValue(f"this value cannot be sent or stored: {error}") from error


def unpack_plain(data: bytes) -> Any:
    """Bytes to plain data. Raises MalformedMessage; never imports and never unpickles."""
    try:
        return msgpack.unpackb(data, ext_hook=_from_ext, strict_map_key=False, use_list=True)
    except MalformedMessage:
        raise
    except (ValueError, TypeError, ArithmeticError, LookupError, RecursionError, msgpack.UnpackException) as error:
        raise MalformedMessage(f"not plain data: {error or type(error).__name__}") from error


def _ext(code: int, content: Any) -> msgpack.ExtType:
    return msgpack.ExtType(code, pack_plain(content))


def _to_ext(value: Any) -> Any:
    """What msgpack does not know by itself; it calls this for every such object, however deep."""
    kind = type(value)
    if isinstance(value, tuple):
        columns = value._columns if isinstance(value, Row) else None
        return _ext(_TUPLE, list(value)) if columns is None else _ext(_ROW, [list(columns), list(value)])
    encode = _SIMPLE.get(kind)
    if encode is not None:
        return _ext(encode[0], encode[1](value))
    if is_dataclass(value):
        return _ext(_DATACLASS, [_record_name(kind), {f.name: getattr(value, f.name) for f in fields(value)}])
    if hasattr(value, "item") and type(value).__module__ == "numpy":
        return value.item()
    for base in _BASES:
        if isinstance(value, base):  # a subclass: an enum of strings, a defaultdict
            return base(value)
    raise UnsupportedValue(f"a {kind.__module__}.{kind.__qualname__} cannot be sent or stored: {value!r:.60}")


_BASES: tuple[Any, ...] = (bool, int, float, str, bytes, dict, list, set, frozenset)

_SIMPLE: dict[type, tuple[int, Callable[[Any], Any]]] = {
    set: (_SET, list),
    frozenset: (_FROZENSET, list),
    datetime: (_DATETIME, datetime.isoformat),
    date: (_DATE, date.isoformat),
    time: (_TIME, time.isoformat),
    timedelta: (_TIMEDELTA, lambda value: [value.days, value.seconds, value.microseconds]),
    Decimal: (_DECIMAL, str),
    UUID: (_UUID, str),
}

_DECODE: dict[int, Callable[[Any], Any]] = {
    _TUPLE: tuple,
    _SET: set,
    _FROZENSET: frozenset,
    _BIG_INT: int,
    _ROW: lambda content: row_type(tuple(content[0]))(*content[1]),
    _DATETIME: datetime.fromisoformat,
    _DATE: date.fromisoformat,
    _TIME: time.fromisoformat,
    _TIMEDELTA: lambda content: timedelta(*content),
    _DECIMAL: Decimal,
    _UUID: UUID,
    _DATACLASS: lambda content: _make_record(content[0], content[1]),
}


def _from_ext(code: int, data: bytes) -> Any:
    decode = _DECODE.get(code)
    if decode is None:
        raise MalformedMessage(f"unknown extension {code} in plain data")
    return decode(unpack_plain(data))


def _record_name(cls: type) -> str:
    known = _record_names.get(cls)
    if known is not None:
        return known
    if cls.__module__ == "__main__" or "<locals>" in cls.__qualname__:
        raise UnsupportedValue(
            f"dataclass {cls.__qualname__} of {cls.__module__} cannot be found by name elsewhere: "
            "move it to the top level of a module, or declare it with @understudy.message"
        )
    return f"{cls.__module__}:{cls.__qualname__}"


def _make_record(name: str, values: dict[str, Any]) -> Any:
    cls = _record_types.get(name)
    if cls is None:
        module, _, path = name.partition(":")
        found: Any = sys.modules.get(module)
        for part in path.split("."):
            found = getattr(found, part, None)
        if not (isinstance(found, type) and is_dataclass(found)):
            raise MalformedMessage(f"no dataclass {name!r:.80} is loaded here")
        cls = found
    return cls(**values)


def _wrap_big_ints(value: Any) -> Any:
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return _ext(_BIG_INT, str(value))
    if isinstance(value, list):
        return [_wrap_big_ints(item) for item in value]
    if isinstance(value, dict):
        return {_wrap_big_ints(key): _wrap_big_ints(item) for key, item in value.items()}
    if type(value) is tuple:
        return _ext(_TUPLE, [_wrap_big_ints(item) for item in value])
    return value
