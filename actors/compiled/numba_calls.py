"""The basis of arithmetic: the kinds of numbers, and what Numba itself does with values that are no numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.core.typing import signature

from .machine_code import INT64, raise_error
from .refusal import only_passed_on
from .types import Opaque

TOO_LARGE = "an integer does not fit into 64 bits, which is what a compiled function has"
INT, FLOAT, DOUBLE = types.int64, types.float64, ir.DoubleType()
ZERO = INT64(0)
LEAST = INT64(-(1 << 63))
Codegen = Callable[..., Any]


def number_of(kind: Any) -> Any:
    """int64 or float64, for a number, a bool, or one that may be None; None for anything else."""
    if isinstance(kind, types.Optional):
        kind = kind.type
    if isinstance(kind, types.Integer | types.Boolean):
        return INT
    return FLOAT if isinstance(kind, types.Float) else None


def own(typingctx: Any, function: Any, kinds: tuple[Any, ...]) -> tuple[Any, Any]:
    """What Numba itself does: the signature, and how it becomes machine code."""
    for kind in kinds:
        if isinstance(kind, Opaque):
            raise TypingError(only_passed_on(kind.source))
    return called(typingctx, typingctx.resolve_value_type(function), kinds)


def called(typingctx: Any, known: Any, kinds: tuple[Any, ...]) -> tuple[Any, Codegen]:
    sig = known.get_call_type(typingctx, kinds, {})
    if sig is None:
        raise TypingError(f"no {known} of {', '.join(map(str, kinds))}")

    def codegen(context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        machine = context.get_function(known, sig)
        context.add_linking_libs(getattr(machine, "libs", ()))
        return machine(builder, args)

    return signature(sig.return_type, *sig.args), codegen


def fail_if(context: Any, builder: Any, condition: Any, error: type[Exception], text: str) -> None:
    with cgutils.if_unlikely(builder, condition):
        raise_error(context, builder, error, text)


def llvm(builder: Any, name: str, args: Any) -> Any:
    kind = ir.FunctionType(DOUBLE, [DOUBLE] * len(args))
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}.f64"), args)
