"""LocalCluster: TaskManagers as processes of this machine. Needs neither Spark nor Java."""

from __future__ import annotations

import errno
import pkgutil
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self, Unpack

from ...actors.job_manager.launcher import Launcher
from ...messages.error_frames import end_at_the_caller
from ..api.errors import InvalidProgram, InvalidSetting
from ..api.translation import DataFrameBinding
from ..high_availability.settings import RecoveryMode
from ..system.descriptors import descriptors_of_process
from .cluster import Cluster
from .cluster_settings import ClusterOptions, ClusterSettings, known_settings
from .configuration import Configuration
from .local_launcher import LocalLauncher
from .task_manager_process import TaskManagerLaunch

_DEBUG_CLUSTER = "understudy.runtime.simulation.debugging.debug_cluster:DebugCluster"
"""By name: it is made of the simulator, which is made of clusters."""


FILES_OPEN, FILES_PER_TASK_MANAGER = 48, 4
"""What the driver opens for a cluster without load; with fewer, parts of it cannot start, or wait for ever."""


class LocalCluster(Cluster):
    """`with LocalCluster(task_managers=2) as cluster: cluster.submit(env)`. Further settings: ClusterSettings.

    `unix_sockets`: records pass between TaskManagers through Unix sockets that only this user can reach; without, and
    always for control, through TCP and CURVE.
    `debug`: no processes: everything runs in the caller's process and thread while it waits, for `breakpoint()`, an
    IDE or a profiler (docs/debugging.md).
    """

    def __new__(cls, *args: Any, debug: bool = False, **settings: Any) -> Self:
        """With `debug` a cluster of another class, which has the same methods. `__init__` refuses it to a subclass."""
        if not debug or cls is not LocalCluster:
            return super().__new__(cls)
        try:
            cluster: Self = pkgutil.resolve_name(_DEBUG_CLUSTER)(*args, **settings)
        except Exception as error:
            end_at_the_caller(error)
            raise
        return cluster

    @known_settings("LocalCluster")
    def __init__(
        self,
        task_managers: int = 1,
        slots_per_task_manager: int = 1,
        *,
        unix_sockets: bool = True,
        debug: bool = False,
        **settings: Unpack[ClusterOptions],
    ) -> None:
        if debug:
            raise InvalidSetting(
                f"debug: a cluster with debug=True is of another class than {type(self).__name__}, and has nothing of "
                "it: write LocalCluster(..., debug=True)"
            )
        super().__init__(ClusterSettings(task_managers, slots_per_task_manager, **settings))
        self._unix_sockets = unix_sockets
        self._launcher: LocalLauncher | None = None

    def _check_machine(self) -> None:
        wanted, count = FILES_OPEN + FILES_PER_TASK_MANAGER * self.settings.task_managers, self.settings.task_managers
        may_open = descriptors_of_process()
        if may_open is not None and may_open < wanted:
            processes = "a TaskManager" if count == 1 else f"{count} TaskManagers"
            raise OSError(
                errno.EMFILE,
                f"this process may open {may_open} files and connections, and a LocalCluster with {processes} needs "
                f"{wanted} or more: raise the limit, as by `ulimit -n 1024`",
            )

    def _get_ready(self) -> None:
        self._launcher = LocalLauncher(self._tell_job_manager, self._work_dir)

    def _start_launcher(self) -> Launcher:
        return self._made_launcher()

    def _made_launcher(self) -> LocalLauncher:
        if (launcher := self._launcher) is None:
            raise RuntimeError("this cluster is not running: another thread, or the handler of a signal, closes it")
        return launcher

    def _stop_launcher(self) -> None:
        if self._launcher is not None:
            self._launcher.close()
            self._launcher = None

    def _settle_output(self, timeout: float) -> None:
        until = time.monotonic() + timeout
        if (launcher := self._launcher) is not None:
            launcher.output.drain(timeout)
        super()._settle_output(max(0.0, until - time.monotonic()))

    def _prepare(self, launch: TaskManagerLaunch, dataframes: Sequence[DataFrameBinding]) -> None:
        if dataframes:
            names = ", ".join(repr(binding.source_name) for binding in dataframes)
            raise InvalidProgram(f"source {names} reads a Spark DataFrame: submit this job to a SparkCluster")
        launcher = self._made_launcher()
        data_folder = self._work_dir if self._unix_sockets else None
        launcher.prepare(replace(launch, data_folder=data_folder, local_folder=self._work_dir))

    def _check_queries(self, names: str) -> None:
        if Configuration.of(self.settings.config).high_availability.mode is not RecoveryMode.STANDALONE:
            raise InvalidProgram(
                f"source {names} reads a query of Spark, which ends with this program, and with recovery.mode a "
                "successor would go on without it: submit this job to a SparkCluster"
            )
