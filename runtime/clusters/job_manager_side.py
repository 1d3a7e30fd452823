"""JobManagerSide: a cluster's JobManager, what it is made of, and how the cluster reaches it. A part of Cluster.

Each `_make_...` makes one of the JobManager's services from the cluster's settings; a simulated cluster makes its own.
"""

from __future__ import annotations

from typing import ClassVar

from ...actors.context import Ref
from ...actors.job_manager.job_manager import JobManager
from ...actors.job_manager.job_manager_settings import JobManagerSettings
from ...actors.job_manager.launcher import Launcher
from ...messages import LeaderSessionId, LogRecords, PrintedText
from ...state import CheckpointStorage
from ...state.checkpoints.high_availability import HighAvailability
from ...state.checkpoints.job_runs import Claimant
from ...state.checkpoints.savepoints import Savepoints
from ...state.job_history import JobHistory
from ..metrics.slot_stacks import SlotStacks
from ..output.delivery import OutputDelivery
from ..system import ActorSystem
from ..system.this_process import is_gone, this_process
from .cluster_programs import ClusterPrograms
from .cluster_settings import ClusterSettings
from .configuration import Configuration
from .leading import Leading
from .shared_storage import shared_storage


class JobManagerSide:
    """Base of Cluster."""

    settings: ClusterSettings

    _is_one_process: ClassVar[bool] = False
    """Whether TaskManagers are in the JobManager's own process."""
    _lead: Leading
    _programs: ClusterPrograms
    _work_dir: str
    _system: ActorSystem | None = None
    _job_manager: Ref | None = None
    _delivery: OutputDelivery | None = None
    _claimant: Claimant | None = None

    def _running(self) -> tuple[ActorSystem, Ref]:
        if self._system is None or self._job_manager is None:
            raise RuntimeError(
                f"this cluster is not running: use it as `with {type(self).__name__}(...) as cluster:`, or, in a "
                "notebook, call its start(), and close() at the end"
            )
        if (home := self._system.loop.home) is not None and home.is_elsewhere:
            raise RuntimeError(f"this cluster cannot be used here: {home.why}")
        return self._system, self._job_manager

    def _tell_job_manager(self, message: object) -> None:
        job_manager = self._job_manager
        if job_manager is not None:
            job_manager.tell(message)

    def _make_job_manager(
        self, system: ActorSystem, launcher: Launcher, kind: type[JobManager] = JobManager
    ) -> JobManager:
        return kind(
            self._job_manager_settings(),
            launcher,
            self._make_savepoints(),
            self._make_high_availability(system),
            self._make_claimant(system),
            output=self._take_output,
            history=self._make_history(),
            stacks=SlotStacks(),
            programs=self._programs,
        )

    def _make_high_availability(self, system: ActorSystem) -> HighAvailability:
        return self._lead.high_availability(lambda: LeaderSessionId(system.new_id("session")))

    def _make_claimant(self, system: ActorSystem) -> Claimant:
        """Of the names of jobs that are to be resumed."""
        self._claimant = Claimant(this_process(), is_gone, system.clock.wall_ms, self.settings.name_lease_ms)
        return self._claimant

    def _make_savepoints(self) -> Savepoints:
        store = Configuration.of(self.settings.config).savepoint_store(self._open_storage)
        return Savepoints(store, self._open_storage, temporary=self._work_dir)

    def _make_history(self) -> JobHistory | None:
        """Raises UnwritableRoot."""
        if self.settings.history_dir is None:
            return None
        history = JobHistory(self.settings.history_dir, open_storage=self._open_storage)
        history.check()
        return history

    def _job_manager_settings(self) -> JobManagerSettings:
        return JobManagerSettings(
            self.settings.heartbeat_interval_ms,
            self.settings.heartbeat_timeout_ms,
            self.settings.slot_timeout_ms,
            self.settings.cancel_timeout_ms,
        )

    def _open_storage(self, url: str) -> CheckpointStorage:
        return CheckpointStorage(url) if self._is_one_process else shared_storage(url)

    def _take_output(self, message: LogRecords | PrintedText) -> None:
        """What a TaskManager has logged or printed; called by the JobManager, which cannot wait."""
        if self._delivery is not None:
            self._delivery.offer(message)

    def _settle_output(self, timeout: float) -> None:
        """Wait until all that TaskManagers have printed and logged so far is here, for `timeout` seconds at most."""
        if self._delivery is not None:
            self._delivery.drain(timeout)
