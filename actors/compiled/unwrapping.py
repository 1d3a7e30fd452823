"""Values that may be None, and tuples: unpacking, items, and `is`."""

from __future__ import annotations

import operator
from typing import Any

from numba.core import cgutils, types
from numba.core.imputils import impl_ret_borrowed
from numba.extending import intrinsic

from .numba_calls import own
from .record_access import load_columns
from .types import Opaque, RecordType, column_type


@intrinsic
def unpacked(typingctx: Any, value: Any) -> Any:
    """What is unpacked: a record's columns, a tuple as it is."""
    if isinstance(value, RecordType):
        kinds = [column_type(column) for column in value.layout.columns]

        def load(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            items = load_columns(context, builder, sig.args[0], args[0], range(len(kinds)))
            return context.make_tuple(builder, sig.return_type, items)

        return types.Tuple(kinds)(value), load
    inner = value.type if isinstance(value, types.Optional) else value
    return inner(inner), lambda context, builder, sig, args: impl_ret_borrowed(context, builder, inner, args[0])


@intrinsic
def there(typingctx: Any, value: Any) -> Any:
    """The container of an item: itself, or its type without None where it may be None."""
    inner = value.type if isinstance(value, types.Optional) else value
    return inner(inner), lambda context, builder, sig, args: impl_ret_borrowed(context, builder, inner, args[0])


def identity(function: Any) -> Any:
    """Of `is` and `is not`."""

    @intrinsic
    def exact(typingctx: Any, left: Any, right: Any) -> Any:
        if not isinstance(right, types.NoneType) or isinstance(left, Opaque):
            return own(typingctx, function, (left, right))

        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            is_none = cgutils.bool_t(isinstance(left, types.NoneType))
            if isinstance(left, types.Optional):
                is_none = builder.not_(context.make_helper(builder, left, value=args[0]).valid)
            return is_none if function is operator.is_ else builder.not_(is_none)

        return types.boolean(left, right), codegen

    return exact
