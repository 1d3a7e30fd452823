"""JobPointers: what a successor of the JobManager finds of one job, and what has to wait for that. A ManagedJob's part.

Where there is no successor nothing waits. Where there is one:

- A checkpoint that is given up loses its pointer before its files go.
- Tasks are deployed when no checkpoint is on its way into, or out of, what a successor finds. Sinks that are restored
  undo what came later: so a successor must not find a later checkpoint that was given up.
- Files of a job that has ended go when no successor knows of the job any more: else it would start it again.
"""

from __future__ import annotations

from collections.abc import Callable

from ...messages import JobId
from ...state.checkpoints.completed_checkpoints import CompletedCheckpoint
from ...state.checkpoints.high_availability import CheckpointPointers, NoPointers
from ...state.errors import LostLeadership
from ..context import ActorContext
from .storage_answers import Deposed, ForJob, PointerGone

Work = Callable[[], None]


class JobPointers:
    """Of one job. `has_successor`: whether there can be one."""

    def __init__(
        self,
        context: ActorContext,
        job_id: JobId,
        pointers: CheckpointPointers | None = None,
        has_successor: bool = False,
    ) -> None:
        self._context = context
        self._job_id = job_id
        self._pointers = pointers or NoPointers()
        self._has_successor = has_successor
        self._is_kept = has_successor
        self._storing = 0
        self._removals: dict[str, list[Work]] = {}
        self._waiting: list[Work] = []
        self._deletions: list[Work] = []

    def add(self, completed: CompletedCheckpoint, savepoints: tuple[str, ...]) -> None:
        """From any thread: it is stored. Blocks. Raises LostLeadership."""
        self._pointers.add(completed, savepoints)

    def storing(self) -> None:
        """A checkpoint is about to be stored, and then to get its pointer."""
        self._storing += 1

    def stored(self) -> None:
        """It is, or it failed; all that follows from that has been done."""
        self._storing -= 1
        self._go_on()

    def remove(self, metadata_path: str, then: Work) -> None:
        """Remove a pointer, and then go on."""
        if not (metadata_path and self._has_successor):
            then()
            return
        self._removals.setdefault(metadata_path, []).append(then)
        self._context.pipe_to_self(
            self._context.run_blocking(self._pointers.remove, metadata_path),
            lambda _: ForJob(self._job_id, PointerGone(metadata_path)),
            lambda error: ForJob(self._job_id, _not_removed(error)),
        )

    def gone(self, event: PointerGone) -> None:
        """A removal has succeeded."""
        for then in self._removals.pop(event.metadata_path, []):
            then()
        self._go_on()

    def when_settled(self, work: Work, *, may_begin: bool) -> None:
        """Do this when nothing is under way, and after all that waits already; at once if nothing does.

        `may_begin`: this is not wanted before. Else it only keeps its place behind others.
        """
        if self._waiting or (may_begin and self._has_successor and (self._storing or self._removals)):
            self._waiting.append(work)
        else:
            work()

    def give_up_waiting(self) -> None:
        """The job is about to fail, as another process has its name: no answer comes of what may be stored."""
        self._storing = 0
        self._removals.clear()
        self._go_on()

    def delete(self, work: Work, *, has_ended: bool) -> None:
        """Delete something of the job: at once, or when no successor starts the job again."""
        if has_ended and self._is_kept:
            self._deletions.append(work)
        else:
            work()

    def forgotten(self) -> None:
        """The job has ended, and no successor knows of it."""
        self._is_kept = False
        deletions, self._deletions = self._deletions, []
        for work in deletions:
            work()

    def _go_on(self) -> None:
        while self._waiting and not (self._storing or self._removals):
            self._waiting.pop(0)()


def _not_removed(error: BaseException) -> Deposed:
    """Whatever it is, nobody knows what a successor will find: this JobManager must not go on."""
    return Deposed(error if isinstance(error, LostLeadership) else RuntimeError(f"a pointer was not removed: {error}"))
