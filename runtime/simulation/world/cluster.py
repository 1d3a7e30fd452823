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

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, Self, TypeVar

from ....actors.context import Ref
from ....actors.job_manager import JobManager
from ....actors.job_program import JobProgram
from ....actors.launcher import Launcher
from ....messages import CheckpointCompleted, JobId, TaskManagerId
from ....state import CheckpointStorage
from ....state.savepoints import Savepoints
from ...api.environment import StreamEnvironment
from ...api.errors import InvalidProgram
from ...api.job_handle import JobClient, JobHandle
from ...api.translation import Translation
from ...clusters.cluster import Cluster, ClusterSettings
from ...clusters.configuration import Configuration
from ...clusters.task_manager_process import TaskManagerLaunch, make_task_manager
from ...system import ActorSystem
from ...transport.limits import FRAME_BYTES, WINDOW_BYTES
from .blocking import SimulatedBlocking
from .disk import SimulatedDisk
from .dispatchers import SimulatedDispatcher, SimulatedStepping
from .faults import JOB_MANAGER, Fault, Who
from .file_system import using
from .injector import Injector
from .launcher import SimulatedLauncher
from .network import Network, NetworkOptions
from .probes import Probes, WatchedDataPlane, WatchedProgram
from .storage_conditions import StorageConditions
from .stored_checkpoints import StoredCheckpoints
from .trace import Trace
from .transport import SimulatedTransport
from .waiting import SimulatedClient, SimulatedJobHandle, WaitingRef
from .world import Process, World

T = TypeVar("T")
STORAGE = "sim://storage"
DATA_PORT = 7001
_WINDOWS = (1, 2 * FRAME_BYTES, WINDOW_BYTES)
"""Of a TaskManager's channels, in bytes: a small one is used up at once, even by a slow job."""
DISK_BYTES = 1 << 30
PATIENCE_MS = 30 * 60_000.0
"""After so much virtual time without an end, a job that is waited for without a timeout is taken to hang."""


class Stalled(TimeoutError):
    """Nothing more happens, or not what was waited for: the job hangs."""


