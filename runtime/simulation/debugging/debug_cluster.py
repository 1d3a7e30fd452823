"""DebugCluster: what `LocalCluster(debug=True)` gives: a whole cluster in the caller's thread, on real files.

    with LocalCluster(debug=True) as cluster:
        cluster.submit(env).wait()      # breakpoint() in an operator stops here, as in any function

Everything runs while the caller waits for something that the cluster gave. Time is a PacedWorld's. See
docs/debugging.md.
"""

from __future__ import annotations

import logging
import math
import random
import threading
from bdb import BdbQuit
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn, Self

from ....actors.errors import UserCodeError
from ....actors.tasks.job_program import JobProgram
from ....messages import JobDetails, JobId
from ...api.environment import StreamEnvironment
from ...api.errors import InvalidSetting
from ...api.restart import no_restart
from ...api.translation import Translation
from ...clusters.closing import cancel_all
from ...clusters.cluster_settings import ClusterSettings, known_settings
from ...clusters.configuration import Configuration
from ...clusters.job_client import JobClient
from ...clusters.job_errors import JobFailed
from ...clusters.job_handle import JobHandle
from ...clusters.task_manager_process import TaskManagerLaunch
from ...clusters.work_dir import made_work_dir, remove_work_dir
from ...high_availability.settings import RECOVERY_MODE, RecoveryMode
from ..world.data_plane import SimulatedDataPlane
from ..world.dispatchers import SimulatedGroup, SimulatedStepping
from ..world.launcher import SimulatedLauncher
from ..world.network import NetworkOptions
from ..world.process import Process
from ..world.waiting import SimulatedJobHandle
from ..world.world_cluster import WorldCluster, data_endpoint, load_program
from .paced_world import PacedWorld

log = logging.getLogger(__name__)

_REPORTERS = "metrics.reporter."
_LATENCY = NetworkOptions(min_latency_ms=0.01, max_latency_ms=0.1)
_START_MS = (0.0, 1.0)
_INTERRUPTING = (KeyboardInterrupt, BdbQuit)
"""What a user raises who has had enough, and user code does not."""


def _check_alone(settings: ClusterSettings) -> None:
    """What others would need to reach it for is refused where results count on it, and said where they do not."""
    mode = Configuration.of(settings.config).high_availability.mode
    if mode is not RecoveryMode.STANDALONE:
        raise InvalidSetting(
            f"{RECOVERY_MODE}: found {mode.value!r} with debug=True: a debug cluster is one process without an "
            "understudy, and ends with its thread; leave out debug=True, or the recovery settings"
        )
    unused = [name for name in ("web_port", "history_dir") if getattr(settings, name) is not None]
    unused += [name for name in settings.config if name.startswith(_REPORTERS)]
    if unused:
        log.warning(
            "a debug cluster runs on your thread and serves nobody: %s without effect with debug=True",
            f"{', '.join(unused)} {'is' if len(unused) == 1 else 'are'}",
        )


