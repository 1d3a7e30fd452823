"""StandaloneCluster: a cluster of processes that stand alone, as its users hold it: its jobs, and new ones.

    with StandaloneCluster("understudy.yaml") as cluster:
        job = cluster.submit(env, "words")
        job.wait()

Leaving it leaves the jobs running. Where the JobManager may have successors, the cluster and the handles of its jobs
follow whoever leads. Their code goes into the cluster's shared folder, signed with its key; checkpoints
and results lie there too, if the program names no folder of its own, so this process has to see that folder.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
from collections.abc import Iterable, Mapping
from typing import Self

from ...actors.job_graph import slots_needed
from ...messages import HostList, JobGraph, JobId, JobSubmitted, SubmitJob
from ...messages.known_names import known_arguments
from ...state import CheckpointStorage
from ...state.file_locations import AnyPath, is_url
from ..api.checks import at_least
from ..api.environment import StreamEnvironment
from ..api.errors import ClusterTooSmall, InvalidProgram
from ..api.translation import Translation, translate
from ..clusters.async_twin import async_twin, warn_of_event_loop
from ..clusters.client import Client, FollowingClient
from ..clusters.earlier_checkpoints import warn_of_earlier_checkpoints
from ..clusters.job_handle import JobHandle
from ..clusters.module_path import searched_folders
from ..clusters.module_sources import with_sources
from ..clusters.paths import savepoint_at
from ..clusters.preload import warm_up_of
from ..clusters.remote_cluster import expect
from ..clusters.remote_errors import Refused, RemoteError
from ..clusters.resuming import SAVEPOINT, to_be_resumed, warn_of_no_name
from ..clusters.shared_storage import check_sinks, shared_storage
from ..clusters.watch import Watch
from .hosts_client import HostsClient
from .programs import Programs, ShippedProgram, files_to_ship
from .releases import differences, own_releases
from .settings import HostSettings
from .slots import too_few

log = logging.getLogger(__name__)


class StandaloneCluster(HostsClient):
    """`settings`: the path of an understudy.yaml, or settings that were loaded; None: looked for as the command line
    does. `flags` come first, by key, as in {"jobmanager.port": "7421"}.

    Use it as a context manager, plain or async. Raises InvalidSettings, NoKeyFile.
    """

    @known_arguments("StandaloneCluster", first=1, also=("answer_timeout_ms", "savepoint_timeout_ms"))
    def __init__(
        self,
        settings: HostSettings | str | os.PathLike[str] | None = None,
        *,
        flags: Mapping[str, str] | None = None,
        **timeouts: float,
    ) -> None:
        super().__init__(settings, flags=flags, **timeouts)
        self._handles: list[JobHandle] = []

    def start(self) -> Self:
        """Open this side. Raises NoJobManager when it cannot connect to the address, and when nobody leads."""
        super().start()
        if self._line is None:
            system, job_manager = self._reached()
            system.spawn(Watch(job_manager, lambda reason: self._lose_jobs(f"its JobManager is away: {reason}")))
        return self

    def close(self) -> None:
        """End this side; jobs go on."""
        self._lose_jobs("this client of its cluster was closed, and it may run on")
        super().close()

    @known_arguments(first=1)
    def submit(
        self,
        env: StreamEnvironment,
        name: str = "job",
        *,
        task_managers: int | None = None,
        slots_per_task_manager: int = 1,
        py_files: Iterable[str | os.PathLike[str]] = (),
        from_savepoint: AnyPath | None = None,
        allow_non_restored_state: bool = False,
        resume: str | None = None,
    ) -> JobHandle:
        """Translate, check and start a job; returns at once. Errors of the program are raised here.

        `task_managers`: processes of its own that the job gets, on whichever hosts have free slots; None: as many as it
        needs. `py_files`: Python files and packages that the hosts do not have, to be shipped with it; what the program
        imports else has to be installed on the hosts. The other arguments as for a LocalCluster.
        Raises ClusterTooSmall where the settings name the TaskManager processes (`cluster.workers`), and all of their
        slots are too few, and Refused with the JobManager's reason.
        """
        warn_of_event_loop(f"cluster.submit of job {name!r}", "`await cluster.submit_async(...)`", depth=3)
        warn_of_no_name(name, resume)
        translation = self._translated(env, name, resume, is_named=from_savepoint is not None)
        hosts = self.hosts()
        _warn_of_releases(hosts)
        slots = at_least("slots_per_task_manager", slots_per_task_manager, 1)
        needed = math.ceil(slots_needed(translation.graph) / slots)
        processes = needed if task_managers is None else at_least("task_managers", task_managers, 1)
        self._check_slots(translation.graph.name, processes, slots, hosts)
        files = files_to_ship(py_files)
        graph, program = translation.graph, with_sources(translation.program)
        programs = Programs(self.settings.storage_dir, self._cluster_keys)
        shipped = ShippedProgram(program.dumps(), warm_up_of(program), searched_folders(), files)
        stored = programs.store(graph.job_id, shipped)
        path, folder = (None, "") if from_savepoint is None else savepoint_at(from_savepoint)
        anyway = resume == SAVEPOINT
        wanted = SubmitJob(
            graph, processes, slots, path, allow_non_restored_state, folder, resume is not None, stored, anyway
        )
        try:
            handle = self._submit(wanted, translation)
        except Refused:
            with contextlib.suppress(OSError):
                programs.delete(stored)
            raise
        if resume is None and from_savepoint is None:
            self._warn_of_earlier_checkpoints(graph)
        return handle

    submit_async = async_twin(submit)

    # -- inside

    def _translated(self, env: StreamEnvironment, name: str, resume: str | None, *, is_named: bool) -> Translation:
        work_dir = self.settings.checkpoint_dir
        translation = translate(
            env,
            name=name,
            default_parallelism=self.settings.parallelism,
            task_managers=1,
            work_dir=work_dir,
            restart=self.settings.restart,
        )
        if translation.dataframes:
            names = ", ".join(repr(binding.source_name) for binding in translation.dataframes)
            raise InvalidProgram(f"source {names} reads a Spark DataFrame: submit this job to a SparkCluster")
        if translation.queries:
            names = ", ".join(repr(binding.source_name) for binding in translation.queries)
            raise InvalidProgram(
                f"source {names} reads a query of Spark, which would end with this program, and the job would not: "
                "submit this job to a SparkCluster or LocalCluster"
            )
        if resume is not None:
            translation = to_be_resumed(translation, resume, "", is_named=is_named)
        check_sinks(translation.sinks)
        shared_storage(translation.graph.checkpoints.directory).check()
        translation.check_operators(self.settings.is_on_this_host())
        return translation

    def _check_slots(self, name: str, processes: int, slots: int, hosts: HostList) -> None:
        workers = len(self.settings.workers)
        if workers and (why := too_few(processes, slots, hosts, workers, self.settings.taskmanager_slots)):
            raise ClusterTooSmall(f"job {name!r} {why}")

    def _submit(self, wanted: SubmitJob, translation: Translation) -> JobHandle:
        submitted = self._ask(wanted, expect(JobSubmitted)).result()
        translation.warn(submitted, self.settings.is_on_this_host())
        handle = JobHandle(self._client(wanted.graph.job_id), translation)
        handle.submitted = submitted
        self._handles.append(handle)
        return handle

    def _warn_of_earlier_checkpoints(self, graph: JobGraph) -> None:
        """The job was accepted: without an answer to which jobs run, this advice is left out, and no more."""
        storage = CheckpointStorage(graph.checkpoints.directory)
        if is_url(storage.location()):
            return
        with contextlib.suppress(RemoteError):
            running = [job.job_id for job in self.jobs() if not job.status.is_terminal]
            warn_of_earlier_checkpoints(graph, storage, running)

    def _client(self, job_id: JobId) -> Client:
        system, job_manager = self._reached()
        if self._line is None:
            return Client(system, job_manager, job_id)
        return FollowingClient(system, self._line, job_id, lambda reason: self._lose(job_id, reason))

    def _lose(self, job_id: JobId, reason: str) -> None:
        for handle in self._handles:
            if handle.job_id == job_id and not handle.status.is_terminal:
                handle.lost(reason)

    def _lose_jobs(self, reason: str) -> None:
        for handle in self._handles:
            handle.lost(reason)


def _warn_of_releases(hosts: HostList) -> None:
    """The program is pickled here, and unpickled there."""
    if others := differences(hosts.releases, own_releases()):
        log.warning(
            "the cluster runs %s: install the same here, or code and records that go there may not be understood",
            others,
        )
