"""Plain data: the values that keys, questions, answers and Python records may hold, as msgpack without pickle.

What is carried: None, bool, int (of any size), float, complex, str, bytes, list, tuple, dict, set, frozenset, datetime,
date, time, timedelta, Decimal, Fraction, UUID, Row, DictRow, NumPy arrays (see arrays.py) and scalars (as the Python
value they hold), messages, and dataclasses, named tuples, enums, attrs classes and Pydantic models that the other side
finds by name (see record_types.py), and whatever a serializer was registered for (see serializers.py). A tuple comes
back as a tuple and a list as a list, so a key keeps its hash. An instance of a subclass of these comes back as the
plain type it derives from.

A type unknown to msgpack is an extension, whose content is plain data again; at most MAX_NESTED of them stand inside
one another. A msgpack timestamp, which we do not write, is read as a datetime. Of equal keys in a map the last counts.
A time zone's offset of less than a second is read as UTC, as CPython does.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any
from uuid import UUID

import msgpack
import numpy as np

from .arrays import array_parts, make_array, refuse_subclass
from .codec import decode_thoroughly, encode_thoroughly
from .dict_row import DictRow
from .errors import MalformedMessage, MessageError, UnsupportedValue
from .fields import converter, found
from .numpy_scalars import python_value
from .pandas_times import python_time
from .record_types import are_records_data, is_record, make_record, record_parts
from .refusal import MAX_NESTED, not_carried, where_refused
from .registry import Plain, is_message
from .row import Row, row_type
from .serializers import CARRIED, deserialized, serialized, serializer_for
from .shown import one_of_kind

MAX_FRACTION_BITS = 65_536
"""Of a numerator or a denominator: whoever reads a fraction has to reduce it."""

_TUPLE, _BIG_INT, _SET, _FROZENSET, _ROW, _RECORD, _MESSAGE = 1, 2, 3, 4, 5, 6, 13
_DATETIME, _DATE, _TIME, _TIMEDELTA, _DECIMAL, _UUID = 7, 8, 9, 10, 11, 12
_ARRAY, _SERIALIZED, _COMPLEX, _FRACTION, _DICT_ROW = 14, 15, 16, 17, 18

_depth: ContextVar[int] = ContextVar("depth of plain data", default=0)
"""How many extensions stand around a message that is being packed or unpacked inside plain data."""


def pack_plain(value: Any) -> bytes:
    """Plain data to bytes. Raises UnsupportedValue, naming the type that cannot travel and where it stands."""
    depth = _depth.get()
    try:
        return _pack(value, depth)
    except UnsupportedValue as error:
        if depth:  # what is around it says where
            raise
        raise UnsupportedValue(_refusal(value) or str(error)) from None  # below it are our own frames


def refusal_of(value: Any) -> str | None:
    """Why this is not plain data: where what does not travel stands, its type, and what is allowed; None: it is."""
    try:
        _pack(value, 0)
    except UnsupportedValue as error:
        return _refusal(value) or str(error)
    return None


def _refusal(value: Any) -> str | None:
    return where_refused(value, lambda part: _pack(part, 0))


def unpack_plain(data: bytes) -> Any:
    """Bytes to plain data. Raises MalformedMessage; never imports and never unpickles."""
    return _unpack(data, _depth.get())


def _pack(value: Any, depth: int) -> bytes:
    if depth > MAX_NESTED:
        raise UnsupportedValue(f"tuples, sets or records are nested deeper than {MAX_NESTED}")
    to_ext = _TO_EXT[depth]
    try:
        return msgpack.packb(value, default=to_ext, strict_types=True)  # type: ignore[no-any-return]
    except UnicodeEncodeError:  # half a surrogate pair, as Python makes of a file name that is no text
        return msgpack.packb(value, default=to_ext, strict_types=True, unicode_errors="surrogatepass")  # type: ignore[no-any-return]
    except MessageError:
        raise
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise UnsupportedValue(f"this value cannot be sent or stored: {error}") from error


def _unpack(data: Any, depth: int) -> Any:
    if depth > MAX_NESTED:
        raise MalformedMessage(f"plain data nested deeper than {MAX_NESTED}")
    try:
        return msgpack.unpackb(
            data, ext_hook=_FROM_EXT[depth], strict_map_key=False, timestamp=3, unicode_errors="surrogatepass"
        )
    except MalformedMessage:
        raise
    except (ValueError, TypeError, ArithmeticError, MemoryError, msgpack.UnpackException) as error:
        raise MalformedMessage(f"not plain data: {error or type(error).__name__}") from error


# -- to extensions


def _to_ext(depth: int, value: Any) -> Any:
    """What msgpack does not know by itself; it calls this for every such object, however deep."""
    kind = type(value)
    known = _ENCODE.get(kind)
    if known is not None:
        return msgpack.ExtType(known[0], _pack(known[1](value), depth + 1))
    if isinstance(value, Row):
        return msgpack.ExtType(_ROW, _pack([list(value._columns), list(value)], depth + 1))
    if is_message(kind):
        return msgpack.ExtType(_MESSAGE, _inside(depth + 1, encode_thoroughly, value))
    if (serializer := serializer_for(kind)) is not None:
        return msgpack.ExtType(_SERIALIZED, _pack(serialized(serializer, value), depth + 1))
    if is_record(value):
        return msgpack.ExtType(_RECORD, _pack(list(record_parts(value)), depth + 1))
    simpler = _simpler(value)
    is_known = type(simpler) not in _ENCODE or (type(simpler) is int and -(2**63) <= simpler < 2**64)
    return simpler if is_known else _to_ext(depth, simpler)


def _simpler(value: Any) -> Any:
    """The plain value that a NumPy scalar or an instance of a plain type's subclass stands for."""
    if isinstance(value, np.generic):
        return _item_of(value)
    if isinstance(value, np.ndarray):
        refuse_subclass(value)
    for base in _BASES:
        if isinstance(value, base):
            return base(value)
    if (plain := python_time(value)) is not value:
        return plain
    raise UnsupportedValue(not_carried(value))


