"""Arithmetic of a compiled function is Python's, to the last bit, or it raises OverflowError where 64 bits end."""

from __future__ import annotations

import math
import struct
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st

from understudy import KeyedOperator
from understudy.actors.errors import UserCodeError

from ...examples import examples
from .stage import Stage, interpreted

pytest.importorskip("numba")


class OfIntegers(KeyedOperator):
    compiled = True

    def process(self, record: Any, out: Any) -> None:
        op, a, b = record.op, record.a, record.b
        if op == 0:
            out.collect(a + b)
        elif op == 1:
            out.collect(a - b)
        elif op == 2:
            out.collect(a * b)
        elif op == 3:
            out.collect(a // b)
        elif op == 4:
            out.collect(a % b)
        elif op == 5:
            out.collect(a ** (b & 127))
        elif op == 6:
            out.collect(a << (b & 127))
        elif op == 7:
            out.collect(a >> b)
        elif op == 8:
            out.collect(-a)
        elif op == 9:
            out.collect(abs(a))
        elif op == 10:
            out.collect(~a & b | a ^ b)
        elif op == 11:
            out.collect(min(a, b, 5))
        elif op == 12:
            out.collect(max(a, b))
        elif op == 13:
            out.collect(+a if a and not b else round(b))
        elif op == 14:
            out.collect((a < b) + (a <= b) * 2 + (a > b) * 4 + (a >= b) * 8 + (a == b) * 16 + (a != b) * 32)
        elif op == 15:
            a += b
            out.collect(a)
        elif op == 16:
            a //= b
            out.collect(a)


class OfFloats(KeyedOperator):
    compiled = True

    def process(self, record: Any, out: Any) -> None:
        op, a, b = record.op, record.a, record.b
        if op == 0:
            out.collect(a + b)
        elif op == 1:
            out.collect(a - b)
        elif op == 2:
            out.collect(a * b)
        elif op == 3:
            out.collect(a // b)
        elif op == 4:
            out.collect(a % b)
        elif op == 5:
            out.collect(abs(a) ** b)
        elif op == 6:
            out.collect(a / b)
        elif op == 7:
            out.collect(a**2)
        elif op == 8:
            out.collect(-abs(a))
        elif op == 9:
            out.collect(min(a, b))
        elif op == 10:
            out.collect(max(a, b))
        elif op == 11:
            out.collect(math.sqrt(a))
        elif op == 12:
            out.collect(math.exp(a))
        elif op == 13:
            out.collect(math.log(a))
        elif op == 14:
            out.collect(math.atan2(a, b))
        elif op == 15:
            out.collect(math.hypot(a, b))
        elif op == 16:
            out.collect(float(int(a)))
        elif op == 17:
            out.collect(float(round(a)))
        elif op == 18:
            out.collect(float(math.floor(a)))
        elif op == 19:
            out.collect(1.0 * ((a < b) + (a <= b) * 2 + (a > b) * 4 + (a >= b) * 8 + (a == b) * 16 + (a != b) * 32))
        elif op == 20:
            out.collect(math.copysign(a, b) if math.isnan(a) or math.isinf(b) else math.log10(a))
        elif op == 21:
            out.collect(a if a and not b else math.tanh(b))


class OfBoth(KeyedOperator):
    compiled = True

    def process(self, record: Any, out: Any) -> None:
        op, a, b = record.op, record.a, record.b
        if op == 0:
            out.collect(a + b)
        elif op == 1:
            out.collect(b - a)
        elif op == 2:
            out.collect(a * b)
        elif op == 3:
            out.collect(a // b)
        elif op == 4:
            out.collect(b % a)
        elif op == 5:
            out.collect(a / b)
        elif op == 6:
            out.collect(1.0 * ((a < b) + (a <= b) * 2 + (b < a) * 4 + (b <= a) * 8 + (a == b) * 16 + (b != a) * 32))
        elif op == 7:
            out.collect((a >> 11) / 3)


class OfBools(KeyedOperator):
    compiled = True

    def process(self, record: Any, out: Any) -> None:
        op, a, b = record.op, record.a, record.b
        if op == 0:
            out.collect(a + b)
        elif op == 1:
            out.collect(a - b)
        elif op == 2:
            out.collect(a * b)
        elif op == 3:
            out.collect(a // b)
        elif op == 4:
            out.collect(-a + ~b)
        elif op == 5:
            out.collect((1 if a & b else 0) + (2 if a | b else 0) + (4 if a ^ b else 0))
        elif op == 6:
            out.collect((a << b) + abs(a) + int(b))
        elif op == 7:
            out.collect(max(a, b) + 0)


LARGE = (-(2**63), 2**63 - 1, 2**62, -(2**31), 3037000500, 2**53 + 1)
INTEGERS = st.sampled_from(LARGE) | st.integers(-70, 70) | st.integers(-(2**63), 2**63 - 1)
FLOATS = (
    st.floats()
    | st.sampled_from([0.5, 1.5, 2.5, -2.5, 2.0**63, -(2.0**63), 709.9, 1e-9])
    | st.integers(-9, 9).map(float)
)
STAGES: dict[type, tuple[Stage, Stage]] = {}


@pytest.mark.parametrize(
    ("cls", "operations", "left", "right"),
    [
        (OfIntegers, 17, INTEGERS, INTEGERS),
        (OfFloats, 22, FLOATS, FLOATS),
        (OfBoth, 8, INTEGERS, FLOATS),
        (OfBools, 8, st.booleans(), st.booleans()),
    ],
)
@examples(400, phases=(Phase.explicit, Phase.generate))
@given(data=st.data())
def test_results_are_pythons_or_do_not_fit(
    cls: type[KeyedOperator], operations: int, left: Any, right: Any, data: st.DataObject
) -> None:
    operation, a, b = data.draw(st.integers(0, operations - 1)), data.draw(left), data.draw(right)
    if cls not in STAGES:
        STAGES[cls] = Stage(cls()), Stage(interpreted(cls)())
    compiled, wanted = (_result(stage, operation, a, b) for stage in STAGES[cls])
    if compiled == "OverflowError" and _exceeds(wanted):
        return
    assert compiled == wanted


def _result(stage: Stage, operation: int, a: Any, b: Any) -> Any:
    given = pa.record_batch({"key": [0], "op": [operation], "a": [a], "b": [b]})
    try:
        (found,) = stage.records(given)
    except UserCodeError as error:
        return type(error.__cause__).__name__
    if isinstance(found, float):
        return struct.pack("d", found) if found == found else "nan"
    return found


def _exceeds(wanted: Any) -> bool:
    """Whether an integer is too large, or may have been on the way to this float."""
    if isinstance(wanted, bytes):
        return abs(struct.unpack("d", wanted)[0]) >= 2.0**63
    return isinstance(wanted, int) and not -(2**63) <= wanted < 2**63


@pytest.mark.parametrize(
    "sides",
    [
        (-6.0, 7.348396471738056),
        (0.1, 0.7),
        (1.7e308, 1.7e308),
        (5e-324, 5e-324),
        (1e-310, 3e-315),
        (math.nan, math.inf),
        (0.0, -0.0),
    ],
)
def test_a_hypotenuse_has_pythons_last_bit(sides: tuple[float, float]) -> None:
    """That of C's `hypot` differs for the first."""
    compiled, wanted = (_result(stage, 15, *sides) for stage in (Stage(OfFloats()), Stage(interpreted(OfFloats)())))
    assert compiled == wanted


@pytest.mark.parametrize(("base", "exponent"), [(2, -1), (0, -3)])
def test_an_integer_to_a_negative_power_is_refused_where_it_happens(base: int, exponent: int) -> None:
    class Power(KeyedOperator):
        compiled = True

        def process(self, record: Any, out: Any) -> None:
            out.collect(record.a**record.b)

    with pytest.raises(UserCodeError) as raised:
        Stage(Power()).records(pa.record_batch({"key": [0, 0], "a": [2, base], "b": [2, exponent]}))
    assert raised.value.record_position == 1
    assert "float(base) ** exponent" in str(raised.value.__cause__)


def test_sums_that_leave_64_bits_raise_instead_of_wrapping() -> None:
    class Doubled(KeyedOperator):
        compiled = True

        def process(self, record: Any, out: Any) -> None:
            out.collect(record.a + record.a)

    with pytest.raises(UserCodeError) as raised:
        Stage(Doubled()).records(pa.record_batch({"key": [0, 0], "a": [2**62 - 1, 2**62]}))
    assert raised.value.record_position == 1
    assert isinstance(raised.value.__cause__, OverflowError)
