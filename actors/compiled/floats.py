"""Machine code of floats: Python raises where C gives infinity or NaN."""

from __future__ import annotations

import math
from typing import Any

from llvmlite import ir
from numba.core import cgutils

from .machine_code import INT64
from .numba_calls import DOUBLE, FLOAT, INT, TOO_LARGE, Codegen, fail_if, llvm


def divide(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """True division of floats, or of integers that become floats."""
    left, right = (
        builder.sitofp(value, DOUBLE) if kind == INT else value for value, kind in zip(args, sig.args, strict=True)
    )
    fail_if(context, builder, builder.fcmp_ordered("==", right, DOUBLE(0)), ZeroDivisionError, "division by zero")
    return builder.fdiv(left, right)


def float_division(function: Any) -> Codegen:
    """Numba takes a divisor that is no number for zero."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        is_nan = builder.fcmp_unordered("uno", args[1], args[1])
        divisor = builder.select(is_nan, DOUBLE(1), args[1])
        found = context.get_function(function, FLOAT(FLOAT, FLOAT))(builder, [args[0], divisor])
        return builder.select(is_nan, args[1], found)

    return codegen


def float_negative(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.fneg(args[0])


def float_absolute(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return llvm(builder, "fabs", args)


def integer_of(rounding: str) -> Codegen:
    """A float's integer, rounded by this LLVM intrinsic. Raises what Python raises for infinities and NaN."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        number = llvm(builder, rounding, args)
        nan = builder.fcmp_unordered("uno", number, number)
        fail_if(context, builder, nan, ValueError, "cannot convert float NaN to integer")
        large = builder.fcmp_ordered(">=", llvm(builder, "fabs", [number]), DOUBLE(2.0**63))
        least = builder.fcmp_ordered("==", number, DOUBLE(-(2.0**63)))
        fail_if(context, builder, builder.and_(large, builder.not_(least)), OverflowError, TOO_LARGE)
        return builder.fptosi(number, INT64)

    return codegen


truncated, floored, ceiled, rounded = map(integer_of, ("trunc", "floor", "ceil", "roundeven"))
TO_INTEGER = (truncated, floored, ceiled, rounded)


def float_power(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    base, exponent = args
    inverse = builder.and_(builder.fcmp_ordered("==", base, DOUBLE(0)), builder.fcmp_ordered("<", exponent, DOUBLE(0)))
    fail_if(context, builder, inverse, ZeroDivisionError, "0.0 cannot be raised to a negative power")
    kind = ir.FunctionType(DOUBLE, [DOUBLE, DOUBLE])
    of_c = cgutils.get_or_insert_function(builder.module, kind, "pow")
    of_c.attributes.add("nobuiltin")  # else LLVM makes products of powers, whose last digit differs
    power = builder.call(of_c, args)
    text = "a negative number to a fractional power is complex"
    check_domain(context, builder, power, args, (ValueError, text), (OverflowError, "math range error"))
    return power


def check_domain(
    context: Any, builder: Any, result: Any, args: Any, at_nan: tuple[Any, str], at_infinity: tuple[Any, str]
) -> None:
    """Python raises where C gives NaN for numbers, or infinity for finite ones."""
    nan = builder.fcmp_unordered("uno", result, result)
    infinite = builder.fcmp_ordered("==", llvm(builder, "fabs", [result]), DOUBLE(math.inf))
    for arg in args:
        nan = builder.and_(nan, builder.fcmp_ordered("ord", arg, arg))
        infinite = builder.and_(infinite, builder.fcmp_ordered("<", llvm(builder, "fabs", [arg]), DOUBLE(math.inf)))
    fail_if(context, builder, nan, *at_nan)
    fail_if(context, builder, infinite, *at_infinity)
