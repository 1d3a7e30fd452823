"""RemoteCluster: a JobManager that runs in another process, as a client holds it. Flink: RestClusterClient.

    with RemoteCluster("tcp://127.0.0.1:4711", CurveKeys.load("key")) as cluster:
        job = cluster.find("worst-delay")
        print(cluster.trigger_savepoint(job.job_id).result())

It is an actor system of its own that speaks CURVE with the JobManager's and sends it the messages of the vocabulary.
Its methods wait for the answer, and have twins for event loops (`jobs_async`, ...); those that may take long return a
JobFuture. All raise a RemoteError.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable, Sequence
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

from ...actors.ask_errors import AskFailed, AskTimeout, RemoteActorError, Unreachable
from ...actors.context import Ref
from ...messages import (
    CancelJob,
    CancelWithSavepoint,
    CheckpointHistory,
    CheckpointNotTaken,
    CheckpointTaken,
    ClusterMetrics,
    DisposeSavepoint,
    DisposeSavepointFailure,
    DisposeSavepointSuccess,
    FlameGraph,
    JobDetails,
    JobId,
    JobList,
    JobLogs,
    JobSummary,
    JobWatermarks,
    ListJobs,
    OutletAnswer,
    ReadOutlet,
    RequestBackPressure,
    RequestCheckpoint,
    RequestCheckpointStatistics,
    RequestFlameGraph,
    RequestJobStatus,
    RequestLogs,
    RequestMetrics,
    RequestWatermarks,
    StopWithSavepoint,
    SubtaskIndex,
    TriggerSavepoint,
    TriggerSavepointFailure,
    TriggerSavepointSuccess,
    VertexBackPressureReport,
)
from ...messages.known_names import known_arguments
from ...state.file_locations import AnyPath
from ..api.checks import finite_ms
from ..system import ActorSystem, CurveKeys
from ..system.errors import InvalidAddress
from ..system.remote.address import is_reachable_base
from ..web.notebook import cluster_card
from .as_context import AsContext
from .async_twin import async_twin
from .job_client import checkpoint_taken, disposed_path, savepoint_path
from .job_errors import how_it_ended
from .job_figures import SAMPLE_SECONDS, FlameKind, check_flame_kind
from .job_future import JobFuture
from .leader_line import AnswerLost, LeaderLine, NoLeader
from .outlet import Outlet
from .paths import savepoint_at, target_folder
from .remote_errors import AmbiguousJob, KeyRefused, NoAnswer, NoJobManager, NoSuchJob, Refused
from .watermark_explanation import WatermarkExplanation, explain, explain_all
from .web import list_soon

T = TypeVar("T")
ANSWER_TIMEOUT_MS = 30_000.0
SAMPLE_TIMEOUT_MS = 1000 * SAMPLE_SECONDS
SAVEPOINT_TIMEOUT_MS = 900_000.0
"""Longer than a checkpoint may take by default, so that the JobManager's own answer comes first."""


