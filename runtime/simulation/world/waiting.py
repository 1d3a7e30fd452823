"""Waiting: references, clients and job handles for the user of a simulated cluster, which let the world go on.

Timeouts are virtual seconds. Nothing here looks at a real clock, so that to wait is part of a history.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar, cast

from ....actors.ask_errors import ActorDead, AskTimeout
from ....actors.context import Ref
from ....actors.timeouts import timeout_seconds
from ....messages import AskOperator, JobDetails, JobId, OperatorAnswer
from ...api.translation import Translation
from ...clusters.client import Client
from ...clusters.job_client import JobClient
from ...clusters.job_handle import JobHandle
from ...system import ActorFuture, ActorSystem, FutureTimeout
from .futures import Run, WorldFuture, follow

T = TypeVar("T")


class WaitingRef:
    """The JobManager's reference for code outside the world: the futures of its asks let the world go on."""

    def __init__(self, ref: Ref, run: Run, slice_s: float | None) -> None:
        self._ref = ref
        self._run = run
        self._slice_s = slice_s

    @property
    def address(self) -> str:
        return self._ref.address

    def tell(self, message: Any) -> None:
        self._ref.tell(message)

    def ask(self, message: Any, *, timeout_ms: float | None = None) -> ActorFuture[Any]:
        return follow(cast("ActorFuture[Any]", self._ref.ask(message, timeout_ms=timeout_ms)), self._run, self._slice_s)


class SimulatedClient(Client):
    """A client whose promises let the world go on."""

    def __init__(self, system: ActorSystem, job_manager: Ref, job_id: JobId, run: Run, slice_s: float | None) -> None:
        super().__init__(system, job_manager, job_id)
        self._run = run
        self._slice_s = slice_s

    def ask_operator(
        self, question: AskOperator, wait_ms: float, deadline_ms: float = math.inf
    ) -> ActorFuture[OperatorAnswer]:
        return follow(super().ask_operator(question, wait_ms, deadline_ms), self._run, self._slice_s)

    @property
    def waits_by(self) -> Callable[[], ActorFuture[None]]:
        return self.promise

    def promise(self) -> ActorFuture[None]:
        return WorldFuture(self._run, self._slice_s)


class SimulatedJobHandle(JobHandle):
    """A job handle that waits in virtual time."""

    _goes_on_by_itself = False

    def __init__(self, client: JobClient, translation: Translation, run: Run, now_ms: Callable[[], float]) -> None:
        super().__init__(client, translation)
        self._run = run
        self._now_ms = now_ms

    async def _aside(self, work: Callable[[], T]) -> T:
        """Here there are no threads: the event loop waits, and the world goes on."""
        return work()

    def wait_as_cluster(self, timeout: float | None = None, *, is_heard: bool = False) -> JobDetails:
        seconds = timeout_seconds(timeout)
        if seconds is not None and self._last_details is None:
            self._wait_for_the_end(seconds)
        return super().wait_as_cluster(is_heard=is_heard)

    def _wait_for_the_end(self, timeout: float) -> None:
        """Raises TimeoutError; returns, too, when there is nobody left who could say how it ended."""
        deadline_ms = self._now_ms() + timeout * 1000
        try:
            is_over = self._asked_for_details().result(timeout=timeout).status.is_terminal
        except (FutureTimeout, AskTimeout):
            is_over = False
        except ActorDead:
            return
        left_s = max(0.0, deadline_ms - self._now_ms()) / 1000
        if not is_over and not self._run(lambda: self._ended.is_done, left_s):
            raise self._overdue(timeout, None)  # to ask would let the world go on
