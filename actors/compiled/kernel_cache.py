"""The kernels of this process, by operator class and signature: subtasks of one operator share theirs."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from ..operators.keyed_operator import KeyedOperator
from .errors import NumbaMissing
from .layout import Layout
from .signature import Signature, check_operator, layout_of

_compiled: dict[tuple[type, Signature], tuple[Layout, Any]] = {}


def check_numba(operator: str) -> None:
    """Raises NumbaMissing. Numba is imported here and not before: it takes a quarter of a second."""
    try:
        import numba  # noqa: F401
    except ImportError as error:
        raise NumbaMissing(operator) from error


def compiled_for(cls: type[KeyedOperator], signature: Signature) -> tuple[Layout, Any]:
    """The layout and the kernel. Raises CannotCompile, or NumbaMissing."""
    found = _compiled.get((cls, signature))
    if found is None:
        check_operator(cls)
        check_numba(cls.__qualname__)
        from .kernel import compile_kernel

        layout = layout_of(cls, signature)
        found = _compiled[cls, signature] = layout, compile_kernel(cls, layout)
    return found


def warm_up() -> None:
    """Have Numba imported and its compiler used once, which makes the next compilation several times faster."""

    class Nothing(KeyedOperator):
        compiled = True

        def process(self, record: Any, out: Any) -> None:
            out.collect((self.key, record.number + 1))

    number = (("number", pa.int64()),)
    compiled_for(Nothing, Signature(number, number, (), "row"))


def empty_batch(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], kind) for kind in schema.types], schema=schema)
