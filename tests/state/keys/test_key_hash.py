"""What may be a key: each value has either a hash that it shares with what it is equal to, or is an InvalidKey."""

from __future__ import annotations

import tracemalloc
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum, Flag, IntEnum, StrEnum
from fractions import Fraction
from typing import Any

import attrs
import numpy as np
import pydantic
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from understudy.messages import pack_plain, unpack_plain
from understudy.state.keys.column_hash import hashes_of
from understudy.state.keys.key_hash import _LONG_FROM, KEY_TYPES, InvalidKey, java_hash


class Side(Enum):
    BUY = 1
    SELL = 2
    PURCHASE = 1


class Level(IntEnum):
    LOW = 1


class Colour(StrEnum):
    RED = "red"


class Rights(Flag):
    READ = 1
    WRITE = 2


class Odd(Enum):
    ONE = 1

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True)
class Route:
    origin: Any
    note: str = field(default="", compare=False)


@dataclass
class Changeable:
    value: int


@dataclass(unsafe_hash=True)
class ChangeableWithHash:
    value: int


@dataclass(frozen=True, eq=False)
class ByIdentity:
    value: int


@dataclass(frozen=True)
class Caseless:
    name: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Caseless) and self.name.lower() == other.name.lower()

    def __hash__(self) -> int:
        return hash(self.name.lower())


@attrs.frozen
class AttrsRoute:
    origin: Any
    name: str = attrs.field(eq=str.lower, default="")
    note: str = attrs.field(eq=False, default="")


@attrs.define
class AttrsChangeable:
    value: int


@attrs.define(unsafe_hash=True)
class AttrsChangeableWithHash:
    value: int


class Model(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(frozen=True)
    origin: Any


class ChangeableModel(pydantic.BaseModel):
    value: int


class ChangeableModelWithHash(ChangeableModel):
    def __hash__(self) -> int:
        return hash(self.value)


def deep(depth: int) -> Any:
    made: Any = ()
    for _ in range(depth):
        made = (made,)
    return made


REFUSED: list[Any] = [
    np.longdouble(1),
    np.complex64(1),
    np.complex128(1),
    np.clongdouble(1),
    np.void(b"a"),
    *(np.datetime64(1, unit) for unit in ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns")),
    *(np.timedelta64(1, unit) for unit in ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns")),
    np.datetime64("NaT", "ns"),
    np.timedelta64("NaT"),
    np.array(1),
    np.array([1]),
    complex(1, 0),
    Decimal("sNaN"),
    [1],
    {},
    {1},
    bytearray(b"a"),
    range(3),
    object(),
    int,
    Rights.READ | Rights.WRITE,
    Odd.ONE,
    Changeable(1),
    ChangeableWithHash(1),
    ByIdentity(1),
    Caseless("a"),
    AttrsChangeable(1),
    AttrsChangeableWithHash(1),
    ChangeableModel(value=1),
    ChangeableModelWithHash(value=1),
    Route([1]),
    AttrsRoute({}),
    Model(origin=np.longdouble(1)),
    (1, (2, [3])),
    frozenset({Decimal("NaN"), 1j}),
    deep(5_000),
    None,
]


@pytest.mark.parametrize("key", REFUSED, ids=lambda key: type(key).__name__)
def test_what_is_no_key_is_refused_and_nothing_else_is_raised(key: Any) -> None:
    with pytest.raises(InvalidKey):
        java_hash(key)
    with pytest.raises(InvalidKey):
        hashes_of([key, key])


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (
            Changeable(1),
            r"Changeable cannot be a key, as it can be changed and is unhashable: declare the class frozen",
        ),
        (
            ChangeableWithHash(1),
            "as it can be changed, and state would not be found under it then: declare the class frozen",
        ),
        (ByIdentity(1), "equal to nothing but itself"),
        (Caseless("a"), "has an __eq__ of its own"),
        (np.longdouble(1), "a numpy.longdouble cannot be a key: make it a Python value"),
        (Decimal("sNaN"), "a decimal.Decimal cannot be a key, as a signalling NaN has no hash: wanted an int, str"),
        ([1], "a list cannot be a key, as it can be changed: make it a tuple; found"),
        (deep(5_000), "nested too deep"),
        ((10**5000, [1]), "a list cannot be a key"),
    ],
)
def test_an_error_says_why(key: Any, text: str) -> None:
    with pytest.raises(InvalidKey, match=text):
        java_hash(key)


NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False),
    st.floats(width=16, allow_nan=False),
    st.decimals(allow_nan=False),
    st.fractions(),
    st.booleans(),
    st.sampled_from([Level.LOW, -0.0, Decimal("-0"), Decimal("Infinity"), float("-inf"), 10**400, Decimal("1E+400")]),
)
CASTS: list[Callable[[Any], Any]] = [
    int,
    float,
    bool,
    Decimal,
    Fraction,
    np.bool_,
    *(np.dtype(kind).type for kind in "bBhHiIlLqQefd"),
]


