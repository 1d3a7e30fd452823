"""Orders: checkpoints, savepoints, stop, cancel, restart, disposal. Flink: its asynchronous operations.

An order that takes long is answered with an id, under which its outcome can be asked for. Outcomes are kept for a while
after they are known, and bounded; whoever asks later gets 404, as from Flink.
"""

from __future__ import annotations

import asyncio
import math
import re
import secrets
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from ...actors.checkpoints.reason_words import in_words
from ...messages import (
    CancelJob,
    CancelWithSavepoint,
    CheckpointNotTaken,
    DisposeSavepoint,
    DisposeSavepointFailure,
    JobId,
    RequestCheckpoint,
    RestartJob,
    StopWithSavepoint,
    TriggerSavepoint,
    TriggerSavepointFailure,
)
from .errors import HttpError, bad_request, not_found
from .java_throwable import failure_cause
from .jobs import Desk, flink_id

KEPT_SECONDS = 300.0
"""How long an outcome can be asked for. Flink: rest.async.store-duration."""
MOST = 1_000
"""The number of orders that are under way or kept."""
_ID = re.compile(r"[0-9a-f]{32}")
Json = dict[str, Any]


@dataclass(slots=True)
class _Order:
    kind: str
    about: str
    """The job, or the savepoint that is disposed of."""
    message: Any
    """To the JobManager."""
    task: asyncio.Task[Json]
    done_at: float = math.inf


class Orders:
    """Those of one app."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._orders: dict[str, _Order] = {}
        self._lock = threading.Lock()
        """Held while orders come and go: threads may have an event loop each."""

    async def checkpoint(self, job_id: JobId, wanted: Json) -> str:
        """/jobs/:jobid/checkpoints. The id of the order."""
        kind = wanted.get("checkpointType") or "CONFIGURED"
        if kind not in ("CONFIGURED", "FULL"):
            raise bad_request(
                f"checkpointType: wanted CONFIGURED or FULL, found {kind!r:.50}: they are incremental if the job has "
                "the setting incremental_checkpoints"
            )
        order = RequestCheckpoint(job_id, kind == "FULL")
        return self._begin("checkpoint", job_id, order, lambda: _checkpoint(self._desk.ask(order, math.inf)), wanted)

    async def savepoint(self, job_id: JobId, wanted: Json) -> str:
        """/jobs/:jobid/savepoints. The id of the order."""
        directory = _text(wanted, "target-directory")
        if _flag(wanted, "cancel-job"):
            order: Any = CancelWithSavepoint(job_id, directory)
        else:
            order = TriggerSavepoint(job_id, directory)
        return self._begin("savepoint", job_id, order, lambda: _savepoint(self._desk.ask(order, math.inf)), wanted)

    async def stop(self, job_id: JobId, wanted: Json) -> str:
        """/jobs/:jobid/stop. The id of the order, whose outcome is that of a savepoint."""
        order = StopWithSavepoint(job_id, _text(wanted, "targetDirectory"), _flag(wanted, "drain"))
        return self._begin("savepoint", job_id, order, lambda: _savepoint(self._desk.ask(order, math.inf)), wanted)

    async def cancel(self, job_id: JobId) -> None:
        await self._desk.ask(CancelJob(job_id))

    async def restart(self, job_id: JobId, wanted: Json) -> str:
        """/jobs/:jobid/restart. The id of the order. Raises HttpError also when the job cannot be restarted at all."""
        path = _text(wanted, "savepointPath")
        if path is None:
            raise bad_request('wanted {"savepointPath": "..."}')
        cancel = _flag(wanted, "cancelJob")
        order = RestartJob(job_id, path, _flag(wanted, "allowNonRestoredState"), cancel)
        given = _trigger_id(wanted)
        if given is None or given not in self._orders:
            await self._check_restart(job_id, cancel=cancel)
        return self._begin("restart", job_id, order, lambda: self._restarted(order), wanted)

    async def dispose(self, wanted: Json) -> str:
        """/savepoint-disposal. The id of the order."""
        path = _text(wanted, "savepoint-path")
        if path is None:
            raise bad_request('wanted {"savepoint-path": "..."}')
        order = DisposeSavepoint(path)
        return self._begin("disposal", path, order, lambda: _disposal(self._desk.ask(order, math.inf)), wanted)

    async def outcome(self, kind: str, trigger: str, about: str | None = None) -> Json:
        """What became of it, or that it is in progress. Raises HttpError for an id that is not known any more."""
        with self._lock:
            self._forget()
            order = self._orders.get(trigger)
        if order is None or order.kind != kind or (about is not None and order.about != about):
            raise not_found(f"Operation {trigger[:40]!r} not found: its outcome is kept for {KEPT_SECONDS:g} s")
        if not order.task.done():
            return {"status": {"id": "IN_PROGRESS"}, "operation": None}
        return {"status": {"id": "COMPLETED"}, "operation": order.task.result()}

    async def _restarted(self, order: RestartJob) -> Json:
        """The id of the job that goes on, as /jars/:jarid/run says it."""
        begun = await self._desk.ask(order, math.inf)
        self._desk.changed()
        return {"jobid": flink_id(begun.job_id)}

    async def _check_restart(self, job_id: JobId, *, cancel: bool) -> None:
        self._desk.changed()  # it may have ended just now
        view = await self._desk.view(job_id)
        status, why = view.summary.status, view.restart_refusal
        if not why and not cancel and not status.is_terminal:
            why = f'it is {status.value}: stop it first, or say "cancelJob": true'
        if why:
            raise HttpError(HTTPStatus.CONFLICT, f"job {view.summary.name!r} cannot be restarted here: {why}")

    def _begin(self, kind: str, about: str, message: Any, work: Callable[[], Awaitable[Json]], wanted: Json) -> str:
        with self._lock:
            return self._begun(kind, about, message, work, wanted)

    def _begun(self, kind: str, about: str, message: Any, work: Callable[[], Awaitable[Json]], wanted: Json) -> str:
        self._forget()
        if len(self._orders) >= MOST:
            raise HttpError(HTTPStatus.TOO_MANY_REQUESTS, f"{MOST} orders are under way or were given just now")
        number = _trigger_id(wanted) or secrets.token_hex(16)
        if (known := self._orders.get(number)) is not None:  # the same order once more is one order
            if known.message != message:
                raise HttpError(
                    HTTPStatus.CONFLICT,
                    f"triggerId: another order has the id {number}, a {known.kind} of {known.about}: give each an id "
                    "of its own, or leave it out",
                )
        else:
            task = asyncio.ensure_future(_kept(work()))
            order = self._orders[number] = _Order(kind, about, message, task)
            task.add_done_callback(lambda _: setattr(order, "done_at", time.monotonic()))
        return number

    def _forget(self) -> None:
        oldest = time.monotonic() - KEPT_SECONDS
        self._orders = {number: order for number, order in self._orders.items() if order.done_at > oldest}


async def _kept(work: Awaitable[Json]) -> Json:
    """Its outcome; a failure in Flink's shape."""
    try:
        return await work
    except HttpError as error:
        return failure(str(error))


