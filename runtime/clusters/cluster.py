"""Cluster: the JobManager in the user's process, and the way to it. LocalCluster and SparkCluster add where
TaskManagers run.

A cluster is a context manager, plain or async. Leaving it cancels what still runs and ends every process it started.
Each submitted job gets TaskManagers of its own (`task_managers` of them), so jobs run one after another or side by
side.
"""

from __future__ import annotations

import logging
import math
from abc import abstractmethod
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Self, cast

from ...actors.context import Ref
from ...actors.job_manager.launcher import Launcher
from ...actors.remedies import remedy
from ...actors.tasks.job_program import JobProgram
from ...messages import (
    ClusterMetrics,
    DisposeSavepoint,
    JobGraph,
    JobId,
    JobSubmitted,
    SubmitJob,
)
from ...messages.known_names import known_arguments
from ...state.file_locations import AnyPath
from ..api.environment import StreamEnvironment
from ..api.translation import DataFrameBinding, Translation, translate
from ..high_availability.kept_jobs import TakenOver
from ..high_availability.submissions import StoredProgram
from ..output.delivery import OutputDelivery
from ..system import ActorFuture, ActorSystem
from .announcement import KEY_NAME, Announced, Announcement
from .as_context import AsContext
from .as_task_manager import check_may_start
from .async_twin import async_twin, warn_of_event_loop
from .beginning import Beginning
from .client import Client
from .closing import cancel_all, tidy_up
from .cluster_programs import ClusterPrograms, SubmittedProgram
from .cluster_settings import ClusterSettings
from .configuration import Configuration, as_text
from .earlier_checkpoints import warn_of_earlier_checkpoints
from .job_client import JobClient, disposed_path
from .job_figures import ANSWER_SECONDS
from .job_future import JobFuture
from .job_handle import STOP_CALL, JobHandle
from .job_manager_side import JobManagerSide
from .launching import launch_of
from .leading import leading
from .metric_reporters import MetricReporters, asked_for_metrics
from .module_path import searched_folders
from .module_sources import with_sources
from .paths import looked_at_here, savepoint_at
from .preload import warm_up_of
from .resuming import SAVEPOINT, to_be_resumed, warn_of_no_name
from .shared_storage import check_sinks
from .stream_queries import StreamQueries
from .task_manager_process import TaskManagerLaunch
from .watch import Watch
from .web import WebSide
from .work_dir import made_work_dir, remove_work_dir

log = logging.getLogger(__name__)

SUBMIT_TIMEOUT_MS = 30_000


