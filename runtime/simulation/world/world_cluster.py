"""WorldCluster: a cluster in one thread of the caller's process; its processes are those of a World.

Actors, messages, channels and checkpoints are a real cluster's. Event loops, threads, the network, the processes and
their clocks are the world's, which goes on only while somebody waits: in `job.wait()`, in `get()` of a future that the
cluster gave, or in `run_for`. A subclass says which files there are, how time passes, and what else happens.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, ClassVar, Self, TypeVar

from ....actors.context import Ref
from ....actors.job_manager.launcher import Launcher
from ....actors.tasks.job_program import JobProgram
from ....actors.tasks.watched_collector import watched_collector
from ....messages import JobId, TaskManagerId
from ....state import WorkingState
from ...api.errors import InvalidProgram
from ...api.translation import DataFrameBinding, Translation
from ...clusters.cluster import Cluster
from ...clusters.cluster_settings import ClusterSettings
from ...clusters.job_client import JobClient
from ...clusters.job_handle import JobHandle
from ...clusters.task_manager_process import TaskManagerLaunch, make_task_manager
from ...system import ActorSystem
from .blocking import SimulatedBlocking
from .call_loop import SimulatedCallLoop
from .data_plane import SimulatedDataPlane
from .dispatchers import SimulatedDispatcher, SimulatedStepping
from .launcher import SimulatedLauncher
from .network import Network, NetworkOptions
from .transport import SimulatedTransport
from .waiting import SimulatedClient, SimulatedJobHandle, WaitingRef
from .world import Process, World

T = TypeVar("T")

DATA_PORT = 7001


class WorldCluster(Cluster):
    """See the module. `world` is new, and this cluster's own."""

    _is_one_process = True

    _slice_s: ClassVar[float | None] = None
    """For so long an awaited answer keeps an event loop waiting; None: until it is there."""

    def __init__(self, settings: ClusterSettings, world: World, network: NetworkOptions) -> None:
        super().__init__(settings)
        self.world = world
        self.network = Network(world, network)
        self.launcher: SimulatedLauncher
        self._driver: Process | None = None
        self._job_managers: dict[Process, Ref] = {}
        """Also those of drivers that have ended."""
        self._driver_of: dict[JobId, Process] = {}

    # ---- life

    def start(self) -> Self:
        """Start the JobManager's process; entering the cluster as a context manager does it."""
        if self._driver is not None:
            raise RuntimeError("this cluster has been started already: make a new one")
        self._start_driver(self.world.process("job-manager"))
        return self

    def _start_driver(self, driver: Process) -> None:
        """Start a JobManager in this new process; it is the one that is meant from now on."""
        self._driver = driver
        self._system = system = self._make_system(driver)
        try:
            self._run_in(driver, system.open())
            self._start_job_manager(system)
        except BaseException:
            self.close()
            raise
        driver.when_ended(partial(self._lost, driver, system))

    def close(self) -> None:
        """Forget the world. Nothing of it is left: it had no thread and no socket."""
        for process in list(self.processes()):
            process.kill("the cluster was closed")
        self._system = self._job_manager = None

    async def _aside(self, work: Callable[[], T]) -> T:
        """Here there are no threads: the event loop waits, and the world goes on."""
        return work()

    def _lost(self, driver: Process, system: ActorSystem, reason: str) -> None:
        """A JobManager's process has ended: end every wait for its answers and for its jobs."""
        for handle in self._handles:
            if self._driver_of[handle.job_id] is driver:
                handle.lost(reason)
        system.asks.close()

    def processes(self) -> Iterator[Process]:
        """All that live, zombies too."""
        return (process for process in self.world.processes if process.is_alive)

    @property
    def job_manager(self) -> Ref:
        """Its asks give futures that let the world go on."""
        return self._running()[1]

    # ---- what a subclass supplies

    @abstractmethod
    def _blocking_delay_ms(self, process: Process) -> float:
        """How long this process's next call that blocks takes."""

    @abstractmethod
    def _hosted(self, process: Process, launch: TaskManagerLaunch) -> tuple[SimulatedDataPlane, JobProgram]:
        """The data plane of a new TaskManager, and the program that it runs."""

    @abstractmethod
    def _wait(self, is_over: Callable[[], bool], timeout_s: float | None) -> bool:
        """Let the world go on until the condition holds; False when it does not within this time."""

    def _hosts(self, process: Process, task_manager: Ref) -> None:
        """This process has begun to run a TaskManager."""

    def _task_failed(self, job_id: JobId, error: BaseException) -> None:
        """A task's code has raised, and its attempt is about to fail."""

    # ---- what Cluster asks for

    def _start_job_manager(self, system: ActorSystem) -> None:
        ref = system.spawn(self._make_job_manager(system, self._start_launcher()), name="job-manager")
        self._job_managers[self._started_driver()] = ref
        self._job_manager = WaitingRef(ref, self._wait, self._slice_s)

    def _start_launcher(self) -> Launcher:
        self.launcher = self._make_launcher(self._started_driver())
        return self.launcher

    def _make_launcher(self, driver: Process) -> SimulatedLauncher:
        tell = partial(self._tell_job_manager_of, driver)
        return SimulatedLauncher(self.world, driver, tell, self._boot, self.network.is_cut_off)

    def _tell_job_manager_of(self, driver: Process, message: object) -> None:
        """Though another one may be meant by then."""
        if (job_manager := self._job_managers.get(driver)) is not None:
            job_manager.tell(message)

    def _stop_launcher(self) -> None:
        """Its processes end with the world."""

    def _prepare(self, launch: TaskManagerLaunch, dataframes: Sequence[DataFrameBinding]) -> None:
        if dataframes:
            names = ", ".join(repr(binding.source_name) for binding in dataframes)
            raise InvalidProgram(f"source {names} reads a Spark DataFrame, which {type(self).__name__} does not have")
        self.launcher.prepare(launch)

    def _sent(self, program: JobProgram) -> JobProgram:
        """TaskManagers are in this process, and import nothing again."""
        return program

    def _check_queries(self, names: str) -> None:
        raise InvalidProgram(f"source {names} reads a query of Spark, which {type(self).__name__} does not have")

    def _client(self, system: ActorSystem, job_manager: Ref, job_id: JobId) -> JobClient:
        self._driver_of[job_id] = self._started_driver()
        return SimulatedClient(system, job_manager, job_id, self._wait, self._slice_s)

    def _handle(self, client: JobClient, translation: Translation) -> JobHandle:
        return SimulatedJobHandle(client, translation, self._wait, lambda: self.world.now_ms)

    # ---- inside

    def _started_driver(self) -> Process:
        assert self._driver is not None, "the cluster has not been started"
        return self._driver

    def _make_system(self, process: Process) -> ActorSystem:
        timing = self.world.chance(f"threads of {process.name}")
        return ActorSystem(
            process.name,
            loop=process.loop,
            clock=process.clock,
            random_source=self.world.chance(f"random of {process.name}"),
            new_id=self.world.new_id,
            transport=SimulatedTransport(self.network.of(process)),
            blocking=SimulatedBlocking(process, partial(self._blocking_delay_ms, process)),
            dispatchers={
                "asyncio": SimulatedDispatcher(process),
                "thread": SimulatedDispatcher(process, timing),
                "stepping": self._stepping(process),
            },
        )

    def _stepping(self, process: Process) -> SimulatedStepping:
        return SimulatedStepping(process)

    def _boot(self, process: Process, launch: TaskManagerLaunch, index: int) -> None:
        """A TaskManager process comes to life. Done on behalf of the new process."""
        process.loop.call_soon(self._begin, process, replace(launch, index=index))

    def _begin(self, process: Process, launch: TaskManagerLaunch) -> None:
        process.loop.create_task(self._run_task_manager(process, launch)).add_done_callback(partial(_end, process))

    async def _run_task_manager(self, process: Process, launch: TaskManagerLaunch) -> str:
        """What run_task_manager does in a real process."""
        system = self._make_system(process)
        await system.open()
        data_plane, program = self._hosted(process, launch)
        ended = process.loop.create_future()
        task_manager = system.spawn(
            make_task_manager(
                launch,
                TaskManagerId(process.name),
                program,
                data_plane,
                self._open_storage(launch.checkpoints.directory),
                self._open_storage,
                partial(_settle, ended),
                resources={},
                pid=len(self.world.processes),
                call_loop=SimulatedCallLoop(process),
                when_failed=partial(self._task_failed, launch.job_id),
                local=WorkingState(memory_mb=8, compacts=False),
                make_collector=watched_collector,
            ),
            name="task-manager",
        )
        self._hosts(process, task_manager)
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


def data_endpoint(process: Process) -> str:
    return f"tcp://{process.name}:{DATA_PORT}"


@lru_cache(maxsize=16)
def load_program(data: bytes) -> JobProgram:
    """The same for all TaskManagers of all histories of one job: each task unpickles operators of its own."""
    return JobProgram.loads(data)


def _settle(ended: asyncio.Future[str], reason: str) -> None:
    """The first reason counts."""
    if not ended.done():
        ended.set_result(reason)


def _end(process: Process, task: asyncio.Task[str]) -> None:
    """A TaskManager's process has done its work, or failed to."""
    error = task.exception()
    process.kill(task.result() if error is None else f"{type(error).__name__}: {error}")