async def _checkpoint(answer: Awaitable[Any]) -> Json:
    """In Flink's other shape, of CheckpointInfo."""
    try:
        found = await answer
    except HttpError as error:
        return {"checkpointId": None, "failureCause": failure_cause(str(error))}
    if isinstance(found, CheckpointNotTaken):
        return {"checkpointId": None, "failureCause": failure_cause(in_words(found.cause))}
    return {"checkpointId": found.checkpoint_id, "failureCause": None}


async def _savepoint(answer: Awaitable[Any]) -> Json:
    found = await answer
    if isinstance(found, TriggerSavepointFailure):
        return failure(in_words(found.cause))
    return {"location": found.savepoint_path}


async def _disposal(answer: Awaitable[Any]) -> Json:
    found = await answer
    return failure(found.cause) if isinstance(found, DisposeSavepointFailure) else {}


def failure(text: str) -> Json:
    return {"failure-cause": failure_cause(text)}


def _text(wanted: Json, name: str) -> str | None:
    value = wanted.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or not value or "\0" in value or len(value) > 4_000:
        raise bad_request(f"{name}: wanted a path, found {value!r:.200}")
    return value


def _flag(wanted: Json, name: str) -> bool:
    value = wanted.get(name)
    if not (value is None or isinstance(value, bool)):  # 1 == True, and is a number
        raise bad_request(f"{name}: wanted true or false, found {value!r:.50}")
    return bool(value)


def _trigger_id(wanted: Json) -> str | None:
    """The client's own id of its order, if it has given one."""
    value = wanted.get("triggerId")
    if value is None:
        return None
    if not isinstance(value, str) or not _ID.fullmatch(value):
        raise bad_request(f"triggerId: wanted 32 hexadecimal digits, found {value!r:.50}")
    return value
