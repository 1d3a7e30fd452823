"""The outline of a function's code: what tells it from another one, in whichever lines of a file the two stand."""

from __future__ import annotations

import inspect
from types import CodeType
from typing import Any

from .attributes import attributes_of

_KINDS = (
    inspect.CO_VARARGS
    | inspect.CO_VARKEYWORDS
    | inspect.CO_GENERATOR
    | inspect.CO_COROUTINE
    | inspect.CO_ASYNC_GENERATOR
)
"""Of the flags those of the function itself; others say how its module was compiled."""


def code_outline(code: CodeType) -> Any:
    """Equal for codes that do the same by the same instructions; those of functions within it count too."""
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    takes = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags & _KINDS
    return code.co_code, code.co_exceptiontable, names, takes, [_constant(each) for each in code.co_consts]


def members_of(cls: type) -> dict[str, Any]:
    """What the class itself defines, in its order, without what Python itself adds: line numbers and
    caches.
    """
    own = {name: value for name, value in attributes_of(cls).items() if name not in _NOTES}
    if own.get(ANNOTATE) is None:  # a class without annotations has it once somebody has asked for them
        own.pop(ANNOTATE, None)
    return own


_NOTES = frozenset({"__slotnames__", "__firstlineno__", "__static_attributes__", "__annotations_cache__"})
"""Of whoever has pickled an instance; of Python 3.13; the last of 3.14."""
ANNOTATE = "__annotate_func__"
"""Of Python 3.14: what works the annotations out."""


def _constant(value: Any) -> Any:
    if isinstance(value, CodeType):
        return code_outline(value)
    return sorted(map(repr, value)) if isinstance(value, frozenset) else repr(value)