def _item_of(scalar: np.generic[Any]) -> Any:
    """The Python value of a NumPy scalar, if there is one that holds as much. None for a time that is NaT."""
    item, refused = python_value(scalar), f"{one_of_kind(type(scalar))} cannot be sent or stored"
    if isinstance(scalar, np.void):
        raise UnsupportedValue(f"{refused}: make it a tuple with item() first")
    if not isinstance(item, np.generic):
        return item
    if isinstance(scalar, np.datetime64 | np.timedelta64):
        raise UnsupportedValue(
            f"{refused}: no time of Python is {scalar} of {scalar.dtype}, for its unit or its range; convert it with "
            "astype(), as to 'M8[us]'"
        )
    raise UnsupportedValue(f"{refused}: make it a float or a complex first")  # more than 64 bits, or 128 of a complex


_BASES: tuple[Any, ...] = (bool, int, float, str, bytes, dict, list, tuple, set, frozenset)

_ENCODE: dict[type, tuple[int, Callable[[Any], Any]]] = {
    tuple: (_TUPLE, list),
    DictRow: (_DICT_ROW, dict),
    int: (_BIG_INT, lambda value: value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True)),
    set: (_SET, list),
    frozenset: (_FROZENSET, list),
    datetime: (_DATETIME, datetime.isoformat),
    date: (_DATE, date.isoformat),
    time: (_TIME, time.isoformat),
    timedelta: (_TIMEDELTA, lambda value: [value.days, value.seconds, value.microseconds]),
    Decimal: (_DECIMAL, str),
    UUID: (_UUID, lambda value: value.bytes),
    np.ndarray: (_ARRAY, array_parts),
    complex: (_COMPLEX, lambda value: [value.real, value.imag]),
    Fraction: (_FRACTION, lambda value: _bounded([value.numerator, value.denominator], UnsupportedValue)),
}

CARRIED.update((None.__class__, *_BASES, *_ENCODE))


def _bounded(parts: list[Any], error: type[MessageError]) -> list[Any]:
    """Numerator and denominator, neither too long to be reduced in no time."""
    if any(part.bit_length() > MAX_FRACTION_BITS for part in parts):
        raise error(f"a fraction of more than {MAX_FRACTION_BITS} bits cannot be sent or stored")
    return parts


# -- from extensions


def _from_ext(depth: int, code: int, data: bytes) -> Any:
    if code == _MESSAGE:
        return _inside(depth + 1, decode_thoroughly, data)
    known = _DECODE.get(code)
    if known is None:
        raise MalformedMessage(f"unknown extension {code} in plain data")
    wanted, make = known
    content = _unpack(data, depth + 1)
    if type(content) is not wanted:
        raise MalformedMessage(f"extension {code} in plain data: wanted {wanted.__name__}, found {found(content)}")
    return make(content)


def _make_row(content: list[Any]) -> Any:
    names, values = content
    if not (type(names) is list and all(type(name) is str for name in names)):
        raise MalformedMessage(f"wanted the names of a row's columns, found {found(names)}")
    return row_type(tuple(names))(*values)


def _pair_of(kind: type, content: list[Any]) -> list[Any]:
    if len(content) != 2 or any(type(part) is not kind for part in content):
        raise MalformedMessage(f"wanted two of {kind.__name__}, found {found(content)}")
    return content


_DECODE: dict[int, tuple[type, Callable[[Any], Any]]] = {
    _TUPLE: (list, tuple),
    _SET: (list, set),
    _FROZENSET: (list, frozenset),
    _BIG_INT: (bytes, lambda content: int.from_bytes(content, "big", signed=True)),
    _ROW: (list, _make_row),
    _DICT_ROW: (dict, DictRow),
    _DATETIME: (str, datetime.fromisoformat),
    _DATE: (str, date.fromisoformat),
    _TIME: (str, time.fromisoformat),
    _TIMEDELTA: (list, lambda content: timedelta(*content)),
    _DECIMAL: (str, Decimal),
    _UUID: (bytes, lambda content: UUID(bytes=content)),
    _RECORD: (list, lambda content: make_record(*content)),
    _ARRAY: (list, make_array),
    _SERIALIZED: (list, lambda content: content[-1] if are_records_data() else deserialized(*content)),
    _COMPLEX: (list, lambda content: complex(*_pair_of(float, content))),
    _FRACTION: (list, lambda content: Fraction(*_bounded(_pair_of(int, content), MalformedMessage))),
}


def _inside(depth: int, function: Callable[[Any], Any], argument: Any) -> Any:
    """Pack or unpack a message that stands this deep in plain data, and whose fields may hold plain data again."""
    if depth > MAX_NESTED:
        wrong = UnsupportedValue if function is encode_thoroughly else MalformedMessage
        raise wrong(f"nested deeper than {MAX_NESTED}")
    outside = _depth.set(depth)
    try:
        return function(argument)
    finally:
        _depth.reset(outside)


_TO_EXT = [partial(_to_ext, depth) for depth in range(MAX_NESTED + 1)]
_FROM_EXT = [partial(_from_ext, depth) for depth in range(MAX_NESTED + 1)]


def _read_plain(raw: Any, _: Any) -> Any:
    if type(raw) is not bytes:
        raise TypeError(f"wanted plain data, found {found(raw)}")
    return unpack_plain(raw)


converter.register_structure_hook_func(lambda hint: hint is Plain, _read_plain)
converter.register_unstructure_hook_func(lambda hint: hint is Plain, pack_plain)
