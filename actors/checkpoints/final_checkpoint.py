"""FinalCheckpoint: how far a job is from the last checkpoint it will ever take. A value machine of the
CheckpointRequests, which have that checkpoint triggered and say what became of it.

    NOT_DUE --all data has ended--> DUE --it completed--> TAKEN
       |  ^--a region restarts--------'                     ^ |
       |  '----------------a region runs on-----------------|-'
       '------------a stop without drain completed----------'

It is due once all data has ended (Flink: FLIP-147), and repeated until one completes. People may ask for it to be a
savepoint as well (Flink: stop-with-savepoint --drain): their promises stay open through all the repetitions. A
checkpoint of kind STOP is the last one too, without any data having ended; nothing else is triggered beside it.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum, auto

from .checkpoint_reasons import Refusal
from .pending_checkpoint import CheckpointKind, PendingCheckpoint
from .savepoint_request import SavepointRequest


class _State(Enum):
    NOT_DUE = auto()
    DUE = auto()
    TAKEN = auto()


class FinalCheckpoint:
    """One job's."""

    def __init__(self) -> None:
        self._state = _State.NOT_DUE
        self._promises: list[SavepointRequest] = []

    @property
    def is_due(self) -> bool:
        """All data has ended, and no final checkpoint has completed."""
        return self._state is _State.DUE

    @property
    def is_ahead(self) -> bool:
        """Data still flows, so that periodic checkpoints make sense."""
        return self._state is _State.NOT_DUE

    @property
    def is_taken(self) -> bool:
        """It has completed, and tasks finish."""
        return self._state is _State.TAKEN

    @property
    def promises(self) -> tuple[SavepointRequest, ...]:
        """The savepoints that it is to be."""
        return tuple(self._promises)

    def data_ended(self) -> bool:
        """All data has; returns whether that is news."""
        is_news = self._state is _State.NOT_DUE
        if is_news:
            self._state = _State.DUE
        return is_news

    def completed(self) -> None:
        self._state = _State.TAKEN

    def restarting(self) -> None:
        """Attempts will be replaced: their data has to end again, unless the last checkpoint stands already."""
        if self._state is _State.DUE:
            self._state = _State.NOT_DUE

    def runs_on(self) -> bool:
        """A region is deployed that takes data: the checkpoint that was the last is not. Returns whether one was."""
        was_taken = self._state is _State.TAKEN
        if was_taken:
            self._state = _State.NOT_DUE
        return was_taken

    def promise(self, request: SavepointRequest) -> None:
        """It is to be this savepoint, which is answered when it has completed."""
        self._promises.append(request)

    def take_promises(self) -> tuple[SavepointRequest, ...]:
        """Those that are to be answered now; they are no longer remembered."""
        promises, self._promises = tuple(self._promises), []
        return promises

    def refusal(self, pending: Collection[PendingCheckpoint]) -> Refusal | None:
        """Why no checkpoint of any kind may be triggered beside those that are pending."""
        if self._state is _State.TAKEN:
            return Refusal.JOB_IS_ENDING
        if any(each.kind is CheckpointKind.STOP for each in pending):
            return Refusal.STOP_UNDER_WAY
        return None

    def promise_refusal(self, pending: Collection[PendingCheckpoint]) -> Refusal | None:
        """Why the final checkpoint can not be made a savepoint any more."""
        is_written = any(each.kind is CheckpointKind.FINAL and each.is_storing for each in pending)
        return Refusal.JOB_IS_ENDING if is_written else self.refusal(pending)
