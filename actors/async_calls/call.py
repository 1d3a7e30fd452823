"""Call: one record, or timer, on its way through an operator's coroutine."""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

from ...messages import DictRow
from ...state.backends.private_copy import private_copy
from ...state.backends.unit_of_work import UnitOfWork
from ..flow.elements import TimedBatch
from ..operators.collector import Collector

CallKind: TypeAlias = Literal["record", "timer", "batch", "waiting"]
"""Of `record`: a record for `process`, a KeyedTimer for `on_timer`, or a batch for `process_batch`. "waiting", in
snapshots alone: a batch of which no calls have been made.
"""


class Call(UnitOfWork):
    """Made, started, settled and emitted on the task's thread; its coroutine runs on the event loop.

    What most calls never have stands in the class, as the value before it is set.
    """

    retried: NextTry | None = None
    """The unit of work of its try, from the second one on."""
    identity: str | None = None
    """The idempotency key of one that was restored; others have theirs from `number`."""
    kind: CallKind = "record"
    input_index = 0
    tries = 0
    """How often it was begun; before a restore, those that failed."""
    again_wall_ms = 0
    """When it is to be tried again, as long as it waits for that."""
    failures = 0
    """How many of its tries have failed."""
    began_wall_ms = 0
    """When it was begun first."""
    error: BaseException | None = None
    """What its last try has failed with."""
    out: Collector
    """What it has emitted; from when it starts."""
    results: Any = None
    """The same as a snapshot holds it: then `out` is empty."""
    is_done = False
    """It is committed, and its results wait to be emitted."""
    epoch: Any = None
    """The Epoch that it belongs to."""
    following: Call | None = None
    """The next call of its key, which waits for it."""
    task: Any = None
    """The asyncio.Task in which it runs."""
    limit_ms: float | None = None
    """Its try is cancelled after so long."""
    is_expired = False
    """Its try has been cancelled because it took too long."""

    time_ms: int | None = None
    """Its event time, or that of the timer."""
    position: int | None = None
    """Of the record among those of the attempt, for error texts; None for a restored one."""
    size = 0.0
    """About how many bytes it takes."""
    prefix = ""

    def __init__(self, number: int, key: Any, record: Any, watermark: int) -> None:
        self.number = number
        """Records of a subtask are numbered in the order of its input."""
        self.key = key
        self.record = record
        self.watermark = watermark
        """How far event time had come for it."""

    @property
    def idempotency_key(self) -> str:
        """The same in each try, and after each restart."""
        return self.identity or f"{self.prefix}{self.number}"

    @property
    def times(self) -> Any:
        """The event times of a batch's records."""
        return self.record.times if isinstance(self.record, TimedBatch) else None


class NextTry(UnitOfWork):
    """The unit of work of another try: whatever the one before has left running finds its own one over."""

    def __init__(self, call: Call) -> None:
        super().__init__(call.key)
        self._call = call

    def __getattr__(self, name: str) -> Any:
        return getattr(self._call, name)


def own_record(record: Any) -> Any:
    """The record, or a copy that the coroutine may change: another try, or a restart, begins with what came."""
    return private_copy(record) if type(record) in CHANGEABLE else record


CHANGEABLE: Final = frozenset({dict, list, set, bytearray, DictRow})
"""Records of these types are copied for each try."""
