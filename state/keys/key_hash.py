"""java_hash: the stable hash of a key, one key at a time; `column_hash` has the same for whole Arrow columns.

Keys that are equal to Python must hash alike, or one key would live in two key groups: `1`, `1.0`, `True`, `Decimal(1)`
and `np.int64(1)` are one key. So a number's hash goes by its value and not by its type:

- equal to an integer of 32 bits: Java's `Integer.hashCode`; of 64 bits: `Long.hashCode`;
- else equal to a float: `Double.hashCode`;
- else (a long integer, most decimals): Python's numeric hash, which is one for all types and never salted, folded.

So `True` hashes as 1, and not as Java's Boolean. Texts hash as `String` does, bytes as `Arrays.hashCode(byte[])`,
tuples as `List`, a UUID as `UUID`. Dates hash as their day since 1970, and times as microseconds; aware ones in UTC.
A member of an enum that is no int or text hashes as its name; a dataclass, an attrs instance or a Pydantic model as the
list of the fields by which it is compared.

Values without such a hash are refused, never guessed: mutable ones, those compared by identity or by an `__eq__` of the
user's own, and numbers that a key's way through the wire would change (complex numbers, floats of more than 64 bits,
signalling NaNs, NumPy's times).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from itertools import chain
from math import isnan
from struct import Struct
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
import numpy.typing as npt

from ...messages import one_of_kind, shape_of, shown
from ..errors import StateError

_WORD = 0xFFFFFFFF
_DOUBLE, _LONG = Struct(">d"), Struct(">q")
_EPOCH = datetime(1970, 1, 1)
_EPOCH_UTC = _EPOCH.replace(tzinfo=UTC)
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_MICROSECOND = timedelta(microseconds=1)
_NAN = float("nan")


class InvalidKey(StateError, TypeError):
    """A value that cannot be a key: None, or of a type without a stable hash."""


NEEDS_A_KEY = (
    "every record needs a key: leave out those that have none before key_by, as with "
    ".filter(lambda record: record[...] is not None), or give them a key of their own"
)
"""The advice about records whose key is None."""


def same_nan(key: Any) -> Any:
    """The key with one and the same NaN for any, as dicts find it by identity alone: all NaNs are one key."""
    if type(key) is float:
        return key if key == key else _NAN
    if type(key) is tuple:
        return tuple(map(same_nan, key))
    return key


def with_same_nans(keys: list[Any]) -> list[Any]:
    """`same_nan` of each; the very same list where there can be no NaN."""
    kinds = set(map(type, keys))
    if tuple in kinds:
        within = set(map(type, chain.from_iterable(key for key in keys if type(key) is tuple)))
        kinds |= {float} if within & {float, tuple} else set()
    return list(map(same_nan, keys)) if float in kinds else keys


def java_hash(key: Any) -> int:
    """The key's hash as a signed integer of 32 bits. Raises InvalidKey for None and for unsupported types."""
    if key is None:
        raise InvalidKey(f"None is not a key: {NEEDS_A_KEY}")
    try:
        return _hash(key)
    except RecursionError:
        raise _refused(key, ", as it is nested too deep") from None


def _hash(key: Any) -> int:
    by_type = _BY_TYPE.get(type(key))
    if by_type is not None:
        return by_type(key)
    for base, by_base in _BY_TYPE.items():
        if isinstance(key, base):
            return by_base(key)
    if isinstance(key, np.generic):
        item = key.item() if key.dtype.kind in "biuf" else key
        if isinstance(item, np.generic):
            raise _refused(key, advice="make it a Python value first, as with item() or float()")
        return _hash(item)
    if isinstance(key, Enum):
        return _member_hash(key)
    return _record_hash(key)


def _member_hash(key: Enum) -> int:
    if key.name not in type(key).__members__:
        raise _refused(key, ", as flags put together have no name")
    if type(key).__eq__ is not object.__eq__:
        raise _refused(key, ", as its class has an __eq__ of its own")
    return _str_hash(key.name)


_WANTED = (
    "wanted an int, str, bool, float, bytes, Decimal, Fraction, date, datetime, time, timedelta, UUID, a member of an "
    "enum, or a tuple, frozenset, frozen dataclass, attrs class or Pydantic model of these"
)


def _refused(key: Any, why: str = "", advice: str = _WANTED) -> InvalidKey:
    return InvalidKey(f"{one_of_kind(type(key))} cannot be a key{why}: {advice}; found {shown(key)}")


def _record_hash(key: Any) -> int:
    kind: Any = type(key)
    compared = _compared(kind)
    if isinstance(compared, _Refusal):
        raise _refused(key, *compared)
    items = (getattr(key, name) if of is None else of(getattr(key, name)) for name, of in compared)
    return _sequence_hash(items)


class _Refusal(NamedTuple):
    why: str
    advice: str = _WANTED


_INSTEAD = {list: "a tuple", set: "a frozenset", bytearray: "bytes", dict: "a tuple of its items, in one order"}


@lru_cache(maxsize=1024)
def _compared(kind: Any) -> Any:
    """The fields by which records of this kind are compared; why they are no keys, if they are none."""
    shape = shape_of(kind)
    if shape is None:
        if instead := _INSTEAD.get(kind):
            return _Refusal(", as it can be changed", f"make it {instead}")
        return _Refusal(", as it can be changed and is unhashable" if kind.__hash__ is None else "")
    if kind.__hash__ is None:
        return _Refusal(", as it can be changed and is unhashable", "declare the class frozen")
    if not shape.is_frozen:
        return _Refusal(
            ", as it can be changed, and state would not be found under it then", "declare the class frozen"
        )
    if kind.__eq__ is object.__eq__:
        return _Refusal(", as it is equal to nothing but itself", "let the class compare its fields")
    code = getattr(kind.__eq__, "__code__", None)
    is_generated = code is not None and code.co_filename.startswith(("<string>", "<attrs generated"))
    if not is_generated and kind.__eq__.__module__.partition(".")[0] != "pydantic":
        return _Refusal(
            ", as its class has an __eq__ of its own, which nobody can hash by", "make a key of what that compares"
        )
    return shape.compared


