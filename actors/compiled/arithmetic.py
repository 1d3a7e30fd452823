"""Python's arithmetic on 64-bit integers and floats: what would leave them raises, where Numba's own would be wrong.

`OPERATORS` and `FUNCTIONS` map operators, and functions of `builtins` and `math`, to what takes their place in a
compiled function. For what is not a number, such as a tuple, each does what Numba's own does.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numba
from numba.core import types
from numba.core.typing import signature
from numba.extending import intrinsic

from .comparison import SIGNS, comparison
from .floats import (
    TO_INTEGER,
    ceiled,
    check_domain,
    divide,
    float_absolute,
    float_division,
    float_negative,
    float_power,
    floored,
    rounded,
    truncated,
)
from .hypotenuse import compiled_hypotenuse
from .integers import (
    absolute,
    add,
    floor_divide,
    inverted,
    modulo,
    multiply,
    negative,
    same,
    shift_left,
    shift_right,
    subtract,
)
from .numba_calls import FLOAT, INT, Codegen, called, number_of, own
from .unwrapping import identity


def _exact(function: Any, on_integers: Codegen, on_floats: Codegen | None = None, *, gives: Any = INT) -> Any:
    """What replaces an operator or a function of one or two numbers. `on_floats` None: Numba's own is as Python's.
    `gives`: the type that integers give.
    """

    def resolve(typingctx: Any, *kinds: Any) -> Any:
        numbers = [number_of(kind) for kind in kinds]
        if None in numbers:
            return own(typingctx, function, kinds)
        if FLOAT not in numbers:
            return signature(gives, *numbers), on_integers
        if on_floats is None:
            return own(typingctx, function, (FLOAT,) * len(kinds))
        returned = INT if on_floats in TO_INTEGER else FLOAT
        return signature(returned, *(FLOAT,) * len(kinds)), on_floats

    return _intrinsic_of(function, resolve)


def _intrinsic_of(function: Any, resolve: Callable[..., Any]) -> Any:
    if function in _OF_ONE:

        @intrinsic
        def exact_of_one(typingctx: Any, number: Any) -> Any:
            return resolve(typingctx, number)

        return exact_of_one

    @intrinsic
    def exact_of_two(typingctx: Any, left: Any, right: Any) -> Any:
        return resolve(typingctx, left, right)

    return exact_of_two


def _of_math(function: Any) -> Any:
    """A function of `math` that gives a float."""

    def resolve(typingctx: Any, *kinds: Any) -> Any:
        if None in map(number_of, kinds):
            return own(typingctx, function, kinds)
        sig, numbas = own(typingctx, function, (FLOAT,) * len(kinds))

        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            result = numbas(context, builder, sig, args)
            domain = ValueError, "math domain error"
            infinite = (OverflowError, "math range error") if function in _MAY_OVERFLOW else domain
            check_domain(context, builder, result, args, domain, infinite)
            return result

        return sig, codegen

    return _intrinsic_of(function, resolve)


@intrinsic
def exact_power(typingctx: Any, base: Any, exponent: Any) -> Any:
    kinds = number_of(base), number_of(exponent)
    if None in kinds:
        return own(typingctx, operator.pow, (base, exponent))
    if FLOAT in kinds:
        return FLOAT(FLOAT, FLOAT), float_power
    return called(typingctx, _POWER, (INT, INT))


@intrinsic
def exact_hypot(typingctx: Any, left: Any, right: Any) -> Any:
    if None in map(number_of, (left, right)):
        return own(typingctx, math.hypot, (left, right))
    return called(typingctx, types.Dispatcher(compiled_hypotenuse), (FLOAT, FLOAT))


_OF_MATH_ONE = frozenset(
    {
        math.sqrt, math.exp, math.expm1, math.log, math.log1p, math.log2, math.log10, math.sin, math.cos, math.tan,
        math.asin, math.acos, math.atan, math.sinh, math.cosh, math.tanh, math.asinh, math.acosh, math.atanh,
    }
)  # fmt: skip
_MAY_OVERFLOW = frozenset({math.exp, math.expm1, math.sinh, math.cosh})
_OF_ONE = _OF_MATH_ONE | {
    abs, int, round, math.floor, math.ceil, math.trunc, operator.neg, operator.pos, operator.invert,
}  # fmt: skip
_OF_MATH_TWO = frozenset({math.atan2})

OPERATORS: dict[Any, Any] = {operator.pow: exact_power, operator.ipow: exact_power}
OPERATORS |= {function: comparison(function) for function in SIGNS}
OPERATORS |= {function: identity(function) for function in (operator.is_, operator.is_not)}
for _name, _on_integers, _on_floats in (
    ("add", add, None),
    ("sub", subtract, None),
    ("mul", multiply, None),
    ("floordiv", floor_divide, float_division(operator.floordiv)),
    ("mod", modulo, float_division(operator.mod)),
    ("lshift", shift_left, None),
    ("rshift", shift_right, None),
):
    for _function in (getattr(operator, _name), getattr(operator, f"i{_name}")):
        OPERATORS[_function] = _exact(_function, _on_integers, _on_floats)
for _function in (operator.truediv, operator.itruediv):
    OPERATORS[_function] = _exact(_function, divide, divide, gives=FLOAT)
OPERATORS[operator.neg] = _exact(operator.neg, negative, float_negative)
OPERATORS[operator.pos] = _exact(operator.pos, same, same)
OPERATORS[operator.invert] = _exact(operator.invert, inverted)
"""By Python operator, in place or not."""

_exact_product = OPERATORS[operator.mul]


@numba.njit(error_model="python", forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def power(base: int, exponent: int) -> int:
    """`base ** exponent` of integers, with exact products; only compiled functions call it."""
    if exponent < 0:
        raise ValueError("an integer to a negative power is a float in Python: write float(base) ** exponent")
    result = 1
    while True:
        if exponent & 1:
            result = _exact_product(result, base)
        exponent >>= 1
        if exponent == 0:
            return result
        base = _exact_product(base, base)


_POWER = types.Dispatcher(power)

FUNCTIONS: dict[Any, Any] = {function: _of_math(function) for function in _OF_MATH_ONE | _OF_MATH_TWO}
FUNCTIONS |= {
    math.hypot: exact_hypot,
    abs: _exact(abs, absolute, float_absolute),
    int: _exact(int, same, truncated),
    round: _exact(round, same, rounded),
    math.floor: _exact(math.floor, same, floored),
    math.ceil: _exact(math.ceil, same, ceiled),
    math.trunc: _exact(math.trunc, same, truncated),
}
"""By function of `builtins` and `math`."""
