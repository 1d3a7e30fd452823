"""TakenSavepoints: the promises of one history's savepoints, what they led to, and the oracles that judge it.

Checkpoints that the user asks for are promises, too. Every request is answered, and in time once the faults are over.
From a successful answer until its disposal each savepoint is whole: pointer, metadata and every file of state can be
read. After a disposal its path leads nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from ....messages import CheckpointId, JobId
from ....state import CheckpointStorage
from ....state.checkpoints.savepoint_store import FilesystemSavepointStore
from ....state.checkpoints.savepoints import Savepoint, Savepoints
from ....state.checkpoints.snapshot_file import state_handles
from ....state.errors import MissingSavepoint, StorageError
from ..world.seen_files import SeenFiles
from .actions import CancelWithSavepoint, ClientAction, DisposeSavepoint, StopWithSavepoint, TakeCheckpoint

PROMISE_MS = 30_000.0
"""How long an answer may take after the last fault, and after it was asked for: a checkpoint expires after 20 s."""

DRAIN_MS = 120_000.0
"""The same for a drain, which repeats the final checkpoint until one completes."""

Report = Callable[[str, str], None]


@dataclass(slots=True)
class Request:
    """What was asked for, and what became of it. `path` of the savepoint, once that is known."""

    action: ClientAction
    job_id: JobId
    asked_ms: float
    path: str = ""
    answered_ms: float | None = None
    failure: str = ""
    is_lost: bool = False
    """Nobody was left to answer."""
    newest: int = 0
    """The newest checkpoint that the user knew of when it asked for one."""
    checkpoint_id: int = 0
    """The one that it was answered with."""

    @property
    def has_succeeded(self) -> bool:
        return self.answered_ms is not None and not self.failure

    @property
    def is_drained(self) -> bool:
        """Nothing comes after it."""
        return isinstance(self.action, StopWithSavepoint) and self.action.drain

    @property
    def ends_the_job(self) -> bool:
        return isinstance(self.action, StopWithSavepoint | CancelWithSavepoint)


class TakenSavepoints:
    """`root`: where savepoints are kept. `may_be_unreadable`: a fault spoils files."""

    def __init__(
        self,
        root: str,
        open_storage: Callable[[str], CheckpointStorage],
        report: Report,
        seen: SeenFiles,
        *,
        may_be_unreadable: bool,
    ) -> None:
        self._stored = Savepoints(FilesystemSavepointStore(open_storage(root)), open_storage)
        self._report = report
        self._seen = seen
        self.may_be_unreadable = may_be_unreadable
        self.requests: list[Request] = []
        self.living: dict[str, Savepoint | None] = {}
        """By path, the oldest first: savepoints announced and not disposed of; None for one that cannot be read."""

    # ---- what is there

    def request_for(self, path: str) -> Request:
        """The one that it came of."""
        return next(
            each for each in self.requests if each.path == path and not isinstance(each.action, DisposeSavepoint)
        )

    @property
    def has_drained(self) -> bool:
        """Whether the data of some job may have been ended before its time."""
        return any(each.is_drained for each in self.requests)

    def may_be_drained(self, request: Request) -> bool:
        """Whether the data of its job was wanted to end before it was answered: nothing comes after it then."""
        return any(
            each.is_drained and each.job_id == request.job_id and each.asked_ms <= (request.answered_ms or 0.0)
            for each in self.requests
        )

    def to_stay(self) -> list[str]:
        """The paths of those that nobody has asked to dispose of, the oldest first."""
        return [path for path in self.living if not self._is_to_go(path)]

    def open_requests(self, job_id: JobId) -> bool:
        """Whether a stop or a cancellation of this job has no answer yet."""
        return any(each.ends_the_job and each.job_id == job_id and each.answered_ms is None for each in self.requests)

    def ended(self, job_id: JobId) -> Request | None:
        """The request that has ended this job, if one has."""
        return next(
            (each for each in self.requests if each.ends_the_job and each.job_id == job_id and each.has_succeeded), None
        )

    # ---- what happens

    def asked(self, action: ClientAction, job_id: JobId, now_ms: float, path: str = "") -> Request:
        request = Request(action, job_id, now_ms, path)
        self.requests.append(request)
        return request

    def succeeded(self, request: Request, path: str, now_ms: float) -> None:
        """A savepoint is said to be at this path, or to be there no more."""
        request.path, request.answered_ms = path, now_ms
        if isinstance(request.action, DisposeSavepoint):
            self.living.pop(path, None)
            self._is_gone(path)
        else:
            self.living[path] = self._load(path)

    def took(self, request: Request, checkpoint_id: CheckpointId, now_ms: float) -> None:
        """This checkpoint is there now because somebody has asked for one."""
        request.checkpoint_id, request.answered_ms = checkpoint_id, now_ms

    def failed(self, request: Request, cause: str, now_ms: float) -> None:
        request.failure, request.answered_ms = cause or "for no reason", now_ms

    # ---- oracles

    def all_are_whole(self) -> None:
        """Each savepoint that is there, down to the last byte of its state; one that is to go may be going."""
        for savepoint in filter(None, self.living.values()):
            if self._is_to_go(savepoint.path):
                continue
            try:
                self._seen.once(("whole", savepoint.path), partial(self._read_all_of, savepoint))
            except (StorageError, ValueError) as error:
                self._lost(savepoint.path, error)

    def broken_promises(self, quiet_since_ms: float) -> Iterator[str]:
        """What was answered too late or never, or refused although nothing was wrong with it; `quiet_since_ms`: the
        end of the last fault.
        """
        for request in self.requests:
            since_ms = max(request.asked_ms, quiet_since_ms)
            if request.answered_ms is None:
                yield f"{request.action} was never answered"
            elif request.answered_ms - since_ms > (DRAIN_MS if request.is_drained else PROMISE_MS):
                yield f"{request.action} was answered after {request.answered_ms - since_ms:.0f} ms without a fault"
            elif request.has_succeeded and isinstance(request.action, TakeCheckpoint):
                if request.checkpoint_id <= request.newest:
                    yield f"{request.action} was answered with {request.checkpoint_id}, which was there before"
            elif isinstance(request.action, DisposeSavepoint) and request.failure and not self._may_fail(request):
                yield f"{request.path} cannot be disposed of: {request.failure}"

    # ---- inside

    def _read_all_of(self, savepoint: Savepoint) -> None:
        self._stored.load(savepoint.path)
        for state in savepoint.checkpoint.states():
            for handle in state_handles(state):
                savepoint.storage.read(handle)

    def _may_fail(self, disposal: Request) -> bool:
        """A disposal, because of a fault, or because it has been done already."""
        if disposal.is_lost:
            return True
        others = [each for each in self.requests if each.path == disposal.path and each is not disposal]
        return any(isinstance(each.action, DisposeSavepoint) for each in others) or self.may_be_unreadable

    def _is_to_go(self, path: str) -> bool:
        return any(each.path == path and isinstance(each.action, DisposeSavepoint) for each in self.requests)

    def _load(self, path: str) -> Savepoint | None:
        try:
            return self._stored.load(path)
        except (StorageError, ValueError) as error:
            self._lost(path, error)
            return None

    def _is_gone(self, path: str) -> None:
        try:
            self._stored.load(path)
        except MissingSavepoint:
            return
        except StorageError:
            pass
        self._report("nothing-discarded-is-kept", f"{path} is disposed of, and still there")

    def _lost(self, path: str, error: Exception) -> None:
        if not self.may_be_unreadable:
            self._report("nothing-retained-is-lost", f"savepoint {path} is not whole: {error}")