class Cluster(JobManagerSide, WebSide, AsContext):
    """One JobManager, and TaskManagers wherever the subclass starts them."""

    def __init__(self, settings: ClusterSettings) -> None:
        self.settings = settings
        self._lead = leading(Configuration.of(settings.config).high_availability)
        self._curve = self._lead.keys
        self._work_dir = ""
        self._announced: Announced | None = None
        self._reporters: MetricReporters | None = None
        self._queries = StreamQueries()
        self._programs = ClusterPrograms(self._prepare_again, self._hold)
        self._handles: list[JobHandle] = []
        self._submitted: list[JobId] = []
        """Also those whose submission was interrupted before there was a handle."""
        self._beginning = Beginning()

    # -- life cycle

    def start(self) -> Self:
        """Start the JobManager; entering the cluster as a context manager does it. Unless `recovery.mode` is standalone
        it waits until this process leads, and goes on with its predecessor's jobs. A TaskManager gets InvalidProgram.
        """
        with self._beginning.under_way():
            self._set_up()
        return self

    def _set_up(self) -> None:
        if self._system is not None:
            raise RuntimeError("this cluster has been started already: make a new one")
        check_may_start()
        self._check_machine()
        self._work_dir = made_work_dir()
        self._system = system = ActorSystem("job-manager", bind=f"tcp://{self.settings.host}:0", curve=self._curve)
        try:
            self._delivery = OutputDelivery()
            self._get_ready()
            self._lead.begin()
            system.start()
            self._start_job_manager(system)
            figures = partial(asked_for_metrics, self._running()[1])
            self._reporters = MetricReporters(as_text(self.settings.config), figures)
            self._lead.publish(system.address, self._step_down)
            self._lead.inherited(self._take_over)
            self._web = self._serve_web()
            self._running()
        except BaseException as error:
            self._system = system  # also if the handler of a signal has closed it in the middle
            self.close()
            if isinstance(error, RuntimeError) and (advice := remedy(error)):
                raise RuntimeError(f"the cluster cannot start: {error}; {advice}") from error
            raise

    def close(self) -> None:
        """Cancel what still runs, end all TaskManagers and the JobManager, and remove temporary files. A start that is
        under way on another thread is waited for, and gives up waiting to lead.
        """
        self._close(cancel=True)

    def hand_over(self) -> None:
        """The same, but that a successor goes on with what still runs: `recovery.mode` zookeeper or storage."""
        self._close(cancel=False)

    hand_over_async = async_twin(hand_over)

    def _close(self, *, cancel: bool) -> None:
        with self._beginning.over(self._lead.end):
            system, self._system = self._system, None
        if system is None:
            self._lead.end()
            return
        if system.loop.is_elsewhere:
            return  # it goes on in the process that this one was forked from
        with ExitStack() as last_first:  # each is done, also when the user is impatient and interrupts again
            last_first.callback(remove_work_dir, self._work_dir)
            if self._announced is not None:
                last_first.callback(self._announced.close)
            last_first.callback(self._lead.end)
            last_first.callback(self._lose_jobs, "the cluster was closed")
            last_first.callback(self._close_web)
            if self._delivery is not None:
                last_first.callback(self._delivery.close)
            if self._claimant is not None:
                last_first.callback(self._claimant.close)
            last_first.callback(system.shutdown)
            if self._job_manager is not None:
                last_first.callback(tidy_up, self._job_manager)
            last_first.callback(self._stop_launcher)
            last_first.callback(setattr, self, "_job_manager", None)
            if self._reporters is not None:
                last_first.callback(self._reporters.close)
            last_first.callback(self._queries.close)
            if self._job_manager is not None and cancel:
                cancel_all(self._job_manager, self._submitted, self._handles)

    # -- for clients in other processes

    @property
    def address(self) -> str:
        """The JobManager's, as tcp://host:port."""
        return self._running()[0].address

    @property
    def prometheus_url(self) -> str | None:
        """Where Prometheus finds the figures; None: the configuration has no `metrics.reporter.prom.port`."""
        return None if self._reporters is None else self._reporters.prometheus_url

    def save_keys(self, path: str | Path) -> None:
        """Write the key that clients need to a new file of mode 0600; FileExistsError when there is one."""
        self._curve.save(path)

    def announce(self) -> Announcement:
        """Let other processes of this user find the JobManager, as the command line does, until the cluster closes."""
        if self._announced is None:
            key_file = f"{self._work_dir}/{KEY_NAME}"
            self.save_keys(key_file)
            self._announced = Announced(self._work_dir, self.address, key_file)
        return self._announced.announcement

    def _start_job_manager(self, system: ActorSystem) -> None:
        self._job_manager = system.spawn(self._make_job_manager(system, self._start_launcher()), name="job-manager")
        system.spawn(Watch(self._job_manager, lambda reason: self._lose_jobs(f"its JobManager {reason}")))

    def _step_down(self, reason: str) -> None:
        """Somebody else leads, or will. What runs here ends, and nothing of it is deleted."""
        if self._system is not None and self._job_manager is not None:
            log.warning("this JobManager leads no more, and stops: %s", reason)
            self._lose_jobs("this process leads no more, and whoever leads now goes on with the job")
            self._system.stop(self._job_manager)

    def _take_over(self, left: TakenOver) -> None:
        """Go on with a job of an earlier leader."""
        _, job_manager = self._running()
        graph = left.submitted.graph
        self._prepare(self._launch(graph, left.program), ())
        self._programs.keep(graph.job_id, SubmittedProgram(left.program, None))
        self._submitted.append(graph.job_id)
        job_manager.ask(left.submitted, timeout_ms=SUBMIT_TIMEOUT_MS).result()

    def _lose_jobs(self, reason: str) -> None:
        """There is no JobManager any more: end every wait for it."""
        for handle in self._handles:
            handle.lost(reason)

    # -- jobs

    @known_arguments(first=1)
    def submit(
        self,
        env: StreamEnvironment,
        name: str = "job",
        *,
        from_savepoint: AnyPath | None = None,
        allow_non_restored_state: bool = False,
        resume: str | None = None,
    ) -> JobHandle:
        """Translate, check and start a job; returns at once. Errors of the program are raised here.

        `from_savepoint`: the path of a savepoint, or of a retained checkpoint's folder (`chk-7`) or `_metadata` below
        this environment's checkpoint_dir. A relative one is looked for in the working directory first. Its state is
        given to the operators with the same names or uids. Raises CannotRestore when it cannot be used, and
        StateDoesNotFit, which is one, when the program does not fit it; then no job is started.
        `allow_non_restored_state`: state of operators that the program does not have is left behind.
        `resume="latest"`: the job owns its name in the environment's checkpoint_dir, and goes on from the newest whole
        checkpoint of the jobs that owned it before; `from_savepoint` counts when there is none. With
        `resume="savepoint"` it owns its name too, and `from_savepoint` counts whatever there is, once: the same again
        is as "latest". Raises AlreadyRunning, AlreadyFinished, NoReadableCheckpoint. See docs/savepoints.md, "A driver
        that dies".
        """
        self._running()
        warn_of_event_loop(f"cluster.submit of job {name!r}", "`await cluster.submit_async(...)`", depth=3)
        warn_of_no_name(name, resume)
        return self.submit_translated(
            self.translate(env, name),
            from_savepoint=from_savepoint,
            allow_non_restored_state=allow_non_restored_state,
            resume=resume,
        )

    submit_async = async_twin(submit)

    def translate(self, env: StreamEnvironment, name: str = "job", job_id: JobId | None = None) -> Translation:
        """What `submit` does first: the job graph and program of this environment, for a cluster of this size."""
        return translate(
            env,
            name=name,
            default_parallelism=self.settings.task_managers * self.settings.slots_per_task_manager,
            task_managers=self.settings.task_managers,
            work_dir=self._work_dir,
            slots=self.settings.slots_per_task_manager,
            job_id=job_id or self._lead.job_of(name),
            restart=Configuration.of(self.settings.config).restart,
        )

    def submit_translated(
        self,
        translation: Translation,
        *,
        from_savepoint: AnyPath | None = None,
        allow_non_restored_state: bool = False,
        resume: str | None = None,
        stop_call: str = STOP_CALL,
        jobs_elsewhere: Collection[JobId] = (),
    ) -> JobHandle:
        """What `submit` does then: check the checkpoint directory, let operators check what they need, and start the
        job. `stop_call`: how to stop it with a savepoint, for texts. `jobs_elsewhere`: of other clusters, that run.
        """
        _, job_manager = self._running()
        if resume is not None:
            translation = to_be_resumed(translation, resume, self._work_dir, is_named=from_savepoint is not None)
        graph = translation.graph
        directory = graph.checkpoints.directory
        storage = self._open_storage(directory)
        if not self._is_one_process:
            check_sinks(translation.sinks)
        storage.check(with_mark=not directory.startswith(f"{self._work_dir}/"))
        if translation.queries:
            self._check_queries(", ".join(repr(each.source_name) for each in translation.queries))
        translation.check_operators(self._runs_on_this_machine())
        code = self._sent(translation.program)
        program = StoredProgram(code.dumps(), searched_folders(), warm_up_of(code))
        self._lead.keep(graph, program, self._work_dir)
        self._prepare(self._launch(graph, program), translation.dataframes)
        self._programs.keep(graph.job_id, SubmittedProgram(program, translation, stop_call))
        self._queries.prepare(translation.queries)
        self._submitted.append(graph.job_id)
        restore_from, working_directory = (None, "") if from_savepoint is None else savepoint_at(from_savepoint)
        wanted = SubmitJob(
            graph,
            self.settings.task_managers,
            self.settings.slots_per_task_manager,
            restore_from,
            allow_non_restored_state,
            working_directory,
            resume is not None,
            restore_anyway=resume == SAVEPOINT,
        )
        with looked_at_here(from_savepoint):
            submitted = job_manager.ask(wanted, timeout_ms=SUBMIT_TIMEOUT_MS).result()
        has_rivals = translation.warn(submitted, self._runs_on_this_machine(), self._submitted)
        handle = self._hold(translation, submitted, stop_call)
        handle._is_resumed = resume is not None
        if resume is None and from_savepoint is None and not has_rivals:
            warn_of_earlier_checkpoints(graph, storage, (*self._submitted, *jobs_elsewhere))
        self._queries.begin(translation.queries, handle)
        return handle

    submit_translated_async = async_twin(submit_translated)

    @property
    def handles(self) -> tuple[JobHandle, ...]:
        """Those of all jobs, submitted or restarted from the page, in this order; also after the cluster's end."""
        return tuple(self._handles)

    def _client(self, system: ActorSystem, job_manager: Ref, job_id: JobId) -> JobClient:
        return Client(system, job_manager, job_id, self._settle_output)

    def _handle(self, client: JobClient, translation: Translation) -> JobHandle:
        return JobHandle(client, translation)

    def _runs_on_this_machine(self) -> bool:
        """Whether all TaskManagers do, and so have the files that are here."""
        return True

    def dispose_savepoint(self, path: AnyPath) -> JobFuture[str]:
        """Nobody can restore from it any more, and its files go unless a running job needs them to recover.

        It has to lie below the configured directory; without one, below the checkpoint_dir of a job of this cluster.
        The future of its path, once that is done; it fails with SavepointNotDisposed.
        """
        _, job_manager = self._running()
        answer = cast("ActorFuture[Any]", job_manager.ask(DisposeSavepoint(*savepoint_at(path)), timeout_ms=math.inf))
        return JobFuture(answer, f"the disposal of savepoint {path}", read=disposed_path)

    def metrics(self, timeout: float = ANSWER_SECONDS) -> ClusterMetrics:
        """All figures of all jobs, and of their TaskManagers, as of the last heartbeats: see docs/metrics.md."""
        return asked_for_metrics(self._running()[1], timeout)

    metrics_async = async_twin(metrics)

    # -- what a subclass supplies

    def _check_machine(self) -> None:
        """Raises OSError where it lacks what the cluster needs in any case."""

    def _get_ready(self) -> None:
        """Do what takes time, before this process leads."""

    @abstractmethod
    def _start_launcher(self) -> Launcher: ...

    @abstractmethod
    def _stop_launcher(self) -> None: ...

    @abstractmethod
    def _prepare(self, launch: TaskManagerLaunch, dataframes: Sequence[DataFrameBinding]) -> None:
        """Keep the start parameters of this job's TaskManagers."""

    def _sent(self, program: JobProgram) -> JobProgram:
        """With what TaskManagers compare when they import the job's modules."""
        return with_sources(program)

    def _check_queries(self, names: str) -> None:
        """Raises InvalidProgram where these sources, which read queries of Spark, cannot run."""

    # -- inside

    def _hold(self, translation: Translation, submitted: JobSubmitted, stop_call: str) -> JobHandle:
        """A handle of a job that was started."""
        system, job_manager = self._running()
        handle = self._handle(self._client(system, job_manager, submitted.job_id), translation)
        handle.submitted, handle._stop_call = submitted, stop_call
        handle._page_url = lambda: self.web_url
        self._handles.append(handle)
        if self._reporters is not None:
            self._reporters.watch(handle)
        return handle

    def _prepare_again(self, graph: JobGraph, submitted: SubmittedProgram) -> None:
        """Get ready to start a job with the code of one that was here."""
        translation = submitted.translation
        self._lead.keep(graph, submitted.program, self._work_dir)
        self._prepare(self._launch(graph, submitted.program), () if translation is None else translation.dataframes)
        self._submitted.append(graph.job_id)

    def _launch(self, graph: JobGraph, program: StoredProgram) -> TaskManagerLaunch:
        return launch_of(graph, program, self.settings, self._running()[1].address, self._curve)
