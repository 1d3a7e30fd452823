"""JobHandle: a submitted job, as its user holds it. Flink: JobClient.

Questions and orders return a JobFuture: `await` it, or call its `.result(timeout)`. What blocks has a twin for event
loops, `wait_async` of `wait`, `details_async` of `details` and so on; `await job` is short for `await
job.wait_async()`. The handle outlives its job, but not the cluster.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import sys
import threading
import time
from collections.abc import Callable, Generator, Sequence
from typing import Any, Final

from ...actors.ask_errors import ActorDead, AskFailed, AskTimeout, Unreachable
from ...actors.job_manager.job_names import named_among
from ...actors.timeouts import timeout_seconds
from ...messages import (
    CheckpointHistory,
    CheckpointRetention,
    FailureCause,
    JobDetails,
    JobId,
    JobStatus,
    JobStatusChanged,
    JobSubmitted,
    RequestCheckpointStatistics,
    RequestJobStatus,
    RequestJobView,
    RequestWatermarks,
    RestoredFrom,
)
from ...messages.counted import counted
from ...messages.failures import tell_line
from ..api.errors import ApiError
from ..api.hook_checks import check_function
from ..api.translation import Translation
from ..system.errors import FutureTimeout
from ..web.notebook import job_card
from .as_context import closing_error
from .async_twin import async_twin, interruptible, warn_of_event_loop
from .inlet import Inlet, InletWay, way_into
from .job_client import EventCallback, JobClient
from .job_dialogue import JobDialogue
from .job_errors import JobLost, how_it_ended
from .job_figures import ANSWER_SECONDS, JobFigures
from .job_future import JobFuture
from .job_orders import JobOrders
from .job_output import JobOutput
from .job_results import JobResults
from .readiness import Readiness, not_ready
from .watermark_explanation import WatermarkExplanation, explain

log = logging.getLogger(__name__)

STOP_CALL = "job.stop_with_savepoint()"
"""What a program writes that has started a job."""

_SOON_SECONDS = 1.0
"""For what an error would like to say, but can do without."""
_NO_TIMELINE = 2**53
"""Nothing is newer."""
_GOES_ON = "job {!r} goes on, as long as its cluster runs: job.cancel() ends it"
_OUTPUT_SECONDS = 1.0
"""So long the end of a job waits for what it has printed, if the user's own streams or handlers are slow."""


