"""Outlet: a reader of what a job has committed, while it runs and after its end. From `job.outlet(name)`.

    async for batch in job.outlet("alerts", after=cursor):      for batch in job.outlet("alerts", after=cursor):
        await store(batch.records, batch.cursor)                    store(batch.records, batch.cursor)

Committed records only, in the order of the outlet, each once: whoever stores the cursor in one step with what was done
with the records, and begins there after a restart, has done it exactly once. While the job restarts, a reader waits.
Once the job has ended and all is read, the iteration ends, or raises what the job has failed with. Any number of
readers; they do not know of each other, and cost the job's tasks nothing.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from ...actors.flow.map_columns import with_dicts
from ...actors.timeouts import timeout_seconds
from ...messages import JobId, OutletAnswer, OutletPart, ReadOutlet, RecordTypes, with_record_types
from ...messages.counted import counted
from ...state.outlets.segments import records_of
from ..system.errors import FutureTimeout
from .async_twin import warn_of_event_loop
from .job_future import JobFuture
from .outlet_errors import InvalidCursor, refused

ANSWER_BYTES = 1 << 20
"""Of one answer, or one segment: the rest comes with the next."""

WAIT_MS = 5_000
"""So long the JobManager waits for more before it says that there is nothing yet."""


@dataclass(frozen=True, slots=True)
class OutletBatch:
    """Some committed records. `cursor`: where to go on behind them; text that sorts in the order of the outlet."""

    records: list[Any] | pa.RecordBatch
    """As they came to the outlet: a list of records, or columns."""
    cursor: str

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[Any]:
        """Record by record; of columns, a dict for each row."""
        return iter(with_dicts(self.records) if isinstance(self.records, pa.RecordBatch) else self.records)


class OutletSource(Protocol):
    """How a reader reaches the job; a handle or a client supplies it."""

    def request(self, question: ReadOutlet) -> JobFuture[OutletAnswer]:
        """Put it to the JobManager."""
        ...

    def ended(self) -> object:
        """The job is over: raise what it has failed with, or whatever ended it before it finished."""
        ...

    def ended_async(self) -> Awaitable[object]:
        """The same without blocking."""
        ...


class Outlet:
    """One reader, at one place at a time; not for several threads or coroutines at once. To stop reading is to let go
    of it: nothing has to be closed.

    Raises InvalidCursor, CursorExpired and CursorForked when the place cannot be read on, JobLost when the cluster goes
    away, and what the job has failed with at the end of what it had committed.
    """

    def __init__(
        self,
        source: OutletSource,
        job_id: JobId,
        name: str,
        after: str | None,
        latest: bool,
        types: RecordTypes | None = None,
    ) -> None:
        """`types`: the script's classes that the job has, where that is known."""
        if after == "":
            raise InvalidCursor(f"outlet {name!r}: after='' is no cursor; None is the beginning")
        self._source = source
        self._job_id = job_id
        self._name = name
        self._latest = latest
        self._types = types
        self._cursor = self._asked_from = after or ""
        self._parts: deque[OutletPart] = deque()
        self._answer: JobFuture[OutletAnswer] | None = None
        """On its way: an interrupted wait does not lose it."""

    @property
    def cursor(self) -> str | None:
        """Behind the last batch that was given, or where it began; None: the beginning, or not known yet."""
        return self._cursor or None

    def read(self, timeout: float | None = None) -> OutletBatch | None:
        """Block until there is a batch; None when the job has finished and all is read.

        Raises TimeoutError after `timeout` seconds: nothing is lost, and it may be called again.
        """
        warn_of_event_loop(f"to read outlet {self._name!r}", "`async for`, or `await outlet.read_async(timeout)`")
        return self._read(timeout)

    async def read_async(self, timeout: float | None = None) -> OutletBatch | None:
        """The same without blocking."""
        try:
            async with asyncio.timeout(timeout_seconds(timeout)):
                while not self._parts:
                    if self._took(await self._asked(WAIT_MS)):
                        await self._source.ended_async()
                        return None
        except TimeoutError as error:
            raise self._overdue(timeout) from error
        return self._given()

    def __iter__(self) -> Iterator[OutletBatch]:
        warn_of_event_loop(f"to read outlet {self._name!r}", "`async for`")
        while (batch := self._read(None)) is not None:
            yield batch

    async def __aiter__(self) -> AsyncIterator[OutletBatch]:
        while (batch := await self.read_async()) is not None:
            yield batch

    def _read(self, timeout: float | None) -> OutletBatch | None:
        seconds = timeout_seconds(timeout)
        left_ms = math.inf if seconds is None else 1000 * seconds
        while not self._parts:
            wait_ms = min(WAIT_MS, left_ms)
            try:
                is_over = self._took(self._asked(wait_ms).result(timeout=None if seconds is None else left_ms / 1000))
            except FutureTimeout as error:
                raise self._overdue(timeout) from error
            if is_over:
                self._source.ended()
                return None
            left_ms -= wait_ms
            if left_ms <= 0 and not self._parts:
                raise self._overdue(timeout)
        return self._given()

    def _asked(self, wait_ms: float) -> JobFuture[OutletAnswer]:
        """The JobManager says when these milliseconds are over, so that no clock is needed here. A question that has
        failed, as when storage could not be read, is put again.
        """
        if self._answer is None or (self._answer.done() and self._answer.exception() is not None):
            question = ReadOutlet(
                self._job_id, self._name, self._asked_from, self._latest, ANSWER_BYTES, math.ceil(wait_ms)
            )
            self._answer = self._source.request(question)
        return self._answer

    def _took(self, answer: OutletAnswer) -> bool:
        """Whether it is all over."""
        self._answer = None
        if answer.refusal is not None:
            raise refused(self._name, self._asked_from, answer.refusal)
        self._asked_from = answer.cursor
        self._parts.extend(answer.parts)
        if not answer.parts:
            self._cursor = answer.cursor
        return answer.is_over

    def _given(self) -> OutletBatch:
        part = self._parts.popleft()
        self._cursor = part.cursor
        return OutletBatch(with_record_types(self._types, records_of, part.data), part.cursor)

    def _overdue(self, timeout: float | None) -> TimeoutError:
        return TimeoutError(f"outlet {self._name!r} has put out nothing new for {counted(timeout or 0, 'second')}")