class RemoteCluster(AsContext):
    """`address` is the JobManager's, tcp://host:port; `keys` those of its cluster.

    Use it as a context manager, plain or async. Raises InvalidSetting for a timeout that is none.
    """

    @known_arguments("RemoteCluster", first=1)
    def __init__(
        self,
        address: str,
        keys: CurveKeys,
        *,
        answer_timeout_ms: float = ANSWER_TIMEOUT_MS,
        savepoint_timeout_ms: float = SAVEPOINT_TIMEOUT_MS,
    ) -> None:
        if not is_reachable_base(address):
            raise InvalidAddress(f"{address!r} is no address of a JobManager: wanted tcp://host:port")
        self.address = address
        self._keys = keys
        self._answer_timeout_ms = finite_ms("answer_timeout_ms", answer_timeout_ms)
        self._savepoint_timeout_ms = finite_ms("savepoint_timeout_ms", savepoint_timeout_ms)
        self._system: ActorSystem | None = None
        self._line: LeaderLine | None = None
        """Where the JobManager may have successors."""

    def start(self) -> Self:
        """Open this side; nobody is asked yet. Raises NoJobManager when it cannot connect to the address."""
        try:
            host = own_host(self.address)
        except OSError as error:
            raise NoJobManager(f"cannot connect to {self.address}: {error}") from error
        name = f"client-{os.getpid()}"
        self._system = ActorSystem(name, bind=f"tcp://{host}:0", curve=self._keys, flush_ms=100).start()
        return self

    def close(self) -> None:
        """Close this side; the cluster and its jobs go on."""
        system, self._system = self._system, None
        line, self._line = self._line, None
        if line is not None:
            line.close()
        if system is not None:
            system.shutdown()

    # -- questions

    def jobs(self) -> tuple[JobSummary, ...]:
        """In the order of their submission; those that run, and the last that have ended."""
        return self._ask(ListJobs(), expect(JobList)).result().jobs

    jobs_async = async_twin(jobs)

    def find(self, wanted: str) -> JobSummary:
        """The job of this id, of this name, or whose id begins so; see `find_job`. Raises NoSuchJob, AmbiguousJob."""
        return find_job(self.jobs(), wanted)

    find_async = async_twin(find)

    def details(self, job_id: JobId) -> JobDetails:
        """Status, restarts, failures, tasks, now."""
        return self._ask(RequestJobStatus(job_id), expect(JobDetails)).result()

    details_async = async_twin(details)

    def checkpoints(self, job_id: JobId) -> CheckpointHistory:
        """Statistics of the last checkpoints."""
        return self._ask(RequestCheckpointStatistics(job_id), expect(CheckpointHistory)).result()

    checkpoints_async = async_twin(checkpoints)

    def metrics(self, job_id: JobId | None = None) -> ClusterMetrics:
        """All figures of one job, or of all, as of the last heartbeats."""
        return self._ask(RequestMetrics(job_id), expect(ClusterMetrics)).result()

    metrics_async = async_twin(metrics)

    def back_pressure(self, job_id: JobId, vertex: str, *, wait: bool = True) -> VertexBackPressureReport:
        """As `job.back_pressure`."""
        question = RequestBackPressure(job_id, vertex, wait)
        return self._ask(question, expect(VertexBackPressureReport), SAMPLE_TIMEOUT_MS).result()

    back_pressure_async = async_twin(back_pressure)

    def flame_graph(
        self, job_id: JobId, vertex: str, *, subtask: int | None = None, kind: FlameKind = "full", wait: bool = True
    ) -> FlameGraph:
        """As `job.flame_graph`."""
        check_flame_kind(kind)
        question = RequestFlameGraph(job_id, vertex, SubtaskIndex(-1 if subtask is None else subtask), kind, wait)
        return self._ask(question, expect(FlameGraph), SAMPLE_TIMEOUT_MS).result()

    flame_graph_async = async_twin(flame_graph)

    def logs(self, job_id: JobId, *, after: int = 0) -> JobLogs:
        """What its TaskManagers have logged lately; `after`: `next_after` of an earlier answer."""
        return self._ask(RequestLogs(job_id, after), expect(JobLogs)).result()

    logs_async = async_twin(logs)

    def explain_watermark(self, job_id: JobId, operator: str) -> WatermarkExplanation:
        """As `job.explain_watermark`. Raises UnknownOperator."""
        return explain(self._watermarks(job_id), operator)

    explain_watermark_async = async_twin(explain_watermark)

    def explain_watermarks(self, job_id: JobId) -> tuple[WatermarkExplanation, ...]:
        """The same of the last operator of each task."""
        return tuple(explain_all(self._watermarks(job_id)))

    explain_watermarks_async = async_twin(explain_watermarks)

    def outlet(self, job_id: JobId, name: str, *, after: str | None = None, latest: bool = False) -> Outlet:
        """As `job.outlet`; a wrong name or cursor is known with the first read. Records of classes come as these if
        this process has imported them.
        """
        return Outlet(_OutletOfRemote(self, job_id), job_id, name, after, latest)

    # -- orders

    def cancel(self, job_id: JobId) -> JobDetails:
        """End the job at once; it may take a moment more to end than the answer takes to come."""
        return self._ask(CancelJob(job_id), expect(JobDetails)).result()

    cancel_async = async_twin(cancel)

    def trigger_checkpoint(self, job_id: JobId, *, full: bool = False) -> JobFuture[CheckpointTaken]:
        """As `job.trigger_checkpoint`: its `checkpoint_id` and `path`; raises CheckpointRequestFailed."""
        return self._ask(RequestCheckpoint(job_id, full), _checkpoint_taken, self._savepoint_timeout_ms)

    def trigger_savepoint(self, job_id: JobId, directory: AnyPath | None = None) -> JobFuture[str]:
        """The savepoint's path; raises SavepointFailed with the JobManager's cause."""
        return self._savepoint(TriggerSavepoint(job_id, target_folder(directory)))

    def stop_with_savepoint(
        self, job_id: JobId, directory: AnyPath | None = None, *, drain: bool = False
    ) -> JobFuture[str]:
        """The same, of the savepoint that is the last thing the job does."""
        return self._savepoint(StopWithSavepoint(job_id, target_folder(directory), drain))

    def cancel_with_savepoint(self, job_id: JobId, directory: AnyPath | None = None) -> JobFuture[str]:
        """The same; then the job is cancelled."""
        return self._savepoint(CancelWithSavepoint(job_id, target_folder(directory)))

    def dispose_savepoint(self, path: AnyPath) -> JobFuture[str]:
        """The path of what is disposed; a relative one is looked for in the working directory first. Raises
        SavepointNotDisposed with the JobManager's cause.
        """
        return self._ask(DisposeSavepoint(*savepoint_at(path)), _disposed_path, self._savepoint_timeout_ms)

    def ask_job_manager(self, message: Any, timeout_ms: float | None = None) -> JobFuture[Any]:
        """For the web: a message of the vocabulary, and the JobManager's answer."""
        return self._ask(message, lambda answer: answer, timeout_ms)

    # -- inside

    def _repr_html_(self) -> str:
        is_open = self._system is not None
        name = f"{type(self).__name__} at {self.address}"
        return cluster_card(name, is_open, (), list_soon(self) if is_open else None, None)

    def _watermarks(self, job_id: JobId) -> JobWatermarks:
        return self._ask(RequestWatermarks(job_id), expect(JobWatermarks)).result()

    def _savepoint(self, message: TriggerSavepoint | StopWithSavepoint | CancelWithSavepoint) -> JobFuture[str]:
        return self._ask(message, _savepoint_path, self._savepoint_timeout_ms)

    def _reached(self, actor: str = "job-manager") -> tuple[ActorSystem, Ref]:
        """This side, and an actor of the other one. Raises RuntimeError when this side is not open."""
        if self._system is None:
            name = type(self).__name__
            raise RuntimeError(f"this client is not running: use it as `with {name}(...) as cluster:`")
        return self._system, self._system.actor_of(f"{self.address}/{actor}")

    def _ask(
        self,
        message: object,
        read: Callable[[Any], T],
        timeout_ms: float | None = None,
        actor: str = "job-manager",
    ) -> JobFuture[T]:
        _, asked = self._reached(actor)
        within_ms = timeout_ms or self._answer_timeout_ms
        answer: Any
        if self._line is None:
            answer = asked.ask(message, timeout_ms=within_ms)
        else:
            answer = self._line.ask(message, actor=actor, timeout_ms=within_ms, patience_ms=within_ms)
        what = f"{type(message).__name__} to the JobManager at {self.address}"
        return JobFuture(answer, what, read, self._told)

    def _told(self, error: BaseException) -> BaseException:
        """The failure in terms of addresses and keys, and not of asks and peers."""
        match error:
            case AnswerLost():
                return NoAnswer(str(error))
            case NoLeader():
                return NoJobManager(f"{error}: start one with `understudy jobmanager`")
            case _ if not isinstance(error, AskFailed):
                return error
            case RemoteActorError():
                return Refused(error.message)
            case AskTimeout():
                return NoAnswer(f"the JobManager at {self.address} did not answer: {error.reason}")
            case Unreachable(is_refused=True):
                return KeyRefused(
                    f"{self.address} does not accept this key: is it the key of another cluster, or has the cluster of "
                    "this key ended, and another one has its port now?"
                )
            case Unreachable():
                return NoJobManager(
                    f"no JobManager answers at {self.address} ({error.reason}): start one with "
                    "`understudy jobmanager`, or the program whose cluster it is; or name the address of one that runs"
                )
            case _:
                return NoJobManager(f"there is no JobManager at {self.address}: {getattr(error, 'reason', error)}")


