"""SimulatedCluster: a whole cluster in one thread, on virtual time, with faults. One seed is one history.

    with SimulatedCluster(task_managers=2, seed=7, faults=[KillProcess(at_ms=5_000, who=1)]) as cluster:
        job = cluster.submit(env)
        job.wait()
        assert sorted(job.results("out")) == expected

The JobManager, TaskManagers, tasks, operators, channels and storage code are those of a real cluster. The event loop,
the clocks, the network, the disk and the processes are simulated. Time goes on only while somebody waits: in
`job.wait()`, in `get()` of a future that the cluster gave, or in `run_for`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import partial
from typing import Any, Self

from ....actors.tasks.job_program import JobProgram
from ....actors.timeouts import timeout_seconds
from ....messages import CheckpointCompleted, JobId
from ....state import CheckpointStorage
from ....state.checkpoints.job_runs import Claimant, RunOwner
from ....state.checkpoints.savepoints import Savepoints
from ...api.environment import StreamEnvironment
from ...api.translation import Translation
from ...clusters.cluster_settings import ClusterSettings, known_settings
from ...clusters.configuration import Configuration
from ...clusters.job_handle import JobHandle
from ...clusters.task_manager_process import TaskManagerLaunch
from ...system import ActorSystem
from ...transport.limits import FRAME_BYTES, WINDOW_BYTES
from .disk import SimulatedDisk
from .faults import JOB_MANAGER, Fault, RottenFile, Who
from .file_system import using
from .injector import Injector
from .network import NetworkOptions
from .probes import Probes, WatchedDataPlane, WatchedProgram
from .seen_files import SeenFiles
from .storage_conditions import StorageConditions
from .stored_checkpoints import StoredCheckpoints
from .trace import Trace
from .world import Process, World
from .world_cluster import WorldCluster, data_endpoint, load_program

STORAGE = "sim://storage"
_WINDOWS = (1, 2 * FRAME_BYTES, WINDOW_BYTES)
"""Of a TaskManager's channels, in bytes: a small one is used up at once, even by a slow job."""
DISK_BYTES = 1 << 30
PATIENCE_MS = 30 * 60_000.0
"""After so much virtual time without an end, a job that is waited for without a timeout is taken to hang."""


class Stalled(TimeoutError):
    """Nothing more happens, or not what was waited for: the job hangs."""


