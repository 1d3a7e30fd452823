"""AsyncMap, AsyncFilter and AsyncFlatMap: `async def` functions in `map`, `filter` and `flat_map`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from inspect import isasyncgen
from typing import Any

from ...messages import Row
from ..unrun import ONE_RECORD, check_records, has_run, refuse_single
from .collector import Collector
from .operator import Operator


class AsyncFunction(Operator):
    """An operator made of one coroutine function of a record."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function


class AsyncMap(AsyncFunction):
    """One record out for each record in."""

    async def process(self, record: Any, out: Collector) -> None:
        out.collect(has_run("the function of map", await self._function(record)))


class AsyncFilter(AsyncFunction):
    """The records for which the function is true."""

    async def process(self, record: Any, out: Collector) -> None:
        if has_run("the condition of filter", await self._function(record)):
            out.collect(record)


class AsyncFlatMap(AsyncFunction):
    """The function returns an iterable, or is an async generator."""

    async def process(self, record: Any, out: Collector) -> None:
        made = self._function(record)
        if isasyncgen(made):
            async for item in made:
                out.collect(has_run("the async generator of flat_map", item))
            return
        given = await made
        if type(given) in ONE_RECORD or isinstance(given, Row) or not isinstance(given, Iterable):
            refuse_single("the function of flat_map", given)
        items = list(given)
        check_records("the iterable of flat_map", items, "yield its items, with `yield from`", one_each=False)
        for item in items:
            out.collect(item)
