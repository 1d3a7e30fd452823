"""Clusters whose processes reach each other through links that can be cut, stalled and slowed.

Three kinds of link: to the JobManager (one), and to each TaskManager's actor and data plane (one each). TaskManagers
start with the address of the link to the JobManager, and the JobManager learns of each TaskManager under the
addresses of the links to it: its RegisterTaskManager is rewritten as it arrives. Addresses name actors, so both sides
know each other by links only. Two things pass by the links: answers to asks, which go to the asker's own address, and
the notice that an actor stopped, which names the actor by an address that the watcher does not know and is dropped; a
connection that breaks, heartbeats and the process's end tell as much.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import Any

from ...actors.job_manager.job_manager import JobManager
from ...actors.job_manager.launcher import Launcher
from ...messages import RegisterTaskManager, TaskManagerId
from ..clusters.cluster import Cluster
from ..clusters.local_cluster import LocalCluster
from ..clusters.spark_cluster import SparkCluster
from ..clusters.task_manager_process import TaskManagerLaunch
from ..system import ActorSystem
from .proxy import Link, Proxy


@dataclass(frozen=True, slots=True)
class TaskManagerLinks:
    """The links to one TaskManager."""

    index: int
    control: Link
    data: Link


class Links:
    """The links of one cluster."""

    def __init__(self) -> None:
        self.proxy = Proxy()
        self._job_manager: Link | None = None
        self._task_managers: dict[TaskManagerId, TaskManagerLinks] = {}
        self._lock = threading.Lock()

    def to_job_manager(self, address: str) -> str:
        """The address by which TaskManagers know the JobManager that is at `address`."""
        base, _, name = address.rpartition("/")
        with self._lock:
            if self._job_manager is None:
                self._job_manager = self.proxy.link(base)
            return f"{self._job_manager.address}/{name}"

    def to_task_manager(self, message: RegisterTaskManager) -> RegisterTaskManager:
        """The same registration, with addresses of links; repeated, it gets the same ones."""
        base, _, name = message.control_address.rpartition("/")
        with self._lock:
            links = self._task_managers.get(message.task_manager_id)
            if links is None:
                self._forget_predecessors(message.index)
                links = TaskManagerLinks(message.index, self.proxy.link(base), self.proxy.link(message.data_endpoint))
                self._task_managers[message.task_manager_id] = links
        return replace(message, control_address=f"{links.control.address}/{name}", data_endpoint=links.data.address)

    def job_manager(self) -> Link | None:
        return self._job_manager

    def task_managers(self) -> dict[TaskManagerId, TaskManagerLinks]:
        with self._lock:
            return dict(self._task_managers)

    def _forget_predecessors(self, index: int) -> None:
        gone = [each for each, links in self._task_managers.items() if links.index == index]
        for task_manager_id in gone:
            links = self._task_managers.pop(task_manager_id)
            self.proxy.remove(links.control)
            self.proxy.remove(links.data)


class ProxiedJobManager(JobManager):
    """A JobManager that knows its TaskManagers by the links to them."""

    links: Links

    def on_receive(self, message: Any) -> Any:
        if isinstance(message, RegisterTaskManager):
            message = self.links.to_task_manager(message)
        return super().on_receive(message)


class ProxiedCluster(Cluster):
    """Mixed into a cluster, before it."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.links = Links()

    def start(self) -> Any:
        self.links.proxy.start()
        return super().start()

    def close(self) -> None:
        try:
            super().close()
        finally:
            self.links.proxy.close()

    def _make_job_manager(
        self, system: ActorSystem, launcher: Launcher, kind: type[JobManager] = ProxiedJobManager
    ) -> JobManager:
        made = super()._make_job_manager(system, launcher, kind)
        assert isinstance(made, ProxiedJobManager)
        made.links = self.links
        return made

    def _launch(self, *arguments: Any) -> TaskManagerLaunch:
        launch = super()._launch(*arguments)
        return replace(launch, job_manager_address=self.links.to_job_manager(launch.job_manager_address))


class ProxiedLocalCluster(ProxiedCluster, LocalCluster):
    """A LocalCluster with links, which carry TCP."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, unix_sockets=False, **settings)


class ProxiedSparkCluster(ProxiedCluster, SparkCluster):
    """A SparkCluster with links, for sessions whose executors are on this machine."""
