"""SavepointCoordinator: the actor that answers each request for a savepoint. Flink: SavepointCoordinator.

A child of the JobManager. Each request gets a promise of its own, named by the request's token. The request travels to
the one checkpoint that will fulfil it, and comes back with its outcome. Requests for a checkpoint, which is no
savepoint and needs no directory, are promises too:

    TriggerSavepoint, ... -> [directory checked] -> TakeSavepoint -> JobManager, CheckpointCoordinator
                                                                            |
    answer to the client  <- promise kept or broken <- PromiseSettled <-----'

A promise is kept when the checkpoint is fully acknowledged and stored, and its pointer too; it breaks with the cause
when the checkpoint is refused, declined or expires, when the job restarts or ends, and when this actor stops. A client
that has gone by then is not missed: the savepoint is there all the same.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import pykka

from ...messages import (
    CancelWithSavepoint,
    CheckpointNotTaken,
    CheckpointTaken,
    DisposeSavepoint,
    DisposeSavepointFailure,
    DisposeSavepointSuccess,
    JobId,
    RequestCheckpoint,
    StopWithSavepoint,
    TriggerSavepoint,
    TriggerSavepointFailure,
    TriggerSavepointSuccess,
)
from ...state.checkpoints.savepoints import RemovedSavepoint, Savepoints
from ..actor import Actor
from ..checkpoints.savepoint_request import Afterwards, CheckpointRequest, SavepointRequest
from ..context import Ref

log = logging.getLogger(__name__)

T = TypeVar("T")

STOPPED = "the JobManager was stopped before it was done"

SavepointAnswer: TypeAlias = (
    TriggerSavepointSuccess
    | TriggerSavepointFailure
    | CheckpointTaken
    | CheckpointNotTaken
    | DisposeSavepointSuccess
    | DisposeSavepointFailure
)


@dataclass(frozen=True, slots=True)
class TakeSavepoint:
    """To the JobManager; answered by one PromiseSettled, always."""

    job_id: JobId
    request: SavepointRequest


@dataclass(frozen=True, slots=True)
class TakeCheckpoint:
    """To the JobManager; answered by one PromiseSettled, always."""

    job_id: JobId
    request: CheckpointRequest


@dataclass(frozen=True, slots=True)
class ReleaseSavepoint:
    """To the JobManager: its pointer is gone, and with it its user's need. Answered by one PromiseSettled, always."""

    token: str
    removed: RemovedSavepoint


@dataclass(frozen=True, slots=True)
class PromiseSettled:
    """From the JobManager: the answer to the client."""

    token: str
    answer: SavepointAnswer


@dataclass(frozen=True, slots=True)
class _Outcome:
    """Blocking work for this token is over: its result, or what went wrong."""

    token: str
    result: Any
    error: BaseException | None = None


@dataclass(frozen=True, slots=True)
class _Promise:
    future: pykka.Future[Any]
    broken: Callable[[str], SavepointAnswer]
    """The answer for a cause."""
    go_on: Callable[[Any], None]
    """What follows the work that it begins with, if it does with any."""


class SavepointCoordinator(Actor):
    """One JobManager's."""

    def __init__(self, savepoints: Savepoints, job_manager: Ref) -> None:
        self._savepoints = savepoints
        self._job_manager = job_manager
        self._promises: dict[str, _Promise] = {}

    @property
    def open_promises(self) -> int:
        return len(self._promises)

    def on_receive(self, message: Any) -> Any:
        match message:
            case TriggerSavepoint(job_id, target):
                return self._take(job_id, target, Afterwards.RUN_ON)
            case CancelWithSavepoint(job_id, target):
                return self._take(job_id, target, Afterwards.CANCEL)
            case StopWithSavepoint(job_id, target, drain):
                return self._take(job_id, target, Afterwards.DRAIN if drain else Afterwards.STOP)
            case RequestCheckpoint(job_id, is_full):
                return self._take_checkpoint(job_id, is_full)
            case DisposeSavepoint(path, working_directory):
                return self._dispose(path, working_directory)
            case _Outcome():
                self._go_on(message)
            case PromiseSettled(token, answer):
                self._settle(token, answer)
            case _:
                return super().on_receive(message)
        return None

    def on_stop(self) -> None:
        for token in list(self._promises):
            self._break(token, STOPPED)

    # -- taking

    def _take(self, job_id: JobId, target_directory: str | None, afterwards: Afterwards) -> pykka.Future[Any]:
        request = SavepointRequest(self.context.new_id("savepoint"), target_directory, afterwards)

        def broken(cause: str) -> TriggerSavepointFailure:
            return TriggerSavepointFailure(job_id, cause)

        def go_on(_: Any) -> None:
            self._job_manager.tell(TakeSavepoint(job_id, request))

        return self._promise(request.token, broken, go_on, self._savepoints.check_target, job_id, target_directory)

    def _take_checkpoint(self, job_id: JobId, is_full: bool) -> pykka.Future[Any]:
        request = CheckpointRequest(self.context.new_id("checkpoint"), is_full)

        def broken(cause: str) -> CheckpointNotTaken:
            return CheckpointNotTaken(job_id, cause)

        promise = self._promises[request.token] = _Promise(self.context.promise(), broken, lambda _: None)
        self._job_manager.tell(TakeCheckpoint(job_id, request))
        return promise.future

    # -- disposing

    def _dispose(self, path: str, working_directory: str) -> pykka.Future[Any]:
        token = self.context.new_id("disposal")

        def go_on(removed: RemovedSavepoint) -> None:
            self._job_manager.tell(ReleaseSavepoint(token, removed))

        return self._promise(token, DisposeSavepointFailure, go_on, self._savepoints.remove, path, working_directory)

    # -- promises

    def _promise(
        self,
        token: str,
        broken: Callable[[str], SavepointAnswer],
        go_on: Callable[[T], None],
        begin: Callable[..., T],
        *arguments: Any,
    ) -> pykka.Future[Any]:
        """A promise that begins with blocking work."""
        promise = self._promises[token] = _Promise(self.context.promise(), broken, go_on)
        self.context.pipe_to_self(
            self.context.run_blocking(begin, *arguments),
            lambda result: _Outcome(token, result),
            lambda error: _Outcome(token, None, error),
        )
        return promise.future

    def _go_on(self, outcome: _Outcome) -> None:
        promise = self._promises.get(outcome.token)
        if promise is None:  # broken when this actor was restarted; a pointer that is gone is gone all the same
            if isinstance(outcome.result, RemovedSavepoint):
                self._job_manager.tell(ReleaseSavepoint(outcome.token, outcome.result))
        elif outcome.error is None:
            promise.go_on(outcome.result)
        else:
            self._break(outcome.token, f"{type(outcome.error).__name__}: {outcome.error}")

    def _break(self, token: str, cause: str) -> None:
        self._settle(token, self._promises[token].broken(cause))

    def _settle(self, token: str, answer: SavepointAnswer) -> None:
        promise = self._promises.pop(token, None)
        if promise is None:
            log.warning("a request about a savepoint has its answer, and its client has gone: %s", answer)
        else:
            promise.future.set(answer)
