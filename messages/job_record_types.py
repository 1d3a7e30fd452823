"""The record types of a script or notebook that one job has: those that stood there when it was submitted.

A cell that is run again replaces its classes, while the job that runs, and what it has brought, have the earlier
ones. Whoever packs records for a job, or reads those that it has packed, does so with the job's own classes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from functools import lru_cache
from types import FunctionType
from typing import Any, ParamSpec, TypeAlias, TypeVar

from .code_outline import code_outline, members_of
from .own_annotations import resolved_annotations
from .record_shape import shape_of
from .registry import module_name

P = ParamSpec("P")
T = TypeVar("T")

RecordTypes: TypeAlias = Mapping[str, type]
"""By the name that they travel under."""

_of_job: ContextVar[RecordTypes | None] = ContextVar("record types of a job", default=None)


def with_record_types(
    types: RecordTypes | None, function: Callable[P, T], /, *arguments: P.args, **named: P.kwargs
) -> T:
    """Call `function`, which packs or unpacks records of a job that has these types of the script."""
    before = _of_job.set(types)
    try:
        return function(*arguments, **named)
    finally:
        _of_job.reset(before)


types_of_job: Callable[[], RecordTypes | None] = _of_job.get
"""Those of the job whose records are packed or unpacked. Asked once per record, so without a call in between."""


def refused_by_job(types: RecordTypes, cls: type, name: str) -> str:
    """Why the job that has these types cannot read a record of this class; empty where it can, as far as is known."""
    if module_name(cls) != "__main__" or (known := types.get(name)) is cls:
        return ""
    if known is None:
        is_there = getattr(sys.modules["__main__"], cls.__qualname__, None) is cls
        return f"class {cls.__qualname__} was defined after the job was submitted: submit it again" if is_there else ""
    if _are_alike(known, cls):
        return ""
    return (
        f"there are two classes {cls.__qualname__}, as its definition was run again and has changed: the job knows "
        "one, and this record is of the other; run the code again that makes the records, builds the stream and "
        "submits it"
    )


@lru_cache(maxsize=256)
def _are_alike(one: Any, other: Any) -> bool:
    """Whether they are made alike, as by a cell that was run again and has not changed."""
    return _outline(one) == _outline(other)


def _outline(cls: Any) -> tuple[Any, ...]:
    """What tells two classes of one name apart: their fields, and the code of their methods, in whichever lines."""
    shape, own = shape_of(cls), members_of(cls)
    return (
        [(base.__module__, base.__qualname__) for base in cls.__bases__],
        repr(resolved_annotations(cls)),
        None if shape is None else (shape.fields, shape.optional, shape.later),
        {name: repr(member.value) for name, member in own.get("_member_map_", {}).items()},
        {name: parts for name, value in own.items() if (parts := _code_of(value)) is not None},
    )


def _code_of(value: Any) -> Any:
    """Of a method, its code and defaults; a default of a field as it is; None for anything else."""
    function = getattr(value, "fget", None) or getattr(value, "__func__", value)
    if isinstance(function, FunctionType):
        return code_outline(function.__code__), repr(function.__defaults__)
    return value if isinstance(value, bool | int | float | str | bytes) else None