class DebugCluster(WorldCluster):
    """Settings as for LocalCluster. It belongs to the thread that starts it."""

    world: PacedWorld
    _slice_s = 0.05

    @known_settings("LocalCluster")
    def __init__(
        self, task_managers: int = 1, slots_per_task_manager: int = 1, *, unix_sockets: bool = True, **settings: Any
    ) -> None:
        """`unix_sockets` is of no consequence: there are no sockets. Raises InvalidSetting for a `recovery.mode`."""
        wanted = ClusterSettings(task_managers, slots_per_task_manager, **settings)
        _check_alone(wanted)
        super().__init__(wanted, PacedWorld(), _LATENCY)
        self._errors: dict[JobId, list[BaseException]] = {}
        self._is_submitting = False
        self._is_interrupted = False

    # ---- life

    def start(self) -> Self:
        if self._driver is None:
            self._work_dir = made_work_dir()
        return super().start()

    def close(self) -> None:
        """Cancel what still runs, so that operators are closed, and remove temporary files."""
        if self._system is None:
            return
        with ExitStack() as last_first:  # each is done, also when the user is impatient and interrupts again
            last_first.callback(remove_work_dir, self._work_dir)
            last_first.callback(super().close)
            self._is_interrupted = False  # from here on it is only closed
            if self._job_manager is not None:
                cancel_all(self._job_manager, self._submitted, self._handles)

    def announce(self) -> NoReturn:
        raise RuntimeError("a debug cluster cannot be reached from other processes: use LocalCluster() for that")

    def save_keys(self, path: str | Path) -> NoReturn:
        self.announce()

    # ---- what Cluster asks for

    def translate(self, env: StreamEnvironment, name: str = "job", job_id: JobId | None = None) -> Translation:
        """A job that fails stays failed, unless its environment names a restart strategy."""
        made = super().translate(env, name, job_id)
        return replace(made, graph=replace(made.graph, restart=no_restart())) if env.restart_is_default else made

    def submit_translated(self, translation: Translation, **options: Any) -> JobHandle:
        """None of the job's code runs before it is waited for."""
        self._is_submitting = True
        try:
            return super().submit_translated(translation, **options)
        finally:
            self._is_submitting = False

    def _handle(self, client: JobClient, translation: Translation) -> JobHandle:
        job_id = translation.graph.job_id
        errors = self._errors.setdefault(job_id, [])
        return _DebugJobHandle(client, translation, self._wait, lambda: self.world.now_ms, errors)

    # ---- what WorldCluster asks for

    def _make_launcher(self, driver: Process) -> SimulatedLauncher:
        return SimulatedLauncher(self.world, driver, self._tell_job_manager, self._boot, start_ms=_START_MS)

    def _blocking_delay_ms(self, process: Process) -> float:
        return 0.0

    def _hosted(self, process: Process, launch: TaskManagerLaunch) -> tuple[SimulatedDataPlane, JobProgram]:
        return SimulatedDataPlane(data_endpoint(process), self.network.data_of(process)), load_program(launch.program)

    def _stepping(self, process: Process) -> SimulatedStepping:
        return SimulatedStepping(process, _WokenFromOutside)

    def _task_failed(self, job_id: JobId, error: BaseException) -> None:
        """Keep the user's own exception; raise through to the caller what is the user's own wish."""
        cause = error.__cause__ if isinstance(error, UserCodeError) and error.__cause__ is not None else error
        if isinstance(cause, _INTERRUPTING):
            self._is_interrupted = True
            raise KeyboardInterrupt("the debugger was quit" if isinstance(cause, BdbQuit) else "") from cause
        self._errors.setdefault(job_id, []).append(cause)

    def _wait(self, is_over: Callable[[], bool], timeout_s: float | None) -> bool:
        world = self.world
        if threading.get_ident() != world.thread:
            raise RuntimeError(
                "a debug cluster runs on the thread that made it, and whoever waits makes it run: wait on that thread"
            )
        if self._is_interrupted:
            raise RuntimeError(
                "the job was interrupted in the middle of your code and cannot go on: leave the `with` block of the "
                "cluster, and submit it to a new one"
            )
        if not self._is_submitting:
            world.catch_up()
        return world.run_until(is_over, math.inf if timeout_s is None else world.now_ms + timeout_s * 1000)


class _DebugJobHandle(SimulatedJobHandle):
    """`JobFailed` has the user's own exception as its cause, with the traceback that it was raised with."""

    def __init__(
        self,
        client: JobClient,
        translation: Translation,
        run: Callable[[Callable[[], bool], float | None], bool],
        now_ms: Callable[[], float],
        errors: list[BaseException],
    ) -> None:
        super().__init__(client, translation, run, now_ms)
        self._errors = errors

    def _outcome(self, details: JobDetails) -> JobDetails:
        try:
            return super()._outcome(details)
        except JobFailed as failed:
            if not self._errors:
                raise
            raise failed from self._errors[-1 if details.restarts else 0]


class _WokenFromOutside(SimulatedGroup):
    """A source may have a thread of its own that wakes it."""

    def __init__(self, process: Process, chance: random.Random) -> None:
        super().__init__(process, chance)
        assert isinstance(process.world, PacedWorld)
        self._world = process.world

    def wake(self) -> None:
        if threading.get_ident() == self._world.thread:
            super().wake()
        else:
            self._world.from_outside(super().wake)
