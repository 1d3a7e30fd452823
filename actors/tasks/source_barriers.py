"""SourceBarriers: the checkpoints that a source is to take, from their triggers to their barriers.

    triggered -> waiting -> taken
                    '-----> given up by the JobManager

Mostly a barrier waits for nothing. That of a savepoint, or of a stop, which must hold all, waits as long as the source
has not read yet what its offset then holds; those behind it wait, too, as ids only grow. The source is polled
meanwhile.

The task's loop owns it, and calls it on the task's thread. It does not know the outcome of a snapshot.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from ...messages import CheckpointId
from ..flow.elements import CheckpointBarrier
from ..operators.source import Source
from .operator_hooks import blame


class SourceBarriers:
    """Of one attempt. `source` None: of a task without one nothing waits here. `take`: take this checkpoint now; those
    that are over by then are left out.
    """

    def __init__(
        self, source: Source | None, is_over: Callable[[CheckpointId], bool], take: Callable[[CheckpointBarrier], None]
    ) -> None:
        self._source = source
        self._is_over = is_over
        self._take = take
        self._waiting: deque[CheckpointBarrier] = deque()

    def add(self, barrier: CheckpointBarrier) -> None:
        """The JobManager has triggered it."""
        self._waiting.append(barrier)
        self._take_waiting()

    def abort(self, checkpoint_id: CheckpointId) -> None:
        """The JobManager gave it up: the others wait no longer for it."""
        self._waiting = deque(each for each in self._waiting if each.checkpoint_id != checkpoint_id)
        self._take_waiting()

    def look_again(self) -> None:
        """The source may have read enough meanwhile."""
        self._take_waiting()

    def _take_waiting(self) -> None:
        while self._waiting and self._may_pass(self._waiting[0]):
            barrier = self._waiting.popleft()
            if not self._is_over(barrier.checkpoint_id):
                self._take(barrier)

    def _may_pass(self, barrier: CheckpointBarrier) -> bool:
        if self._is_over(barrier.checkpoint_id) or not (barrier.whole or barrier.stop):
            return True
        assert self._source is not None, "checkpoints are triggered at sources only"
        with blame(self._source):
            return self._source._is_whole()