class _OutletOfRemote:
    """How a reader reaches a job of another process."""

    def __init__(self, cluster: RemoteCluster, job_id: JobId) -> None:
        self._cluster = cluster
        self._job_id = job_id

    def request(self, question: ReadOutlet) -> JobFuture[OutletAnswer]:
        timeout_ms = question.wait_ms + self._cluster._answer_timeout_ms
        return self._cluster._ask(question, expect(OutletAnswer), timeout_ms)

    def ended(self) -> object:
        return how_it_ended(self._cluster.details(self._job_id))

    async def ended_async(self) -> object:
        return how_it_ended(await self._cluster.details_async(self._job_id))


def find_job(jobs: Sequence[JobSummary], wanted: str) -> JobSummary:
    """The job with the id `wanted`; or else the one with this name, of several the one that has not ended, and of those
    that have all ended the newest; or else the one whose id begins so. Raises NoSuchJob, AmbiguousJob.
    """
    meant = jobs_meant(jobs, wanted)
    if not meant:
        raise NoSuchJob(wanted, jobs)
    if len(meant) > 1:
        raise AmbiguousJob(wanted, meant)
    return meant[0]


def jobs_meant(jobs: Sequence[JobSummary], wanted: str) -> list[JobSummary]:
    """All that `wanted` can mean by these rules."""
    if by_id := [job for job in jobs if job.job_id == wanted]:
        return by_id
    named = [job for job in jobs if job.name == wanted]
    meant = named or [job for job in jobs if wanted and job.job_id.startswith(wanted)]
    alive = [job for job in meant if not job.status.is_terminal]
    if named and not alive:
        return [max(named, key=lambda job: job.started_ms)]
    return alive or meant


