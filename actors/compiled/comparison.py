"""Comparisons: of an integer with a float Python makes no float of the integer."""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from .machine_code import INT64
from .numba_calls import DOUBLE, FLOAT, INT, llvm, number_of, own


def comparison(function: Any) -> Any:
    """Of an integer with a float as Python does it, which does not make a float of the integer. All else as Numba."""

    @intrinsic
    def exact(typingctx: Any, left: Any, right: Any) -> Any:
        numbers = number_of(left), number_of(right)
        if set(numbers) != {INT, FLOAT} or isinstance(left, types.Optional) or isinstance(right, types.Optional):
            return own(typingctx, function, (left, right))

        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            is_swapped = sig.args[0] == FLOAT
            integer, number = reversed(args) if is_swapped else args
            order = _order(builder, integer, number)
            if is_swapped:
                order = builder.neg(order)
            found = builder.icmp_signed(SIGNS[function], order, order.type(0))
            ordered = builder.fcmp_ordered("ord", number, number)
            if function is operator.ne:
                return builder.or_(found, builder.not_(ordered))
            return builder.and_(found, ordered)

        return types.boolean(*numbers), codegen

    return exact


SIGNS = {
    operator.eq: "==",
    operator.ne: "!=",
    operator.lt: "<",
    operator.le: "<=",
    operator.gt: ">",
    operator.ge: ">=",
}


def _order(builder: Any, integer: Any, number: Any) -> Any:
    """-1, 0 or 1: where the integer lies from the number, which is not NaN."""
    few = ir.IntType(8)
    whole = llvm(builder, "trunc", [number])
    above = builder.fcmp_ordered(">=", whole, DOUBLE(2.0**63))
    below = builder.fcmp_ordered("<", whole, DOUBLE(-(2.0**63)))
    outside = builder.or_(builder.or_(above, below), builder.fcmp_unordered("uno", whole, whole))
    truncated = builder.fptosi(builder.select(outside, DOUBLE(0), whole), INT64)
    smaller = builder.icmp_signed("<", integer, truncated)
    greater = builder.icmp_signed(">", integer, truncated)
    rest_above, rest_below = builder.fcmp_ordered(">", number, whole), builder.fcmp_ordered("<", number, whole)
    by_rest = builder.select(rest_above, few(-1), builder.select(rest_below, few(1), few(0)))
    by_whole = builder.select(smaller, few(-1), builder.select(greater, few(1), by_rest))
    return builder.select(above, few(-1), builder.select(below, few(1), by_whole))