class SimulatedCluster(WorldCluster):
    """Settings as for LocalCluster. Paths under `sim://storage/` are on the simulated disk."""

    @known_settings("SimulatedCluster")
    def __init__(
        self,
        task_managers: int = 1,
        slots_per_task_manager: int = 1,
        *,
        seed: int = 0,
        faults: Iterable[Fault] = (),
        network: NetworkOptions = NetworkOptions(),  # noqa: B008  (frozen)
        **settings: Any,
    ) -> None:
        super().__init__(ClusterSettings(task_managers, slots_per_task_manager, **settings), World(seed), network)
        self.seed = seed
        self.faults = tuple(faults)
        self.probes = Probes(self.world)
        self.storage = StorageConditions(self.world, self.probes.stored)
        self.disk = SimulatedDisk(
            hooks=self.storage,
            capacity_bytes=DISK_BYTES,
            now=lambda: self.world.now_ms / 1000,
            owner=lambda: self.world.current,
        )
        self.seen = SeenFiles(self.disk)
        self.stored: dict[JobId, StoredCheckpoints] = {}
        """What each job's checkpoints must have left on the disk."""
        self._work_dir = STORAGE
        self.probes.files_may_rot = any(isinstance(fault, RottenFile) for fault in self.faults)
        self.storage.when_removed = self.probes.removed
        self._injector = Injector(self)
        self._drivers = 1
        self._open = ExitStack()

    # ---- life

    def start(self) -> Self:
        """Start the JobManager's process; entering the cluster as a context manager does it."""
        if self._driver is None:
            self._open.enter_context(using(self.disk))
        super().start()
        self._injector.arm(self.faults)
        return self

    def close(self) -> None:
        """Forget the world. Nothing of it is left: it had no thread, no socket and no file."""
        super().close()
        self._open.close()

    def start_again(self, host: str | None = None) -> None:
        """One more process with a JobManager, which takes what is submitted from now on, as when a service is started
        again. Those before it may be dead, frozen or running. On the same host unless one is named: who is on the same
        one sees whether it is dead.
        """
        self._drivers += 1
        self._start_driver(self.world.process(f"job-manager-{self._drivers}", host or self._started_driver().host))

    @property
    def faults_that_happened(self) -> Counter[str]:
        """By kind; a fault that found nobody to happen to is not counted."""
        return self._injector.happened

    # ---- time

    @property
    def now_ms(self) -> float:
        return self.world.now_ms

    @property
    def trace(self) -> Trace:
        return self.world.trace

    def run_for(self, duration_ms: float) -> None:
        """Let the world go on for so long."""
        self.world.run_for(duration_ms)

    def run_until(self, is_over: Callable[[], bool], timeout: float = PATIENCE_MS / 1000) -> bool:
        """Let the world go on until the condition holds; False when it does not within `timeout` virtual seconds."""
        seconds = timeout_seconds(timeout)
        patience_ms = PATIENCE_MS if seconds is None else seconds * 1000
        return self.world.run_until(is_over, self.world.now_ms + patience_ms)

    # ---- who is there

    def process(self, who: Who) -> Process | None:
        """The process that is this TaskManager, or the JobManager, now."""
        if who == JOB_MANAGER:
            return self._driver
        return self.launcher.process_of(who)

    # ---- what Cluster asks for

    def submit_translated(self, translation: Translation, **options: Any) -> JobHandle:
        job = super().submit_translated(translation, **options)
        config = job._graph.checkpoints
        self.probes.exactly_once = config.exactly_once
        self.probes.may_overtake = config.alignment_timeout_ms is not None
        storage = self._open_storage(config.directory)
        stored = self.stored[job.job_id] = StoredCheckpoints(
            job.job_id, storage, self.disk, config, self.faults, self.trace, self.probes.report, self.seen
        )
        job.on_event(partial(self._on_event, storage))
        job.on_event(lambda event: self.probes.look(stored.on, event, self.world.now_ms))
        return job

    def translate(self, env: StreamEnvironment, name: str = "job", job_id: JobId | None = None) -> Translation:
        return super().translate(env, name, job_id or JobId(self.world.new_id("job")))

    def _make_claimant(self, system: ActorSystem) -> Claimant:
        """Who is on the same host sees whether a process is dead."""
        driver = self._started_driver()
        number = self.world.processes.index(driver)
        owner = RunOwner(driver.host, number, "simulated", driver.host, driver.name)

        def is_gone(other: RunOwner) -> bool:
            return other.machine == driver.host and not self.world.processes[other.pid].is_alive

        return Claimant(owner, is_gone, system.clock.wall_ms, self.settings.name_lease_ms)

    def _make_savepoints(self) -> Savepoints:
        """The simulated disk outlives the cluster's processes, so nothing on it is temporary."""
        configuration = Configuration.of(self.settings.config)

        def new_suffix() -> str:
            return self.world.new_id("sp")

        store = configuration.savepoint_store(self._open_storage, new_suffix)
        return Savepoints(store, self._open_storage, new_suffix=new_suffix)

    # ---- inside

    def _on_event(self, storage: CheckpointStorage, event: Any) -> None:
        if isinstance(event, CheckpointCompleted):
            self.probes.look(self.probes.completed, event, storage, self.seen)
        self.trace.add("job", type(event).__name__, event)

    def newest_checkpoint_file(self, which: int = 0) -> str | None:
        """Where a file of the newest completed checkpoint is, on the simulated disk: one with state, if there is.

        `which` of them, counted round and round.
        """
        paths = sorted(path for path, _ in self.disk.files() if "/chk-" in path and "/." not in path)
        completed = [path.rpartition("/")[0] for path in paths if path.endswith("/_metadata")]
        newest = max(completed, key=lambda folder: int(folder.rpartition("-")[2]), default=None)
        found = [path for path in paths if path.rpartition("/")[0] == newest]
        with_state = [path for path in found if not path.endswith("/_metadata")] or found
        return with_state[which % len(with_state)] if with_state else None

    def _open_storage(self, url: str) -> CheckpointStorage:
        return CheckpointStorage(url, new_suffix=lambda: self.world.new_id("file"))

    def _blocking_delay_ms(self, process: Process) -> float:
        return self.storage.delay_ms(process)

    def _hosted(self, process: Process, launch: TaskManagerLaunch) -> tuple[WatchedDataPlane, JobProgram]:
        data_plane = WatchedDataPlane(
            data_endpoint(process),
            self.network.data_of(process),
            self.probes,
            self.world.chance(f"credit of {process.name}").choice(_WINDOWS),
            launch.job_id,
        )
        return data_plane, WatchedProgram.watch(load_program(launch.program), self.probes, process, data_plane)

    def _wait(self, is_over: Callable[[], bool], timeout_s: float | None) -> bool:
        if timeout_s is not None:
            return self.run_until(is_over, timeout_s)
        if not self.run_until(is_over):
            raise Stalled(f"nothing that was waited for has happened by {self.now_ms / 1000:.3f} s of virtual time")
        return True