def signed(word: int) -> int:
    """The low 32 bits as Java's int."""
    word &= _WORD
    return word - 0x1_0000_0000 if word & 0x8000_0000 else word


def _fold(value: int) -> int:
    """Java's Long.hashCode of the low 64 bits."""
    return signed(value ^ (value >> 32))


def _int_hash(value: int) -> int:
    if -(2**31) <= value < 2**31:
        return int(value)
    return _fold(value) if -(2**63) <= value < 2**63 else _number_hash(value)


def _float_hash(value: float) -> int:
    if value.is_integer() and -(2.0**63) <= value < 2.0**63:
        return _int_hash(int(value))
    return _double_hash(value)


def _double_hash(value: float) -> int:
    """Java's Double.hashCode; as there, all NaNs are one."""
    bits: int = _LONG.unpack(_DOUBLE.pack(float("nan") if isnan(value) else value))[0]
    return _fold(bits)


def _number_hash(value: int | Decimal | Fraction) -> int:
    """For a number that is neither a float nor, as far as is known, an integer of 64 bits."""
    if type(value) is not int and isinstance(value, Decimal) and value.is_snan():
        raise _refused(value, ", as a signalling NaN has no hash")
    try:
        as_float = float(value)
        if as_float == value or isnan(as_float):
            return _float_hash(as_float)
        if -(2**63) <= value < 2**63 and value == int(value):
            return _int_hash(int(value))
    except OverflowError:  # too large for a float
        pass
    return _fold(hash(value))


_LONG_FROM = 1024
"""From this length on NumPy is quicker than a loop."""
_POWERS = np.cumprod([1, *[31] * 4095], dtype=np.uint32)[::-1]
"""31 ** 4095 to 31 ** 0, of 32 bits."""


def _str_hash(value: str) -> int:
    if len(value) >= _LONG_FROM:  # not remembered, or some thousands of keys of megabytes would fill the memory
        return signed(_polynomial(0, np.frombuffer(value.encode("utf-16-le", "surrogatepass"), "<u2")))
    return _short_hash(value)


@lru_cache(maxsize=65536)
def _short_hash(value: str) -> int:
    units = value.encode() if value.isascii() else _utf16(value)
    found = 0
    for unit in units:
        found = (31 * found + unit) & _WORD
    return signed(found)


def _utf16(value: str) -> list[int]:
    return np.frombuffer(value.encode("utf-16-le", "surrogatepass"), "<u2").tolist()  # type: ignore[no-any-return]


def _polynomial(found: int, units: npt.NDArray[Any]) -> int:
    """What the loop over all units finds, in blocks: a key of megabytes would hold its task up for seconds."""
    for start in range(0, len(units), len(_POWERS)):
        block = units[start : start + len(_POWERS)].astype(np.uint32)
        added = np.sum(block * _POWERS[-len(block) :], dtype=np.uint32)
        found = (found * pow(31, len(block), _WORD + 1) + int(added)) & _WORD
    return found


def _bytes_hash(value: bytes) -> int:
    if len(value) >= _LONG_FROM:
        return signed(_polynomial(1, np.frombuffer(value, np.int8)))
    found = 1
    for unit in memoryview(value).cast("b"):
        found = (31 * found + unit) & _WORD
    return signed(found)


def _sequence_hash(items: Iterable[Any]) -> int:
    """Java's List.hashCode: None inside counts as 0, as null does there."""
    found = 1
    for item in items:
        found = (31 * found + (0 if item is None else _hash(item))) & _WORD
    return signed(found)


def _set_hash(items: Iterable[Any]) -> int:
    return signed(sum(0 if item is None else _hash(item) for item in items))


def _datetime_hash(value: datetime) -> int:
    return _fold((value - (_EPOCH if value.utcoffset() is None else _EPOCH_UTC)) // _MICROSECOND)


def _time_hash(value: time) -> int:
    offset = value.utcoffset() or timedelta()
    since_midnight = timedelta(
        hours=value.hour, minutes=value.minute, seconds=value.second, microseconds=value.microsecond
    )
    return _fold((since_midnight - offset) // _MICROSECOND)


def _uuid_hash(value: UUID) -> int:
    return _fold((value.int >> 64) ^ value.int)


_BY_TYPE: dict[type, Callable[[Any], int]] = {
    str: _str_hash,
    int: _int_hash,
    tuple: _sequence_hash,
    float: _float_hash,
    bytes: _bytes_hash,
    datetime: _datetime_hash,
    date: lambda value: value.toordinal() - _EPOCH_DAY,
    time: _time_hash,
    timedelta: lambda value: _fold(value // _MICROSECOND),
    Decimal: _number_hash,
    Fraction: _number_hash,
    UUID: _uuid_hash,
    frozenset: _set_hash,
}
"""By type, and for subclasses by the first base that fits: a bool is an int, and a datetime is no date here."""

KEY_TYPES = frozenset((*_BY_TYPE, bool))
"""Types whose values are keys, but for those that hold what is none. Of others `java_hash` has to say."""
