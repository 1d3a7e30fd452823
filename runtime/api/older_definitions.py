"""In a notebook, or at a Python prompt: classes and functions that have been defined again, otherwise, since a stream
was built of them. The stream holds what it was built with.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import FunctionType
from typing import Any

from ...messages.attributes import attributes_of
from ...messages.code_outline import code_outline, members_of
from .stream_graph import StreamNode
from .warned import warn

_PLAIN = (int, float, str, bytes, type(None))


def warn_of_older_definitions(nodes: Sequence[StreamNode]) -> None:
    """When the job is submitted. A file runs from top to bottom: there nobody takes the newer one for the stream's."""
    main = sys.modules["__main__"]
    if hasattr(main, "__file__"):
        return
    names = vars(main)
    for node in nodes:
        for held in (type(node.operator), *attributes_of(node.operator).values()):
            if not isinstance(held, type | FunctionType) or held.__module__ != "__main__":
                continue
            name = held.__qualname__
            newest: Any = names.get(name)
            if type(newest) is type(held) and newest is not held and _outline(newest) != _outline(held):
                warn(
                    f"operator {node.name!r} has {name} as it was when the stream was built, and {name} has been "
                    "changed since. To have the newer one in the job, run the cell that builds the stream again, and "
                    "submit that"
                )


def _outline(held: Any) -> Any:
    """Equal for definitions that do the same."""
    if isinstance(held, FunctionType):
        return code_outline(held.__code__)
    return {name: _of_member(value) for name, value in members_of(held).items()}


def _of_member(value: Any) -> Any:
    function = getattr(value, "fget", None) or getattr(value, "__func__", value)
    if isinstance(function, FunctionType):
        return code_outline(function.__code__)
    return repr(value) if isinstance(value, _PLAIN) else type(value)
