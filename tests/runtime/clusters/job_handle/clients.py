"""A client of a JobManager that is not there, and a small program, for tests of handles."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from understudy.actors.operators.collector import Collector
from understudy.actors.operators.keyed_operator import KeyedOperator
from understudy.actors.operators.operator import Operator
from understudy.messages import (
    AskOperator,
    CancelWithSavepoint,
    CheckpointHistory,
    CheckpointId,
    FailureCause,
    JobDetails,
    JobStatus,
    JobStatusChanged,
    OperatorAnswer,
    RequestCheckpointStatistics,
    RequestJobStatus,
    StopWithSavepoint,
    TriggerSavepoint,
    TriggerSavepointSuccess,
    message,
)
from understudy.runtime.api.environment import StreamEnvironment
from understudy.runtime.api.translation import Translation, translate
from understudy.runtime.system.future import ActorFuture


@message
class WorstSoFar:
    airport: str


class Worst(KeyedOperator):
    def process(self, record: Any, out: Collector) -> None:
        out.collect(record)


class Swallow(Operator):
    """A sink."""

    takes = "any"

    def process_batch(self, batch: Any, out: Collector) -> None: ...


def translated(env: StreamEnvironment, **settings: Any) -> Translation:
    return translate(env, default_parallelism=2, task_managers=2, work_dir="/work-dir", **settings)


class Client:
    """Answers at once; `move` tells the job's next status."""

    def __init__(self) -> None:
        self.at_first = JobStatus.CREATED
        self.status = JobStatus.RUNNING
        self.waits_ms: list[float] = []
        self.failures: tuple[FailureCause, ...] = ()
        self.asked: list[Any] = []
        self.is_silent = False
        self.savepoint: Any = TriggerSavepointSuccess("job-7", "/savepoints/1")
        self.callback: Callable[[Any], None]

    def listen(self, callback: Callable[[Any], None]) -> JobStatus:
        self.callback = callback
        return self.at_first

    def settle_output(self, timeout: float) -> None:
        self.asked.append("output")

    def promise(self) -> ActorFuture[None]:
        return ActorFuture()

    def ask(self, question: Any, *, timeout_ms: float | None = None) -> ActorFuture[Any]:
        self.asked.append(question)
        future: ActorFuture[Any] = ActorFuture()
        match question:
            case _ if self.is_silent:
                pass
            case RequestJobStatus():
                future.set(JobDetails("job-7", "worst-delay", self.status, 2, self.failures, 5, 5, "/c/5", ()))
            case TriggerSavepoint() | StopWithSavepoint() | CancelWithSavepoint():
                assert timeout_ms == math.inf, "a savepoint has as long as its checkpoint may take"
                if isinstance(self.savepoint, ActorFuture):
                    return self.savepoint
                future.set(self.savepoint)
            case RequestCheckpointStatistics(job_id):
                future.set(CheckpointHistory(job_id, 7, 5, 2, CheckpointId(4), ()))
            case _:
                future.set(None)
        return future

    def ask_operator(self, question: AskOperator, wait_ms: float, deadline_ms: float) -> ActorFuture[OperatorAnswer]:
        self.asked.append(question)
        self.waits_ms.append(wait_ms)
        future: ActorFuture[OperatorAnswer] = ActorFuture()
        future.set(OperatorAnswer(1301.0))
        return future

    def move(self, status: JobStatus) -> None:
        previous, self.status = self.status, status
        self.callback(JobStatusChanged("job-7", status, previous, 0))
