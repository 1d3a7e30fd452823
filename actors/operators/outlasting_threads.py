"""Threads that outlast the data of an operator, and hold an `out` of it: what they emit then is lost, and no error says
so, as no record comes behind it. A `threading.Timer(5, out.collect, record)` behind the last record is one.

Looked for once, at the end of the data, where an `out` of a call that is over is held by something.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Collection, Iterable
from functools import partial
from types import BuiltinMethodType, CellType, FunctionType, MethodType
from typing import Any, Protocol, TypeAlias

from ...messages.attributes import attributes_of
from ...messages.whose_code import is_ours
from .collector import Collector

log = logging.getLogger(__name__)

_MOST_LOOKED_AT = 10_000
_PLAIN = (str, bytes, int, float, complex, type(None))


class Thread(Protocol):
    """One of Python's."""

    @property
    def name(self) -> str: ...


OtherThreads: TypeAlias = Callable[[], Iterable[Thread]]
"""Those of this process, but for the one that calls."""


def no_threads() -> Iterable[Thread]:
    """Where nobody knows them."""
    return ()


def warn_of_threads(operator: str, held: Collection[Collector], threads: OtherThreads) -> None:
    """Of the first that holds one of these, which calls of this operator have had."""
    for thread in threads() if held else ():
        if _reaches(thread, {id(each) for each in held}):
            log.warning(
                "operator %r: the data has ended, and thread %r, which holds an `out` of it, is still there: what it "
                "emits from now on is lost. Wait for what was begun in on_end(out), as by thread.join(), and emit it "
                "there; a method that is a coroutine (async def) has the same waited for",
                operator,
                thread.name,
            )
            return


def _reaches(thread: Thread, wanted: set[int]) -> bool:
    """From what it was made with; nothing of ours is gone through, as that leads to everything."""
    waiting: list[Any] = list(attributes_of(thread).values())
    seen = set[int]()
    while waiting and len(seen) < _MOST_LOOKED_AT:
        each = waiting.pop()
        if id(each) in wanted:
            return True
        if id(each) not in seen:
            seen.add(id(each))
            waiting += _parts(each)
    return False


def _parts(held: Any) -> list[Any]:
    kind = type(held)
    if kind in _PLAIN or issubclass(kind, type) or is_ours(kind):
        return []
    if kind is FunctionType:  # and not its globals
        return [*(held.__closure__ or ()), *(held.__defaults__ or ()), *(held.__kwdefaults__ or {}).values()]
    if kind in (MethodType, BuiltinMethodType):
        return [held.__self__, getattr(held, "__func__", None)]
    if kind in (dict, list, tuple, set, frozenset, CellType, partial) or not kind.__module__.startswith("builtins"):
        return [part for part in gc.get_referents(held) if part is not kind]
    return []
