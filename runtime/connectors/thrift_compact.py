"""Thrift's compact protocol, as far as Parquet's metadata needs it: bytes to structs and back, whatever fields mean.

A struct is a dict of field id -> `Field`, in the order of the bytes, so what was read is written again with nothing
lost. See "Thrift Compact protocol encoding" of the Apache Thrift specification.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, _MAP, STRUCT = range(1, 13)
"""Types of fields. A boolean field's type is its value, too."""

_STOP = 0
_LONG_LIST = 15
_DEEPEST = 32
"""Parquet's structs are less than ten deep."""


class Field(NamedTuple):
    """A value and its type: an int, bytes (of a double too), a Struct, or of a list its `Elements`."""

    kind: int
    value: Any


class Elements(NamedTuple):
    """A list or a set: the type of its values, and these."""

    kind: int
    values: list[Any]


Struct: TypeAlias = dict[int, Field]


class MalformedThrift(ValueError):
    """Bytes are no struct in this protocol; says where."""


def read_struct(data: bytes | memoryview, start: int = 0) -> tuple[Struct, int]:
    """The struct that begins at `start`, and where it ends. Raises MalformedThrift."""
    try:
        return _read_struct(data, start, _DEEPEST)
    except IndexError:
        raise MalformedThrift(f"a struct at {start} goes beyond the end, at {len(data)}") from None


def skip_struct(data: bytes | memoryview, at: int) -> int:
    """Where the struct that begins at `at` ends, for a third of the time. Raises MalformedThrift."""
    try:
        return _skip_struct(data, at, _DEEPEST)
    except IndexError:
        raise MalformedThrift(f"a struct at {at} goes beyond the end, at {len(data)}") from None


def read_int(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """The integer that begins at `at`, and where it ends."""
    number, at = _read_varint(data, at)
    return (number >> 1) ^ -(number & 1), at


def write_struct(struct: Struct) -> bytes:
    """Its bytes."""
    out = bytearray()
    _write_struct(out, struct)
    return bytes(out)


def write_int(out: bytearray, number: int) -> None:
    """Append an integer."""
    _write_varint(out, (number << 1) ^ (number >> 63))


def _read_struct(data: bytes | memoryview, at: int, deepest: int) -> tuple[Struct, int]:
    if not deepest:
        raise MalformedThrift(f"structs are nested more than {_DEEPEST} deep at {at}")
    struct: Struct = {}
    number = 0
    while (head := data[at]) != _STOP:
        at += 1
        kind, delta = head & 15, head >> 4
        if delta:
            number += delta
        else:
            number, at = read_int(data, at)
        value, at = _read_value(data, at, kind, deepest)
        struct[number] = Field(kind, value)
    return struct, at + 1


def _skip_struct(data: bytes | memoryview, at: int, deepest: int) -> int:
    if not deepest:
        raise MalformedThrift(f"structs are nested more than {_DEEPEST} deep at {at}")
    while head := data[at]:
        at += 1
        kind = head & 15
        if head < 16:
            _, at = _read_varint(data, at)
        if I16 <= kind <= I64:
            while data[at] > 127:
                at += 1
            at += 1
        elif kind == STRUCT:
            at = _skip_struct(data, at, deepest - 1)
        elif kind == BINARY:
            size, at = _read_varint(data, at)
            at += size
        else:
            _, at = _read_value(data, at, kind, deepest)
    return at + 1


def _read_value(data: bytes | memoryview, at: int, kind: int, deepest: int) -> tuple[Any, int]:
    if kind in (I16, I32, I64):
        return read_int(data, at)
    if kind in (TRUE, FALSE):
        return kind == TRUE, at
    if kind == BINARY:
        size, at = _read_varint(data, at)
        return _slice(data, at, size), at + size
    if kind in (LIST, SET):
        return _read_elements(data, at, deepest)
    if kind == STRUCT:
        return _read_struct(data, at, deepest - 1)
    if kind == DOUBLE:
        return _slice(data, at, 8), at + 8
    if kind == BYTE:
        return data[at], at + 1
    raise MalformedThrift(f"a field of type {kind} at {at}; wanted one that Parquet's metadata has")


def _read_elements(data: bytes | memoryview, at: int, deepest: int) -> tuple[Elements, int]:
    kind, size = data[at] & 15, data[at] >> 4
    at += 1
    if size == _LONG_LIST:
        size, at = _read_varint(data, at)
    if size > len(data) - at:  # each value has at least a byte
        raise MalformedThrift(f"a list of {size} at {at}, with {len(data) - at} bytes left")
    values = []
    for _ in range(size):
        if kind in (TRUE, FALSE):  # in a list a boolean is a byte
            value, at = data[at] == TRUE, at + 1
        else:
            value, at = _read_value(data, at, kind, deepest)
        values.append(value)
    return Elements(kind, values), at


def _read_varint(data: bytes | memoryview, at: int) -> tuple[int, int]:
    byte = data[at]
    number, shift = byte & 127, 7
    while byte > 127:
        at += 1
        byte = data[at]
        number |= (byte & 127) << shift
        shift += 7
        if shift > 70:
            raise MalformedThrift(f"a number of more than 64 bits at {at}")
    return number, at + 1


def _slice(data: bytes | memoryview, at: int, size: int) -> bytes:
    if at + size > len(data):
        raise MalformedThrift(f"{size} bytes at {at} go beyond the end, at {len(data)}")
    return bytes(data[at : at + size])


def _write_struct(out: bytearray, struct: Struct) -> None:
    last = 0
    for number, (kind, value) in sorted(struct.items()):
        if kind in (TRUE, FALSE):
            kind = TRUE if value else FALSE
        if 0 < number - last <= 15:
            out.append((number - last) << 4 | kind)
        else:
            out.append(kind)
            write_int(out, number)
        last = number
        if kind not in (TRUE, FALSE):
            _write_value(out, kind, value)
    out.append(_STOP)


def _write_value(out: bytearray, kind: int, value: Any) -> None:
    if kind in (I16, I32, I64):
        write_int(out, value)
    elif kind == BINARY:
        _write_varint(out, len(value))
        out += value
    elif kind in (LIST, SET):
        _write_elements(out, value)
    elif kind == STRUCT:
        _write_struct(out, value)
    elif kind == DOUBLE:
        out += value
    else:
        assert kind == BYTE, f"no type of a value: {kind}"
        out.append(value)


def _write_elements(out: bytearray, elements: Elements) -> None:
    kind, values = elements
    if len(values) < _LONG_LIST:
        out.append(len(values) << 4 | kind)
    else:
        out.append(_LONG_LIST << 4 | kind)
        _write_varint(out, len(values))
    for value in values:
        if kind in (TRUE, FALSE):
            out.append(TRUE if value else FALSE)
        else:
            _write_value(out, kind, value)


def _write_varint(out: bytearray, number: int) -> None:
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
