"""Arguments of `key_by` that are neither column names nor a function, as newcomers write them, and what to write."""

from __future__ import annotations

import typing
from collections.abc import Sequence
from enum import Enum
from types import GenericAlias, UnionType
from typing import Any

import pyarrow.compute as pc

from .stream_graph import StreamEdge

_TYPING = (GenericAlias, UnionType, type(typing.Optional[int]), type(typing.List[int]))  # noqa: UP006, UP045

_OF_TWO = ("join", "interval_join", "temporal_join", "window_join", "co_group")
"""Methods that take a second stream, which is keyed as the first is."""


def why_no_key(called: Any) -> str:
    """Something that Python can call, and that gives no key of any record; empty for what may give one."""
    if called is Any or isinstance(called, _TYPING):
        return f"{called}, which makes no key of a record"
    if isinstance(called, type) and not issubclass(called, Enum) and called.__hash__ in (None, object.__hash__):
        return f"the class {called.__name__}, whose objects are no keys"
    return ""


def how_to_name(given: Any, others: int = 0) -> str:
    """What was given in place of names, if it holds them, and how they are written; empty otherwise.

    `others`: how many keys stand beside it.
    """
    if others and callable(given):
        return (
            f"found a function beside {others} more: write one function of a record, which returns a tuple, as in "
            "key_by(lambda record: (record['a'], record['b']))"
        )
    if isinstance(given, pc.Expression):
        return f"found an expression of columns: write the column's name, as in key_by({_name_in(given)!r})"
    if isinstance(given, list | tuple | set | frozenset) and given and all(isinstance(each, str) for each in given):
        names = sorted(given) if isinstance(given, set | frozenset) else given
        return f"found a {type(given).__name__}: write key_by({', '.join(map(repr, names))})"
    return ""


def _name_in(expression: pc.Expression) -> str:
    shown = str(expression)
    return shown if shown.isidentifier() else "origin"


def how_keyed(edges: Sequence[StreamEdge], method: str) -> str:
    """The advice about a stream that is not keyed, or no more."""
    before = [edge.source for edge in edges if any(each.selector for each in edge.source.inputs)]
    if before:
        return f"the stream of {before[0].name!r} is keyed no more: call key_by(...) behind it, right before {method}"
    or_all = "; or window_all(...), for windows of all records" if method == "window" else ""
    if method in _OF_TWO:
        return f'call key_by(...) of both streams before it, as in left.key_by("id").{method}(right.key_by("id"), ...)'
    return f"call key_by(...) before it{or_all}"
