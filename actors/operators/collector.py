"""Collector: where an operator puts its output, in order, until its task takes it.

Made by the OperatorChain, one for each operator, and empty again before the operator is called again. It sends nothing.
An operator that keeps it beyond a call is given another one, and the kept one is closed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import repeat
from sys import getrefcount
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias, cast

import numpy as np
import pyarrow as pa

from ...messages.known_names import known_names
from ...state.errors import CallIsOver
from ..flow.elements import AnyBatch, Batch, TimedBatch, Times, Watermark, WatermarkStatus
from .of_records import Given, Records, Sent, Tagged

Emitted: TypeAlias = "AnyBatch | Watermark | WatermarkStatus"
"""What leaves a collector, in order."""


@known_names
@dataclass(frozen=True, slots=True)
class OutputTag(Tagged[Sent]):
    """Names a side output of an operator: `out.collect_to(tag, record)` fills it, `stream.side_output(tag)` reads it.

    Two tags of one name are the same. `schema`: its columns, where all that goes there are Arrow batches with these.
    Flink: OutputTag.
    """

    name: str
    schema: pa.Schema | None = None

    def __post_init__(self) -> None:
        if not (isinstance(self.name, str) and self.name):
            raise ValueError(f"OutputTag: wanted a name such as OutputTag('late'), found {self.name!r:.60}")
        if not (self.schema is None or isinstance(self.schema, pa.Schema)):
            raise ValueError(
                f"OutputTag: schema: wanted a pa.Schema, of a side output of Arrow batches, found {self.schema!r:.60}: "
                f"types of records are not declared, so write OutputTag({self.name!r})"
            )


_ONE_RECORD = (dict, str, bytes, tuple, int, float)


class _Each:
    """Batches that are still to be made."""

    __slots__ = ("batches",)

    def __init__(self, batches: Iterator[Batch | TimedBatch]) -> None:
        self.batches = batches


class Collector(Records[Given]):
    """Where an operator puts its output. Order is kept between `collect` and `emit`; use nothing else of it.

    It is the list of the records collected since the last batch: so `collect` is a list's own `append`, which costs a
    quarter of what a method of ours would. `time_ms` is the event time of the record, or the timer, that is being
    processed; whoever processes several one after the other calls `stamp` after each.
    """

    __slots__ = ("_batches", "_misuse", "_sides", "_watch", "stamps", "time_ms")

    _watch: tuple[Any, list[Any], int]
    """Of one that is watched: by whom, what it has seen of this batch, and how many records it looks at from now on.
    Here, as a class that it may become has to have it too.
    """

    if TYPE_CHECKING:

        def collect(self, record: Given, /) -> None:
            """Add one record. It gets the event time of what is being processed."""

    else:
        collect = list.append

    def __init__(self) -> None:
        super().__init__()
        self._batches: list[Any] = []
        self._sides: dict[str, Collector] = {}
        self.time_ms: int | None = None
        """None where there is no event time."""
        self.stamps: list[int] = []
        """The event times of the first records collected."""

    def emit(self, batch: Batch, timestamps: Times | None = None) -> None:
        """Add a whole batch: a `pa.RecordBatch` or a list, which is the collector's from now on. An empty one is
        dropped.

        `timestamps`: the event time of each record, in ms. Without them all get the time of the record or timer that
        is being processed; in `process_batch`, where there are several, the batch has no event times any more.
        """
        self._seal()
        if isinstance(batch, _ONE_RECORD):
            raise TypeError(
                f"out.emit takes a whole batch, a list of records or a pa.RecordBatch; found {type(batch).__name__} "
                f"{batch!r:.60}: for one record write out.collect(record)"
            )
        if not len(batch):
            return
        if timestamps is not None:
            self._batches.append(TimedBatch(batch, np.ascontiguousarray(timestamps, np.int64)))
        elif self.time_ms is not None:
            self._batches.append(TimedBatch(batch, np.full(len(batch), self.time_ms, np.int64)))
        else:
            self._batches.append(batch)

    def collect_to(self, tag: OutputTag[Sent], record: Sent) -> None:
        """Add one record to a side output."""
        side = self._side(tag)
        side.append(record)
        if self.time_ms is not None:
            side.stamps.append(self.time_ms)

    def emit_to(self, tag: OutputTag, batch: Batch, timestamps: Times | None = None) -> None:
        """Add a whole batch to a side output."""
        self._side(tag).emit(batch, timestamps)

    def emit_each(self, batches: Iterator[Batch | TimedBatch]) -> None:
        """Add batches, none of them empty, that are made one by one as they are sent on: before the operator is called
        again. Therefore large ones need not all be in memory, however many they are.
        """
        self._seal()
        self._batches.append(_Each(batches))

    def emit_element(self, element: Emitted) -> None:
        """Add a batch with its event times, a watermark or a status behind all that is there; for our own operators."""
        self._seal()
        self._batches.append(element)

    def take_over(self, other: Collector) -> None:
        """Move all that the other one holds behind what is here, with its event times."""
        if other.is_plain:
            self.add_stamped(other[:], [] if other.time_ms is None else [other.time_ms] * len(other))
            other.clear()
            return
        for tag, element in other.all_taken():
            self.put(tag, element)

    def add_stamped(self, records: list[Any], times: list[int]) -> None:
        """Add records with their event times, or without any."""
        if times:
            self.stamps.extend(times)
        elif self.stamps:
            self._seal()
        self.extend(records)

    @property
    def is_plain(self) -> bool:
        """Whether it holds nothing but records collected, all of the time `time_ms`."""
        return not (self._batches or self._sides or self.stamps)

    def all_taken(self) -> list[tuple[str, Any]]:
        """Take everything out, in order: under "" what goes to the next operator, under names what goes to sides."""
        return [*(("", element) for element in self.taken()), *self.sides()]

    def first_taken(self, count: int) -> list[Any]:
        """Take out the first records that were collected; no batch was emitted before them."""
        if not self._batches:
            first = self[:count]
            del self[:count]
            return first
        sealed = self._batches[0]
        records = sealed.records if isinstance(sealed, TimedBatch) else sealed
        rest = records[count:]
        self._batches[:1] = [rest if records is sealed else TimedBatch(rest, sealed.times[count:])] if rest else []
        return cast("list[Any]", records[:count])

    def put(self, tag: str, element: Any) -> None:
        """What `all_taken` gave."""
        (self._sides.setdefault(tag, Collector()) if tag else self).emit_element(element)

    def stamp(self) -> None:
        """All that was collected since the last call belongs to `time_ms`."""
        missing = len(self) - len(self.stamps)
        if missing and self.time_ms is not None:
            self.stamps.extend(repeat(self.time_ms, missing))

    def drain(self) -> list[Emitted]:
        """Take everything out, in order, but the side outputs."""
        return list(self.taken())

    def taken(self) -> Iterator[Emitted]:
        """The same one by one; to be used up before anything else is added."""
        self._seal()
        batches, self._batches = self._batches, []
        for batch in batches:
            if type(batch) is _Each:
                yield from batch.batches
            else:
                yield batch

    @property
    def has_sides(self) -> bool:
        """Whether anything ever went to a side output."""
        return bool(self._sides)

    @property
    def side_names(self) -> list[str]:
        """Of all tags that anything ever went to."""
        return list(self._sides)

    def sides(self) -> Iterator[tuple[str, Any]]:
        """Take out what went to side outputs: the name of the tag, and a batch."""
        for name, side in self._sides.items():
            for batch in side.taken():
                yield name, batch

    def close(self) -> None:
        """From now on it only gives out what it holds: who collects more meets CallIsOver."""
        self.__class__ = ClosedCollector

    def close_kept(self, misuse: Callable[[], None]) -> None:
        """The same for one that an operator has kept beyond its call. Who collects more calls `misuse`."""
        self._misuse = misuse
        self.__class__ = KeptCollector

    def _side(self, tag: OutputTag) -> Collector:
        if not isinstance(tag, OutputTag):
            raise TypeError(f"wanted an OutputTag for a side output, such as OutputTag('late'), found {tag!r:.60}")
        side = self._sides.get(tag.name)
        if side is None:
            side = self._sides[tag.name] = Collector()
        side.time_ms = self.time_ms
        return side

    def _seal(self) -> None:
        if not self:
            return
        records = self[:]
        del self[: len(records)]  # a thread that it was given to may have added one meanwhile: that one is seen later
        if self.time_ms is None and not self.stamps:
            self._batches.append(records)
            return
        missing = len(records) - len(self.stamps)
        if missing:
            assert self.time_ms is not None, "some records have an event time, the others have none"
            self.stamps.extend(repeat(self.time_ms, missing))
        self._batches.append(TimedBatch(records, np.array(self.stamps, np.int64)))
        self.stamps.clear()


class ClosedCollector(Collector):
    """One whose record is done: code that it has left behind emits nothing any more."""

    __slots__ = ()

    def _refuse(self, *_args: Any, **_named: Any) -> NoReturn:
        raise CallIsOver("out")

    collect = collect_to = emit = emit_to = _refuse


class KeptCollector(Collector):
    """One that an operator, or a thread of its, still holds after the call: what is put there belongs to no call."""

    __slots__ = ()

    def _refuse(self, *_args: Any, **_named: Any) -> None:
        self._misuse()

    collect = collect_to = emit = emit_to = _refuse


def _references(holding: list[Collector]) -> int:
    collector = holding[0]
    return getrefcount(collector)


OWN_REFERENCES: Final = _references([Collector()])
"""To a collector whose output is taken: its owner's, a variable's, and that of the call which counts them. With more,
the operator has kept it. Not every release of Python counts all of these.
"""