class JobHandle(JobDialogue, JobOrders, JobFigures, JobOutput):
    """One job. Made by a cluster once the JobManager has taken the job."""

    _goes_on_by_itself = True
    """Also while nobody waits."""

    def __init__(self, client: JobClient, translation: Translation) -> None:
        self.submitted = JobSubmitted(translation.graph.job_id)
        """The checkpoint it was started from, which operators found their state, and what was left behind."""
        self._client = client
        self._page_url: Callable[[], str | None] = lambda: None
        """Where its cluster's page is."""
        self._stop_call = STOP_CALL
        """How whoever has started it stops it with a savepoint, for texts. Its cluster says."""
        self._is_resumed = False
        """Whether it was submitted with `resume`, for texts. Its cluster says."""
        self._graph = translation.graph
        self._operators = translation.operators
        self._ways: dict[str, InletWay] = {}
        self._results = JobResults(translation, lambda: self.submitted.predecessors)
        self._status = JobStatus.CREATED
        self._ended = client.promise()
        self._readiness = Readiness(client.promise, lambda: self._status)
        self._last_details: JobDetails | None = None
        """After the job's end."""
        self._heard_failure: FailureCause | None = None
        """Of the latest event that had one."""
        self._listeners: list[EventCallback] = []
        self._lock = threading.Lock()
        self._has_heard = False
        self._begin(client.listen(self._on_event))

    @property
    def status(self) -> JobStatus:
        """As last heard: the job itself may be a moment ahead."""
        return self._status

    @property
    def restored_from(self) -> RestoredFrom | None:
        """The checkpoint or savepoint that it was started from; None for a fresh start."""
        return self.submitted.restored_from

    @property
    def retained_checkpoint_path(self) -> str:
        """Of a job that is known to have failed or been canceled: what it has left to start from, if it has."""
        return self._last_details.retained_checkpoint_path if self._last_details is not None else ""

    def __repr__(self) -> str:
        return f"<job {self.name!r} ({self.job_id}): {self._status.value}>"

    def _repr_html_(self) -> str:
        view = self._soon(RequestJobView(self.job_id, after_ms=_NO_TIMELINE))
        return job_card(self, self._last_details, view, self._page_url())

    # -- the beginning, and the end

    def ready(self) -> JobFuture[None]:
        """The future of the moment when all tasks run: operators can be asked then, and savepoints taken.

        It is fulfilled at once when they do, or when the job has finished. While the job restarts, it waits until all
        run again. It fails with JobFailed, JobCanceled or JobLost when the job ends otherwise.
        """
        what = f"the start of job {self.name!r}"
        return JobFuture(self._readiness.future(), what, overdue=lambda: not_ready(self._details_soon()))

    def wait(self, timeout: float | None = None) -> JobDetails:
        """Block until it has finished, and what it has printed and logged is here.

        Raises JobFailed, JobCanceled, JobLost, or TimeoutError after `timeout`, which says what failed last.
        """
        warn_of_event_loop(f"job.wait() of {self.name!r}", "`await job`, or `await job.wait_async(timeout)`")
        try:
            return self.wait_as_cluster(timeout, is_heard=True)
        except KeyboardInterrupt as error:
            if self._goes_on_by_itself:
                error.add_note(_GOES_ON.format(self.name))
            raise

    def wait_as_cluster(self, timeout: float | None = None, *, is_heard: bool = False) -> JobDetails:
        """The same, when the cluster closes: what it waits for is not the user's to await. `is_heard`: its errors come
        to the user.
        """
        seconds = timeout_seconds(timeout)
        deadline = None if seconds is None else time.monotonic() + seconds
        try:
            details = self._last_details or self._asked_for_details().result(timeout=seconds)
            if not details.status.is_terminal:
                self._ended.result(timeout=None if deadline is None else max(0.0, deadline - time.monotonic()))
                details = self._asked_for_details().result(timeout=ANSWER_SECONDS)
        except (FutureTimeout, AskTimeout) as error:
            raise self._overdue(timeout, self._details_soon()) from error
        except (ActorDead, Unreachable) as error:
            details = self._details_without_job_manager(error)
        self._client.settle_output(_OUTPUT_SECONDS)
        self._is_failure_known |= is_heard
        return self._outcome(details)

    async def wait_async(self, timeout: float | None = None) -> JobDetails:
        """The same without blocking; `await job` is short for it."""
        try:
            async with asyncio.timeout(timeout_seconds(timeout)):
                details = self._last_details or await self._asked_for_details()
                if not details.status.is_terminal:
                    with interruptible():
                        await self._ended
                    details = await self._asked_for_details()
        except TimeoutError as error:
            raise self._overdue(timeout, None) from error
        except (ActorDead, Unreachable) as error:
            details = self._details_without_job_manager(error)
        await asyncio.to_thread(self._client.settle_output, _OUTPUT_SECONDS)
        self._is_failure_known = True
        return self._outcome(details)

    def __await__(self) -> Generator[Any, None, JobDetails]:
        return self.wait_async().__await__()

    def before_close(self, timeout: float, jobs: Sequence[tuple[str, JobId]] = ()) -> None:
        """For the cluster, before it cancels the job: let a job finish that is being stopped, also with its last
        savepoint, for `timeout` seconds at most; of another that still runs, log what becomes of it and its
        checkpoints. `jobs`: those of the cluster, by name and id.
        """
        raised = closing_error()
        if (note := _GOES_ON.format(self.name)) in (notes := getattr(sys.exception(), "__notes__", [])):
            notes.remove(note)  # the interrupt has come out of `with`, too
        savepoint, deadline = self._last_savepoint, time.monotonic() + timeout
        if savepoint is not None and _is_taken(savepoint, timeout if raised is None else 0.0):
            self._ended.wait(max(0.0, deadline - time.monotonic()))
        elif self._is_to_be_stopped and raised is None:
            self._ended.wait(timeout)
        if self._is_to_be_canceled or self._status is JobStatus.CANCELLING:
            return
        if self._status.is_terminal or self._lost is not None:  # another leader may go on with it
            return
        config = self._graph.checkpoints
        lost = f"; its checkpoints in {config.directory} are deleted: retain_checkpoints='on_cancellation' keeps them"
        log.warning(
            "%s %s when %s, and is canceled: %s%s",
            named_among(self._graph, jobs),
            "had not begun to run" if self._status is JobStatus.CREATED else f"was {self._status.value}",
            "its cluster closed" if raised is None else f"{raised.__name__} closed its cluster",
            _STOPPING
            if self._is_to_be_stopped and raised is None
            else _better_end(savepoint, "" if self._is_resumed else self._stop_call, by_itself=raised is None),
            lost if config.retention is CheckpointRetention.ON_FAILURE else "",
        )

    def _when_over(self, call: Callable[[], object]) -> None:
        """Call it once the job has ended, or its cluster is gone: on whichever thread knows it first, so it must not
        block.
        """
        self._ended.add_done_callback(lambda _: call())

    def lost(self, reason: str) -> None:
        """For the cluster: there is no JobManager any more, so let those who wait fail with JobLost. The first reason
        counts.
        """
        if self._lost is not None:
            return
        self._lost = JobLost(f"job {self.name!r} was {self._status.value} when its cluster went away: {reason}")
        self._ended.try_fail(self._lost)
        self._readiness.over(self._lost)

    # -- questions and orders

    def request_details(self) -> JobFuture[JobDetails]:
        """A future of the same as `details()`; once the cluster is closed it fails with ActorDead."""
        return self._future(RequestJobStatus(self.job_id), "the question for the details")

    def details(self, timeout: float = ANSWER_SECONDS) -> JobDetails:
        """Status, restarts, failures, checkpoints and tasks, now. Once the cluster is closed they are those of the end,
        if that is known; else it raises JobLost.
        """
        try:
            details: JobDetails = self._asked_for_details().result(timeout=timeout)
        except ActorDead as error:
            if self._last_details is None:
                raise self._or_lost(error) from error
            details = self._last_details
        return details

    details_async = async_twin(details)

    def request_checkpoint_history(self) -> JobFuture[CheckpointHistory]:
        """A future of the same as `checkpoint_history()`; once the cluster is closed it fails with ActorDead."""
        return self._future(RequestCheckpointStatistics(self.job_id), "the question for the checkpoints")

    def checkpoint_history(self, timeout: float = ANSWER_SECONDS) -> CheckpointHistory:
        """The last checkpoints and those in progress: how long each took and why it failed, subtask by subtask."""
        history: CheckpointHistory = self.request_checkpoint_history().result(timeout=timeout)
        return history

    checkpoint_history_async = async_twin(checkpoint_history)

    def explain_watermark(self, operator: str, timeout: float = ANSWER_SECONDS) -> WatermarkExplanation:
        """Why event time is no further at this operator, given by name or id: which input holds it back, up to the
        split of the source, since when, and what to do. `str()` of it is meant to be read. By the last heartbeats.
        Raises UnknownOperator.
        """
        self._vertex_of(operator)
        asked = self._future(RequestWatermarks(self.job_id), "the question for the watermarks")
        return explain(asked.result(timeout=timeout), operator)

    explain_watermark_async = async_twin(explain_watermark)

    def inlet(self, name: str, *, sender: str | None = None) -> Inlet:
        """The way into a source that `env.from_inlet(name)` has made, for one sender. Raises UnknownInlet.

        `sender`: the name that its records are numbered under; they come out in the order of their numbers, each once.
        Give one that lasts to a service that sends again after a restart what it has no answer of; None: a fresh one,
        so that what this process sends again counts once.
        """
        return Inlet(self._way_into(name), sender)

    def on_event(self, callback: EventCallback) -> None:
        """Call back, on a thread of the job's own, with every event from now on: checkpoints, states, losses."""
        check_function("on_event", callback)
        with self._lock:
            self._listeners.append(callback)

    # -- inside

    def _asked_for_details(self) -> JobFuture[JobDetails]:
        """For whoever knows better what to do without a JobManager."""
        answer = self._client.ask(RequestJobStatus(self.job_id))
        return JobFuture(answer, f"the question for the details of job {self.name!r}")

    def _outcome(self, details: JobDetails) -> JobDetails:
        self._status = details.status
        self._last_details = details
        how_it_ended(details)
        self._results.keep()
        return details

    def _details_soon(self) -> JobDetails | None:
        found: JobDetails | None = self._soon(RequestJobStatus(self.job_id))
        return found

    def _soon(self, question: object) -> Any:
        """None from a JobManager that does not answer at once, or is gone."""
        try:
            return self._client.ask(question).result(timeout=_SOON_SECONDS)
        except (FutureTimeout, AskFailed):
            return None

    def _overdue(self, timeout: float | None, details: JobDetails | None) -> TimeoutError:
        """Says what is wrong with the job, as far as that is known."""
        status, failure = self._status, self._heard_failure
        restarts = ""
        if details is not None:
            status, failure = details.status, details.failures[-1] if details.failures else None
            restarts = f"; {counted(details.restarts, 'restart')} so far" if details.restarts else ""
        why = f"; last failure: {tell_line(failure)}" if failure is not None else ""
        waited = counted(timeout or 0, "second")
        return TimeoutError(f"job {self.name!r} is {status.value} after {waited}{restarts}{why}")

    def _details_without_job_manager(self, error: ActorDead | Unreachable) -> JobDetails:
        """How it ended, if that was known before its cluster went away."""
        if self._last_details is None and isinstance(error, Unreachable):
            self.lost(f"its JobManager is away: {error.reason}")
        if self._last_details is None:
            raise self._lost or error
        return self._last_details

    def _way_into(self, name: str) -> InletWay:
        with self._lock:
            if (way := self._ways.get(name)) is None:
                way = self._ways[name] = way_into(
                    self._client, self._graph, self._operators, name, self._results.record_types
                )
            return way

    def _begin(self, status: JobStatus) -> None:
        """What the JobManager said when it began to tell events; one that has come already is newer."""
        with self._lock:
            if self._has_heard:
                return
            self._status = status
        self._status_heard()

    def _on_event(self, event: Any) -> None:
        with self._lock:
            listeners = tuple(self._listeners)
            is_status = isinstance(event, JobStatusChanged) and not self._status.is_terminal
            if is_status:
                self._status, self._has_heard = event.status, True
                self._heard_failure = event.failure or self._heard_failure
        if is_status:
            self._status_heard()
        try:
            for listener in listeners:
                try:
                    listener(event)
                except (Exception, SystemExit):  # a user's callback must not silence the others
                    log.exception("a listener of job %s failed on %s", self.job_id, type(event).__name__)
        finally:
            if self._status.is_terminal:
                self._ended.try_set(None)

    def _status_heard(self) -> None:
        self._readiness.look()
        if self._status in (JobStatus.FAILED, JobStatus.CANCELED):
            self.request_details().add_done_callback(self._ended_otherwise)

    def _ended_otherwise(self, answer: concurrent.futures.Future[JobDetails]) -> None:
        """Let those who wait for the job to run know how it has ended."""
        try:
            self._outcome(answer.result())
        except ApiError as error:
            self._readiness.over(error)
        except Exception as error:  # noqa: BLE001  (the cluster went away before it could say more)
            self._readiness.over(self._lost or JobLost(f"job {self.name!r} is {self._status.value}: {error}"))


def _is_taken(savepoint: JobFuture[str], timeout: float) -> bool:
    """Whether it is there, within this many seconds."""
    try:
        return savepoint.exception(timeout) is None
    except TimeoutError:
        return False


_STOPPING: Final = "it was being stopped: wait for its end behind job.stop(), with `await job` or job.wait()"


def _better_end(savepoint: JobFuture[str] | None, stop_call: str, *, by_itself: bool) -> str:
    """The call that keeps a job from being canceled by its cluster's end. `stop_call`: empty of one with `resume`."""
    if savepoint is not None and not savepoint.done():
        return "its savepoint was asked for and is not there: write `await job.stop_with_savepoint()`, or .result()"
    if not stop_call:
        how = "wait for its end with job.wait(); " if by_itself else ""
        return f"{how}submitted again with resume='latest', it goes on from its newest checkpoint"
    how = "wait for its end with job.wait(), or end it by" if by_itself else "to go on with it later, end it by"
    return f"{how} {stop_call}"