def in_digits(host: str) -> str:
    """An address of this host that can be bound to; raises OSError for a name that nobody knows."""
    family, *_, target = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0]
    return f"[{target[0]}]" if family == socket.AF_INET6 else str(target[0])


def own_host(address: str) -> str:
    """The address of this machine by which the other one can answer."""
    split = urlsplit(address)
    family, kind, protocol, _, target = socket.getaddrinfo(split.hostname, split.port, type=socket.SOCK_DGRAM)[0]
    with contextlib.closing(socket.socket(family, kind, protocol)) as probe:
        probe.connect(target)  # of a datagram socket: chooses the route, and sends nothing
        host: str = probe.getsockname()[0]
    return f"[{host}]" if family == socket.AF_INET6 else host


def expect(kind: type[T]) -> Callable[[Any], T]:
    def read(answer: Any) -> T:
        _check(answer, kind)
        return answer  # type: ignore[no-any-return]

    return read


def _checkpoint_taken(answer: Any) -> CheckpointTaken:
    _check(answer, CheckpointTaken, CheckpointNotTaken)
    return checkpoint_taken(answer)


def _savepoint_path(answer: Any) -> str:
    _check(answer, TriggerSavepointSuccess, TriggerSavepointFailure)
    return savepoint_path(answer)


def _disposed_path(answer: Any) -> str:
    _check(answer, DisposeSavepointSuccess, DisposeSavepointFailure)
    return disposed_path(answer)


def _check(answer: object, *kinds: type) -> None:
    if not isinstance(answer, kinds):
        wanted = " or ".join(kind.__name__ for kind in kinds)
        raise Refused(
            f"the JobManager answered with {type(answer).__name__}, wanted {wanted}: it may run another version of "
            "Understudy; install the same one here"
        )