@given(NUMBERS)
@example(2**63)
@example(2**53 + 1)
@example(2**62 + 1)
@example(Decimal(2**62 + 1))
@example(Fraction(1, 3))
@example(65504.0)
def test_numbers_that_are_equal_and_hash_alike_in_python_are_one_key(number: Any) -> None:
    for cast in CASTS:
        try:
            with np.errstate(all="ignore"):
                other = cast(number)
                alike = bool(other == number) and hash(other) == hash(number)
        except (OverflowError, ValueError, TypeError):
            continue
        if alike:
            assert java_hash(other) == java_hash(number)
            assert hashes_of([other]).tolist() == [java_hash(number)]


KEYS = st.recursive(
    NUMBERS | st.text() | st.binary() | st.sampled_from([Side.BUY, Side.SELL, Colour.RED, Rights.READ]),
    lambda inner: st.one_of(
        st.tuples(inner, inner),
        st.frozensets(inner, max_size=3),
        st.builds(Route, inner, st.text()),
        st.builds(AttrsRoute, inner, st.text(), st.text()),
        st.builds(lambda value: Model(origin=value), inner),
    ),
    max_leaves=4,
)


@given(KEYS)
def test_a_key_is_the_same_key_after_its_way_through_the_wire(key: Any) -> None:
    back = unpack_plain(pack_plain(key))
    assert back == key
    assert java_hash(back) == java_hash(key)
    assert hashes_of([key, key]).tolist() == [java_hash(key)] * 2


def test_only_what_is_compared_counts() -> None:
    assert java_hash(Route("A", "x")) == java_hash(Route("A", "y"))
    assert java_hash(AttrsRoute("A", "x", "1")) == java_hash(AttrsRoute("A", "X", "2"))
    assert java_hash(AttrsRoute("A", "x")) != java_hash(AttrsRoute("A", "y"))


def test_members_of_enums_are_what_they_are_equal_to() -> None:
    assert java_hash(Level.LOW) == java_hash(1)
    assert java_hash(Colour.RED) == java_hash("red")
    assert java_hash(Side.BUY) == java_hash(Side.PURCHASE) != java_hash(Side.SELL)


def test_the_types_known_to_be_keys_are() -> None:
    assert {int, str, bool, tuple, Decimal} <= KEY_TYPES
    assert not KEY_TYPES & {list, dict, set, complex, type(None)}


@pytest.mark.parametrize("length", [_LONG_FROM - 1, _LONG_FROM, 4096, 4097, 10_000])
@pytest.mark.parametrize("unit", ["a", "ü", "\U0001f600", "\ud800"])
def test_long_keys_have_the_hash_that_java_gives(unit: str, length: int) -> None:
    """By Java's own rule, one unit after the other."""
    text = "".join(chr(97 + n % 26) for n in range(length)) + unit
    data = bytes((31 * n + length) % 256 for n in range(length))
    of_text, of_data = 0, 1
    for code in memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H"):
        of_text = (31 * of_text + code) % 2**32
    for byte in data:
        of_data = (31 * of_data + (byte - 256 if byte > 127 else byte)) % 2**32
    assert java_hash(text) % 2**32 == of_text
    assert java_hash(data) % 2**32 == of_data


class Text(str):
    """One that can be referred to weakly."""


def test_a_long_key_is_not_kept_for_its_hash() -> None:
    key = Text("x" * _LONG_FROM)
    assert java_hash(key) == java_hash(str(key))
    seen = weakref.ref(key)
    del key
    assert seen() is None


def test_many_large_texts_need_no_multiple_of_their_memory_and_have_the_hash_that_java_gives() -> None:
    texts = [chr(97 + number % 26) * 100_000 + ("é" if number % 7 == 0 else "") for number in range(200)]
    tracemalloc.start()
    try:
        found = hashes_of(texts)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found.tolist() == [java_hash(text) for text in texts]
    assert most < sum(map(len, texts))
