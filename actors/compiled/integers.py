"""Machine code of integers, which have 64 bits: a result that needs more raises OverflowError."""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba.core import cgutils

from .machine_code import INT64
from .numba_calls import INT, LEAST, TOO_LARGE, ZERO, Codegen, fail_if


def with_overflow(name: str) -> Codegen:
    """An operation on two integers that raises where the result needs more bits."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        pair = ir.LiteralStructType([INT64, ir.IntType(1)])
        called = f"llvm.{name}.with.overflow.i64"
        function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(pair, [INT64, INT64]), called)
        both = builder.call(function, args)
        fail_if(context, builder, builder.extract_value(both, 1), OverflowError, TOO_LARGE)
        return builder.extract_value(both, 0)

    return codegen


add, subtract, multiply = with_overflow("sadd"), with_overflow("ssub"), with_overflow("smul")


def floor_divide(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    left, right = args
    leaves = builder.and_(builder.icmp_signed("==", left, LEAST), builder.icmp_signed("==", right, INT64(-1)))
    fail_if(context, builder, leaves, OverflowError, TOO_LARGE)
    return context.get_function(operator.floordiv, INT(INT, INT))(builder, args)


def modulo(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return context.get_function(operator.mod, INT(INT, INT))(builder, args)


def shift_left(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    left, right = args
    fail_if(context, builder, builder.icmp_signed("<", right, ZERO), ValueError, "negative shift count")
    by = builder.select(builder.icmp_signed(">", right, INT64(63)), INT64(63), right)
    shifted = builder.shl(left, by)
    kept = builder.and_(
        builder.icmp_signed("==", builder.ashr(shifted, by), left), builder.icmp_signed("==", by, right)
    )
    lost = builder.and_(builder.not_(kept), builder.icmp_signed("!=", left, ZERO))
    fail_if(context, builder, lost, OverflowError, TOO_LARGE)
    return shifted


def shift_right(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    left, right = args
    fail_if(context, builder, builder.icmp_signed("<", right, ZERO), ValueError, "negative shift count")
    return builder.ashr(left, builder.select(builder.icmp_signed(">", right, INT64(63)), INT64(63), right))


def negative(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return subtract(context, builder, INT(INT, INT), [ZERO, args[0]])


def same(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return args[0]


def inverted(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.not_(args[0])


def absolute(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    fail_if(context, builder, builder.icmp_signed("==", args[0], LEAST), OverflowError, TOO_LARGE)
    return builder.select(builder.icmp_signed("<", args[0], ZERO), builder.neg(args[0]), args[0])