class SimulatedCluster(Cluster):
    """Settings as for LocalCluster. Paths under `sim://storage/` are on the simulated disk."""

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
        super().__init__(ClusterSettings(task_managers, slots_per_task_manager, **settings))
        self.seed = seed
        self.faults = tuple(faults)
        self.world = World(seed)
        self.network = Network(self.world, network)
        self.probes = Probes(self.world)
        self.storage = StorageConditions(self.world, self.probes.stored)
        self.disk = SimulatedDisk(
            hooks=self.storage,
            capacity_bytes=DISK_BYTES,
            now=lambda: self.world.now_ms / 1000,
            owner=lambda: self.world.current,
        )
        self.launcher: SimulatedLauncher
        self.stored: dict[JobId, StoredCheckpoints] = {}
        """What each job's checkpoints must have left on the disk."""
        self._work_dir = STORAGE
        self._driver: Process | None = None
        self._injector = Injector(self)
        self._open = ExitStack()

    # ---- life

    def start(self) -> Self:
        """Start the JobManager's process; entering the cluster as a context manager does it."""
        if self._driver is not None:
            raise RuntimeError("this cluster has been started already")
        self._open.enter_context(using(self.disk))
        self._driver = driver = self.world.process("job-manager")
        self._system = system = self._make_system(driver)
        try:
            self._run_in(driver, system.open())
            self._start_job_manager(system)
        except BaseException:
            self.close()
            raise
        driver.when_ended(self._lost)
        self._injector.arm(self.faults)
        return self

    def close(self) -> None:
        """Forget the world. Nothing of it is left: it had no thread, no socket and no file."""
        for process in list(self.processes()):
            process.kill("the cluster was closed")
        self._system = self._job_manager = None
        self._open.close()

    async def _aside(self, work: Callable[[], T]) -> T:
        """Here there are no threads: the event loop waits, and the world goes on."""
        return work()

    def _lost(self, reason: str) -> None:
        """The JobManager's process has ended: nobody shall wait for its answers, or for a job."""
        self._lose_jobs(reason)
        if self._system is not None:
            self._system.asks.close()

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

    def run_until(self, is_over: Callable[[], bool], timeout_ms: float = PATIENCE_MS) -> bool:
        """Let the world go on until the condition holds; False when it does not within this time."""
        return self.world.run_until(is_over, self.world.now_ms + timeout_ms)

    # ---- who is there

    def process(self, who: Who) -> Process | None:
        """The process that is this TaskManager, or the JobManager, now."""
        if who == JOB_MANAGER:
            return self._driver
        return self.launcher.process_of(who)

    def processes(self) -> Iterator[Process]:
        """All that live, zombies too."""
        return (process for process in self.world.processes if process.is_alive)

    @property
    def job_manager(self) -> Ref:
        """Its asks give futures that let the world go on."""
        return self._running()[1]

    # ---- what Cluster asks for

    def submit_translated(self, translation: Translation, **options: Any) -> JobHandle:
        job = super().submit_translated(translation, **options)
        config = translation.graph.checkpoints
        self.probes.exactly_once = config.exactly_once
        self.probes.may_overtake = config.alignment_timeout_ms is not None
        storage = self._open_storage(config.directory)
        stored = self.stored[job.job_id] = StoredCheckpoints(
            job.job_id, storage, self.disk, config.retained, self.faults, self.trace, self.probes.report
        )
        job.on_event(partial(self._on_event, storage))
        job.on_event(lambda event: self.probes.look(stored.on, event, self.world.now_ms))
        return job

    def translate(self, env: StreamEnvironment, name: str = "job", job_id: JobId | None = None) -> Translation:
        return super().translate(env, name, job_id or JobId(self.world.new_id("job")))

    def _start_job_manager(self, system: ActorSystem) -> None:
        job_manager = JobManager(self._job_manager_settings(), self._start_launcher(), self._make_savepoints())
        ref = system.spawn(job_manager, name="job-manager")
        self._job_manager = WaitingRef(ref, self._wait)

    def _make_savepoints(self) -> Savepoints:
        """The simulated disk outlives the cluster's processes, so nothing on it is temporary."""
        configuration = Configuration.of(self.settings.config)
        store = configuration.savepoint_store(self._open_storage, lambda: self.world.new_id("sp"))
        return Savepoints(store, self._open_storage)

    def _start_launcher(self) -> Launcher:
        assert self._driver is not None
        self.launcher = SimulatedLauncher(
            self.world, self._driver, self._tell_job_manager, self._boot, self.network.is_cut_off
        )
        return self.launcher

    def _stop_launcher(self) -> None:
        """Its processes end with the world."""

    def _prepare(self, launch: TaskManagerLaunch, translation: Translation) -> None:
        if translation.dataframes:
            names = ", ".join(repr(binding.source_name) for binding in translation.dataframes)
            raise InvalidProgram(f"source {names} reads a Spark DataFrame, which no simulated cluster has")
        self.launcher.prepare(launch)

    def _client(self, system: ActorSystem, job_manager: Ref, job_id: JobId) -> JobClient:
        return SimulatedClient(system, job_manager, job_id, self._wait)

    def _handle(self, client: JobClient, translation: Translation) -> JobHandle:
        return SimulatedJobHandle(client, translation, self._wait, lambda: self.world.now_ms)

    # ---- inside

    def _on_event(self, storage: CheckpointStorage, event: Any) -> None:
        if isinstance(event, CheckpointCompleted):
            self.probes.look(self.probes.completed, event, storage)
        self.trace.add("job", type(event).__name__, event)

    def newest_checkpoint_file(self) -> str | None:
        """Where a file of the newest completed checkpoint is, on the simulated disk: one with state, if there is."""
        paths = sorted(path for path, _ in self.disk.files() if "/chk-" in path and "/." not in path)
        completed = [path.rpartition("/")[0] for path in paths if path.endswith("/_metadata")]
        newest = max(completed, key=lambda folder: int(folder.rpartition("-")[2]), default=None)
        found = [path for path in paths if path.rpartition("/")[0] == newest]
        return next((path for path in found if not path.endswith("/_metadata")), found[0] if found else None)

    def _make_system(self, process: Process) -> ActorSystem:
        timing = self.world.chance(f"threads of {process.name}")
        return ActorSystem(
            process.name,
            loop=process.loop,
            clock=process.clock,
            random_source=self.world.chance(f"random of {process.name}"),
            new_id=self.world.new_id,
            transport=SimulatedTransport(self.network.of(process)),
            blocking=SimulatedBlocking(process, self.storage.delay_ms),
            dispatchers={
                "asyncio": SimulatedDispatcher(process),
                "thread": SimulatedDispatcher(process, timing),
                "stepping": SimulatedStepping(process),
            },
        )

    def _open_storage(self, url: str) -> CheckpointStorage:
        return CheckpointStorage(url, new_suffix=lambda: self.world.new_id("file"))

    def _boot(self, process: Process, launch: TaskManagerLaunch, index: int) -> None:
        """A TaskManager process comes to life. Done on behalf of the new process."""
        process.loop.call_soon(self._begin, process, replace(launch, index=index))

    def _begin(self, process: Process, launch: TaskManagerLaunch) -> None:
        process.loop.create_task(self._run_task_manager(process, launch)).add_done_callback(partial(_end, process))

    async def _run_task_manager(self, process: Process, launch: TaskManagerLaunch) -> str:
        """What run_task_manager does in a real process."""
        system = self._make_system(process)
        await system.open()
        data_plane = WatchedDataPlane(
            f"tcp://{process.name}:{DATA_PORT}",
            self.network.data_of(process),
            self.probes,
            self.world.chance(f"credit of {process.name}").choice(_WINDOWS),
            launch.job_id,
        )
        program = WatchedProgram.watch(_load_program(launch.program), self.probes, process, data_plane)
        ended = process.loop.create_future()
        system.spawn(
            make_task_manager(
                launch,
                TaskManagerId(process.name),
                program,
                data_plane,
                self._open_storage,
                partial(_settle, ended),
                resources={},
                pid=len(self.world.processes),
            ),
            name="task-manager",
        )
        reason: str = await ended
        await system.close()
        data_plane.close()
        return reason

    def _run_in(self, process: Process, coroutine: Any) -> None:
        """Run a coroutine in a process that has nothing else to do yet."""
        task: list[Any] = []
        process.loop.call_soon(lambda: task.append(process.loop.create_task(coroutine)))
        self.world.run_until(lambda: bool(task) and task[0].done(), self.world.now_ms)
        task[0].result()

    def _wait(self, is_over: Callable[[], bool], timeout_s: float | None) -> bool:
        if timeout_s is not None:
            return self.run_until(is_over, timeout_s * 1000)
        if not self.run_until(is_over):
            raise Stalled(f"nothing that was waited for has happened by {self.now_ms / 1000:.3f} s of virtual time")
        return True


def _settle(ended: asyncio.Future[str], reason: str) -> None:
    """The first reason counts."""
    if not ended.done():
        ended.set_result(reason)


def _end(process: Process, task: asyncio.Task[str]) -> None:
    """What a TaskManager's process is for is done, or it failed to be."""
    error = task.exception()
    process.kill(task.result() if error is None else f"{type(error).__name__}: {error}")


@lru_cache(maxsize=16)
def _load_program(data: bytes) -> JobProgram:
    """The same for all TaskManagers of all histories of one job: each task unpickles operators of its own."""
    return JobProgram.loads(data)
