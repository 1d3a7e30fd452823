"""What the user wrote of a class: checks of operators look at it before a job runs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from types import CodeType, FunctionType

from ...actors.operators.operator import Operator
from ...messages.attributes import attributes_of
from ...messages.code_steps import codes_of
from ...messages.whose_code import is_ours


def users_classes(kind: type) -> Iterator[type]:
    """A class and its bases, up to the first that is ours."""
    return takewhile(lambda base: not is_ours(base), kind.__mro__)


def users_codes(kind: type) -> Iterator[tuple[type, str, CodeType]]:
    """The code of each of their methods, and of what lies within it, with the class and the name of the method."""
    for cls in users_classes(kind):
        for method, value in attributes_of(cls).items():
            for code in codes_of(value.__code__) if isinstance(value, FunctionType) else ():
                yield cls, method, code


def takes_each_record(kind: type[Operator]) -> bool:
    """Whether one without a key takes its records one by one: nothing stands before what calls its `process`."""
    return kind.process_batch is Operator.process_batch and hasattr(kind, "process")
