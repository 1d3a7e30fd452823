"""StoredCheckpoints: what must be on the disk, and what must not, judged by a job's messages about its checkpoints.

Nothing that is retained is lost: whenever a checkpoint completes, the metadata of all retained ones and each file that
they point to are read and verified. Nothing that is discarded is kept: some time after nobody needs it any more
nothing is left of a checkpoint. Each checkpoint ends once, and they complete in the order of their ids.

A job that has ended leaves what it is set up to leave: the checkpoints that it would have restored from, or nothing.

The user needs a savepoint until it is disposed of; its job until the next checkpoint is complete, since it would go
back to the savepoint; and a job that was started from it for as long as that one likes.

A file may stay when somebody could not help it: a deletion failed, or a task wrote it and did not live to tell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from ....messages import (
    CheckpointAborted,
    CheckpointCompleted,
    CheckpointConfig,
    CheckpointId,
    JobId,
    JobStatus,
    JobStatusChanged,
    StateHandle,
)
from ....state import CheckpointStorage
from ....state.checkpoint_folders import job_directory
from ....state.checkpoints.completed_checkpoints import CompletedCheckpoint
from ....state.checkpoints.snapshot_file import state_handles
from ....state.errors import StorageError
from .disk import SimulatedDisk
from .faults import Fault, FreezeProcess, PowerFailure, RottenFile, SlowFiles
from .seen_files import SeenFiles
from .trace import Trace

TIDY_MS = 15_000.0
"""How long the files of a checkpoint may still be there when nobody needs them any more."""
_AFTER_SLOW_MS = 5_000.0
"""The same for what a task was still writing then, whose files were slow, once it is written."""

_LATE_MS = 10_000.0
"""An acknowledgement that is later than this does not come."""

_UNTIDY = (FreezeProcess, PowerFailure)
"""With these a deletion may come late, or be undone."""


class StoredCheckpoints:
    """One job's checkpoints. `report` takes an oracle's name and what it found."""

    def __init__(
        self,
        job_id: JobId,
        storage: CheckpointStorage,
        disk: SimulatedDisk,
        config: CheckpointConfig,
        faults: Sequence[Fault],
        trace: Trace,
        report: Callable[[str, str], None],
        seen: SeenFiles,
    ) -> None:
        self._folder = f"/{job_directory(job_id)}/chk-"
        self._storage = storage
        self._disk = disk
        self._retain = config.retained
        self._retention = config.retention
        self._report = report
        self._trace = trace
        self._seen = seen
        kinds = {type(fault) for fault in faults}
        self._may_be_unreadable = RottenFile in kinds
        self._may_be_untidy = not kinds.isdisjoint(_UNTIDY)
        slow = [fault.at_ms + fault.for_ms + fault.extra_ms for fault in faults if isinstance(fault, SlowFiles)]
        self._tidy_at_ms = max(slow, default=-_AFTER_SLOW_MS) + _AFTER_SLOW_MS
        self.newest_completed = CheckpointId(0)
        """Of those that were announced."""
        self._restarts_ms: list[float] = []
        self._ended: set[CheckpointId] = set()
        self._unneeded_ms: dict[CheckpointId, float] = {}
        self._completed: dict[CheckpointId, tuple[StateHandle, ...]] = {}
        self._savepoints: dict[CheckpointId, tuple[StateHandle, ...]] = {}
        """Those that nobody has disposed of."""
        self._disposed: dict[CheckpointId, tuple[StateHandle, ...]] = {}
        """Those that the job would still go back to."""
        self._newest_savepoint: tuple[CheckpointId, tuple[StateHandle, ...]] | None = None
        """As long as no retained checkpoint is all that is newer: disposed of or not, the job may go back to it."""
        self._has_ended = False
        self._kept: dict[CheckpointId, tuple[StateHandle, ...]] = {}
        self._doubts: dict[CheckpointId, StorageError] = {}
        """Errors of those that were said to be there but could not be read: perhaps pushed out by a newer one since."""

    def on(self, event: object, now_ms: float) -> None:
        doubts = dict(self._doubts)
        self._take(event, now_ms)
        if isinstance(event, CheckpointCompleted) or self._has_ended:
            self._settle(doubts)

    def _settle(self, doubts: dict[CheckpointId, StorageError]) -> None:
        """A checkpoint that is still needed was needed then."""
        for checkpoint_id, error in doubts.items():
            self._doubts.pop(checkpoint_id, None)
            if checkpoint_id in self._restorable() or checkpoint_id in self._savepoints:
                self._lost(checkpoint_id, error)

    def _take(self, event: object, now_ms: float) -> None:
        match event:
            case CheckpointCompleted(checkpoint_id=checkpoint_id, path=path):
                self._on_completed(checkpoint_id, path, now_ms)
            case CheckpointAborted(checkpoint_id=checkpoint_id):
                self._end(checkpoint_id)
                self._unneeded_ms[checkpoint_id] = now_ms
            case JobStatusChanged(status=JobStatus.RESTARTING):
                self._restarts_ms.append(now_ms)
            case JobStatusChanged(status=status) if status.is_terminal:
                self._has_ended = True
                if self._retention.keeps(status):
                    self._kept = self._restorable()

    @property
    def kept(self) -> set[str]:
        """The files that a job which has ended is to leave, as the disk calls them."""
        paths = [handle.path for handles in self._kept.values() for handle in handles]
        paths += [f"{self._folder[1:]}{checkpoint_id}/_metadata" for checkpoint_id in self._kept]
        return {f"{self._storage.root}/{path}" for path in paths if path is not None}

    def kept_are_there(self) -> None:
        """After the job's end: what it leaves can be read, so that a job can be started from it."""
        for checkpoint_id in self._kept:
            self._read(checkpoint_id, f"{self._folder[1:]}{checkpoint_id}/_metadata")
        self._are_there(self._kept)
        self._settle(dict(self._doubts))

    def _restorable(self) -> dict[CheckpointId, tuple[StateHandle, ...]]:
        """What the job would restore from: the last checkpoints, and a savepoint that is not older than they."""
        retained = {each: self._completed[each] for each in list(self._completed)[-self._retain :]}
        if self._newest_savepoint is None or self._newest_savepoint[0] < min(retained, default=CheckpointId(0)):
            return retained
        return retained | dict([self._newest_savepoint])

    def disposed(self, checkpoint_id: CheckpointId) -> None:
        """The user has no savepoint there any more, and no other job was started from it."""
        handles = self._savepoints.pop(checkpoint_id, None)
        newest = max([*self._completed, *self._savepoints, *self._disposed], default=CheckpointId(0))
        if handles is not None and newest < checkpoint_id and not self._has_ended:
            self._disposed[checkpoint_id] = handles
            self._are_there({checkpoint_id: handles})
            if (error := self._doubts.pop(checkpoint_id, None)) is not None:
                self._lost(checkpoint_id, error)

    def _on_completed(self, checkpoint_id: CheckpointId, path: str, now_ms: float) -> None:
        self._end(checkpoint_id)
        self.newest_completed = max(self.newest_completed, checkpoint_id)
        completed = self._read(checkpoint_id, path)
        for superseded in [each for each in self._disposed if each < checkpoint_id]:
            del self._disposed[superseded]
            self._unneeded_ms[superseded] = now_ms
        if completed is not None and completed.is_savepoint:
            if checkpoint_id > max(self._restorable(), default=CheckpointId(0)):
                self._newest_savepoint = (checkpoint_id, _handles(completed))
            self._savepoints[checkpoint_id] = _handles(completed)
            return
        if self._completed and checkpoint_id < max(self._completed):
            self._report("checkpoint-ids", f"{checkpoint_id} completed after {max(self._completed)}")
        self._completed[checkpoint_id] = _handles(completed) if completed is not None else ()
        for pushed_out in list(self._completed)[: -self._retain]:
            self._unneeded_ms.setdefault(pushed_out, now_ms)
        self._are_there({each: self._completed[each] for each in list(self._completed)[-self._retain :]})
        if not self._may_be_untidy:
            self._others_are_gone(now_ms)

    def _end(self, checkpoint_id: CheckpointId) -> None:
        if checkpoint_id in self._ended:
            self._report("checkpoint-ids", f"checkpoint {checkpoint_id} ends for the second time")
        self._ended.add(checkpoint_id)

    def _read(self, checkpoint_id: CheckpointId, path: str) -> CompletedCheckpoint | None:
        try:
            return self._seen.metadata(self._storage, path)
        except StorageError as error:
            self._doubts.setdefault(checkpoint_id, error)
            return None

    def _are_there(self, retained: dict[CheckpointId, tuple[StateHandle, ...]]) -> None:
        for checkpoint_id, handles in retained.items():
            for handle in handles:
                try:
                    self._seen.once(("state", self._storage.root, handle), partial(self._storage.read, handle))
                except StorageError as error:
                    self._doubts.setdefault(checkpoint_id, error)
                    return

    def _lost(self, checkpoint_id: CheckpointId, error: StorageError) -> None:
        if not self._may_be_unreadable:
            self._report("nothing-retained-is-lost", f"checkpoint {checkpoint_id} cannot be read: {error}")

    def _others_are_gone(self, now_ms: float) -> None:
        if now_ms < self._tidy_at_ms:
            return
        for path, _ in self._disk.files():
            checkpoint_id = self._checkpoint_of(path)
            since_ms = now_ms - self._unneeded_ms.get(checkpoint_id, now_ms)
            if since_ms > TIDY_MS and not self._is_excused(checkpoint_id) and not self._could_not_be_removed(path):
                self._report("nothing-discarded-is-kept", f"{path} is there {since_ms:.0f} ms too long")

    def _is_excused(self, checkpoint_id: CheckpointId) -> bool:
        """Files that a task wrote and did not report before its end are unknown to all; they go with the job."""
        given_up_ms = self._unneeded_ms[checkpoint_id]
        return checkpoint_id not in self._completed and any(
            restart_ms - _LATE_MS <= given_up_ms <= restart_ms + _LATE_MS for restart_ms in self._restarts_ms
        )

    def _could_not_be_removed(self, path: str) -> bool:
        """State stays, too, while the metadata that points to it cannot be removed."""
        metadata = f"{path.rpartition('/')[0]}/_metadata"
        refused = (details[0] for _, _, what, details in self._trace.entries if what == "remove refused")
        return any(found in (path, metadata) for found in refused)

    def _checkpoint_of(self, path: str) -> CheckpointId:
        """Which checkpoint a file belongs to; 0, which is none, for files of other kinds."""
        _, found, rest = path.partition(self._folder)
        return CheckpointId(int(rest.partition("/")[0]) if found else 0)


def _handles(completed: CompletedCheckpoint) -> tuple[StateHandle, ...]:
    return tuple(handle for state in completed.states() for handle in state_handles(state))
