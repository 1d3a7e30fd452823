"""JobDialogue: what goes in and out of a running job: questions to its operators, and its outlets. A part of the
JobHandle.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable
from typing import Any

from ...actors.ask_errors import KeyWanted, RemoteActorError
from ...actors.timeouts import timeout_seconds
from ...messages import JobVertex, OutletAnswer, ReadOutlet
from ...messages.known_names import known_arguments, there_are
from ...state import NoCurrentKey
from ..api.errors import InvalidSetting
from ..connectors import OutletSink
from .asked_job import AskedJob
from .job_client import NO_KEY, operator_question
from .job_errors import ResultsUnavailable, UnknownOperator
from .job_future import JobFuture
from .job_results import JobResults
from .outlet import Outlet

ANSWER_MARGIN_MS = 30_000.0
"""So much longer than the JobManager waits for an outlet, the client waits for the JobManager."""


class JobDialogue(AskedJob):
    """Base of the JobHandle."""

    _results: JobResults

    @known_arguments(first=1, example="job.ask('operator', message='question', key=7)")
    def ask(
        self,
        operator: str,
        *,
        message: Any,
        key: Any = NO_KEY,
        timeout: float | None = None,
        wait: bool | None = None,
        wait_ms: float = 0.0,
    ) -> JobFuture[Any]:
        """Put a question to a running operator's `on_receive`: in the subtask that holds `key`; subtask 0 without one.
        `ask_each` asks all of them.

        `message` is an instance of a message class, or plain data. `timeout`: a deadline in seconds; until then the
        question waits for a task that restarts, and is put again when its TaskManager is lost. With `wait=False` it
        fails at once when no task runs the operator; so it does without a `timeout`, unless `wait_ms` says for how
        long it is repeated.

        Raises UnknownOperator and InvalidKey at once. The future fails with NotRunning when no task runs the operator,
        now or by the deadline, and says why; with AskTimeout when the task runs and does not answer in time; with
        KeyWanted when the operator needs a key and the question has none; with RemoteActorError when the operator
        raises anything else; with ActorDead when the JobManager is gone.
        """
        return self._ask(operator, message, key, timeout, wait, wait_ms)

    @known_arguments(first=1, example="job.ask_each('operator', message='question')")
    def ask_each(
        self,
        operator: str,
        *,
        message: Any,
        timeout: float | None = None,
        wait: bool | None = None,
        wait_ms: float = 0.0,
    ) -> list[JobFuture[Any]]:
        """The same question to every subtask of the operator, without a key: a future for each, in their order.

        Each subtask has keys of its own, and goes through them by `self.keys()`: together the answers have all. They
        are of different moments, as tasks go on meanwhile. The rest is as in `ask`.
        """
        subtasks = range(self._vertex_of(operator).parallelism)
        return [self._ask(operator, message, NO_KEY, timeout, wait, wait_ms, each) for each in subtasks]

    def _ask(
        self,
        operator: str,
        message: Any,
        key: Any,
        timeout: float | None,
        wait: bool | None,
        wait_ms: float,
        subtask: int = 0,
    ) -> JobFuture[Any]:
        self._vertex_of(operator)
        if not (isinstance(wait_ms, int | float) and wait_ms >= 0):
            raise InvalidSetting(f"wait_ms must be a number of milliseconds, at least 0, found {wait_ms!r}")
        seconds = timeout_seconds(timeout)
        if wait and seconds is None and not wait_ms:
            raise InvalidSetting("ask(wait=True) wants a deadline: give it a timeout in seconds")
        deadline_ms = math.inf if seconds is None else 1000 * seconds
        if wait is False:
            wait_ms = 0.0
        elif seconds is not None and not wait_ms:
            wait_ms = deadline_ms
        question = operator_question(self.job_id, operator, message, key, deadline_ms, subtask)
        return JobFuture(
            self._client.ask_operator(question, wait_ms, deadline_ms),
            f"the question to operator {operator!r} of job {self._graph.name!r}",
            read=lambda answered: answered.answer,
            failed=lambda error: self._of_operator(operator, error),
        )

    def outlet(self, name: str, *, after: str | None = None, latest: bool = False) -> Outlet:
        """A reader of what `to_outlet(name=...)` has committed: `for` or `async for` gives OutletBatches.

        `after`: the cursor of the last batch that was taken, of this job or of one whose savepoint or checkpoint it was
        started from; None: from the oldest record that is kept, or with `latest` from what is committed next.
        Raises UnknownOperator, ResultsUnavailable for another sink, and InvalidCursor for an empty cursor; of any other
        wrong one the first read says so.
        """
        sink = self._results.outlet_or_sink(name)
        if not isinstance(sink, OutletSink):
            raise ResultsUnavailable(f"sink {name!r} is a {type(sink).__name__}; an outlet is made by to_outlet(name)")
        if after is not None and (latest or not isinstance(after, str)):
            raise InvalidSetting(f"outlet: wanted a cursor (a str), or latest=True, found {after!r} and {latest!r}")
        return Outlet(_OutletOfJob(self), self.job_id, name, after, latest, self._results.record_types)

    def _vertex_of(self, operator: str) -> JobVertex:
        """Where it runs; raises UnknownOperator."""
        known = [(described, vertex) for vertex in self._graph.vertices for described in vertex.operators]
        for described, vertex in known:
            if operator in (described.name, described.operator_id):
                return vertex
        names = [described.name for described, _ in known]
        raise UnknownOperator(f"job {self._graph.name!r} has no operator {operator!r}{there_are(operator, names)}")

    def _of_operator(self, operator: str, error: BaseException) -> BaseException:
        """The failure in terms of the operator, and not of the process that its task runs in."""
        asked = f"operator {operator!r}"
        match error:
            case NoCurrentKey():
                return KeyWanted(asked, str(error).removeprefix(f"{asked}: "))
            case RemoteActorError(type_name=NoCurrentKey.__name__):
                return KeyWanted(asked, error.message.removeprefix(f"{asked}: "))
            case RemoteActorError() if error.address != self._client.job_manager.address:
                return RemoteActorError(asked, error.type_name, error.message, error.traceback_text)
            case _:
                return error


class _OutletOfJob:
    """How a reader reaches the job of a handle."""

    def __init__(self, job: Any) -> None:
        self._job = job

    def request(self, question: ReadOutlet) -> JobFuture[OutletAnswer]:
        answer = self._job._client.ask(question, timeout_ms=question.wait_ms + ANSWER_MARGIN_MS)
        return JobFuture(answer, f"the next batch of outlet {question.operator!r}", failed=self._job._or_lost)

    def ended(self) -> object:
        return self._job.wait_as_cluster(is_heard=True)  # whoever reads was warned of the event loop

    def ended_async(self) -> Awaitable[object]:
        return self._job.wait_async()  # type: ignore[no-any-return]
