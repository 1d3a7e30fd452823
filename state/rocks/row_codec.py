"""RowCodec: a value of one state as the bytes of its row, and back.

A row is a list as plain data: `[value]`, `[value, times]` of state that expires, `[value, times or None, key]` where
the key is not its canonical form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from ...messages import MalformedMessage, unpack_plain
from ..backends.private_copy import IMMUTABLE
from ..backends.timed_values import Shape
from ..kinds.record_serializer import Convert
from .row_keys import pack, packed_each

_NO_KEY: Final = object()


class Parts(NamedTuple):
    """What a row holds, as plain data."""

    value: Any
    times: Any
    key: Any = _NO_KEY

    def key_or(self, of_row: Any) -> Any:
        """The key; `of_row` is what stands for it in the row's own bytes."""
        return of_row if self.key is _NO_KEY else self.key


def parts_of(raw: bytes) -> Parts:
    """Raises MalformedMessage."""
    match unpack_plain(raw):
        case [value]:
            return Parts(value, None)
        case [value, times]:
            return Parts(value, times)
        case [value, times, key]:
            return Parts(value, times, key)
        case other:
            raise MalformedMessage(f"wanted a value with its times and key, found {other!r:.60}")


def packed_parts(value: Any, times: Any = None, key: Any = _NO_KEY) -> bytes:
    """The row of plain data. Raises UnsupportedValue."""
    if key is not _NO_KEY:
        return b"\x93" + pack(value) + pack(times) + pack(key)
    return b"\x91" + pack(value) if times is None else b"\x92" + pack(value) + pack(times)


@dataclass(frozen=True, slots=True)
class RowCodec:
    """Of one state: how its values become plain data and back, and how they hold times, if they do."""

    encode: Convert
    decode: Convert
    shape: Shape | None = None

    def packed(self, held: Any, key: Any = _NO_KEY) -> bytes:
        """What accessors hold, as a row. Raises UnsupportedValue, and what a serializer of the user's raises."""
        times = None
        if self.shape is not None:
            held, times = held[0], self.shape.stored(held)
        return packed_parts(held if self.encode is None else self.encode(held), times, key)

    def packed_each(self, held: Sequence[Any]) -> list[bytes]:
        """The same for many whose keys are their canonical form."""
        if self.shape is not None:
            return list(map(self.packed, held))
        encode = self.encode
        return [b"\x91" + raw for raw in packed_each(held if encode is None else list(map(encode, held)))]

    def held(self, raw: bytes) -> Any:
        """The opposite. Raises MalformedMessage."""
        return self.held_of(parts_of(raw))

    def held_of(self, parts: Parts) -> Any:
        """The same of a row's parts."""
        value = parts.value if self.decode is None else self.decode(parts.value)
        return value if self.shape is None else self.shape.with_stored(value, parts.times)


def may_change(held: Any) -> bool:
    """Whether a value can be changed in place."""
    kind = type(held)
    if kind in IMMUTABLE:
        return False
    return kind is not tuple or not all(type(item) in IMMUTABLE for item in held)
