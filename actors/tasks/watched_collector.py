"""WatchedCollector: finds a record that its operator changes after it has collected it.

A task sends records on in batches, so what an operator changes in one that it has collected, as in a dict that it fills
again for the next record, is in the earlier ones too, or not: it depends on how many records came at once. In simulated
clusters, the debugger and the harness each record is compared with what it was. In a running task that would cost more
than all the rest, so there it is the first `FIRST_RECORDS` of each operator, and the log says what was found.
"""

from __future__ import annotations

import dataclasses
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NoReturn, Self, cast

from ...state.backends.private_copy import CHANGEABLE, is_same, private_copy
from ..errors import UnwantedResult
from ..operators.collector import Collector
from ..operators.operator import Operator
from .operator_hooks import blame

log = logging.getLogger(__name__)

FIRST_RECORDS: Final = 100
"""Of an attempt of an operator in a running task: they cost some 0.4 ms together, once."""


class WatchedCollector(Collector):
    """Of one operator."""

    __slots__ = ()

    def collect(self, record: Any, /, *more: Any) -> None:
        if more:
            _refuse_more(record, *more)
        if (parts := _changeable_parts(record)) is not None:
            self._watch[1].append((record, _copied(parts)))
        self.append(record)

    def _seal(self) -> None:
        operator, watched, more = self._watch
        self._watch = (operator, [], more)
        if said := _changed(operator, watched):
            with blame(operator):
                raise UnwantedResult(said)
        super()._seal()


class FirstRecordsCollector(Collector):
    """Of one operator of a running task, which it may not fail. Then it becomes a plain one."""

    __slots__ = ()

    def collect(self, record: Any, /, *more: Any) -> None:
        if more:
            _refuse_more(record, *more)
        self.append(record)
        operator, watched, left = self._watch
        if left <= 0:
            return  # by a bound method that the operator has taken before
        with suppress(Exception):  # the copy of an object of the user's
            if (parts := _changeable_parts(record)) is not None:
                watched.append((record, _copied(parts)))
        self._watch = (operator, watched, left - 1)
        if left == 1:
            self.__class__ = _EnoughCollector

    def _seal(self) -> None:
        operator, watched, more = self._watch
        self._watch = (operator, [], more)
        with suppress(Exception):  # a comparison of the user's
            if said := _changed(operator, watched):
                log.warning(
                    "operator %r: %s; records that leave in one batch with the change have it, too",
                    operator.context.name,
                    said,
                )
                self.__class__ = cast("type[Self]", Collector)
        Collector._seal(self)


class _EnoughCollector(FirstRecordsCollector):
    """Those that it has seen of this batch are compared, and no more."""

    __slots__ = ()

    if not TYPE_CHECKING:
        collect = list.append

    def _seal(self) -> None:
        super()._seal()
        self._watch = (None, [], 0)
        self.__class__ = cast("type[Self]", Collector)


def _refuse_more(*records: Any) -> NoReturn:
    raise TypeError(
        f"out.collect takes one record, found {len(records)}: write a tuple or a dict of them, as in "
        f"out.collect(({', '.join(repr(each)[:20] for each in records[:2])}))"
    )


def _changed(operator: Operator, watched: list[tuple[Any, Any]]) -> str:
    """About the first of these records that is not as it was."""
    for record, as_it_was in watched:
        parts = _changeable_parts(record)
        if not is_same(as_it_was, parts) and is_same(_copied(parts), parts):
            return (
                f"{type(operator).__name__} has changed a record after out.collect(...): it was "
                f"{as_it_was!r:.80}, and is {parts!r:.80} now. {_remedy(record)}"
            )
    return ""


def _changeable_parts(record: Any) -> Any:
    """What of it may be changed in place: itself, a tuple with a list or the like in it, or the fields of a dataclass;
    None if nothing may.
    """
    kind = type(record)
    if kind in CHANGEABLE:
        return record
    if isinstance(record, tuple):
        return record if any(type(item) in CHANGEABLE for item in record) else None
    if dataclasses.is_dataclass(kind):
        return {field.name: getattr(record, field.name, None) for field in dataclasses.fields(kind)}
    return None


def _copied(parts: Any) -> Any:
    """A copy of those, in which objects of other classes are the same."""
    if isinstance(parts, tuple):
        return tuple(map(_copied_item, parts))
    if type(parts) is dict:
        return {name: _copied_item(value) for name, value in parts.items()}
    return private_copy(parts)


def _copied_item(item: Any) -> Any:
    return private_copy(item) if type(item) in CHANGEABLE or type(item) is tuple else item


def _remedy(record: Any) -> str:
    if isinstance(record, tuple):
        return "Collect copies of what is changed later, as in out.collect((key, dict(value)))"
    if dataclasses.is_dataclass(record):
        return (
            "Collect a new one for each, as in out.collect(dataclasses.replace(record)), with copies of what it holds"
        )
    kind = "dict" if isinstance(record, dict) else type(record).__name__
    return f"Collect a new one for each, as in out.collect({kind}(record))"


def watched_collector(operator: Operator) -> Collector:
    """A new one for this operator."""
    made = WatchedCollector()
    made._watch = (operator, [], 0)
    return made


def first_records_collector(operator: Operator) -> Collector:
    """The same for one in a running task."""
    made = FirstRecordsCollector()
    made._watch = (operator, [], FIRST_RECORDS)
    return made
