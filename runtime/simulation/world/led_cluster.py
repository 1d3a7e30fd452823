"""LedCluster: a SimulatedCluster whose JobManagers take each other's place, by a simulated ZooKeeper.

A process that waits queues up behind the leader, and is woken when that one's session has ended; then it goes on with
its jobs, as `Cluster.start` does it in reality.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from ....actors.context import Ref
from ....actors.job_manager.job_manager_settings import ADOPTION_TIMEOUT_MS, JobManagerSettings
from ....actors.job_manager.takeovers import LeaderPublished
from ....messages import JobGraph, JobId, LeaderIs, SubmitJob
from ....state.checkpoints.high_availability import HighAvailability
from ....state.errors import LostLeadership
from ...api.environment import StreamEnvironment
from ...api.translation import Translation
from ...clusters.job_handle import JobHandle
from ...clusters.task_manager_process import TaskManagerLaunch
from ...high_availability.errors import CannotTakeOver
from ...high_availability.kept_jobs import KeptJobs
from ...high_availability.leader import Leader
from ...high_availability.submissions import StoredProgram, Submissions
from ...system import ActorSystem
from .cluster import STORAGE, SimulatedCluster, Stalled
from .faults import Fault
from .launcher import SimulatedLauncher
from .world import Process
from .zookeeper import SimulatedCandidate, SimulatedLeadership, SimulatedZooKeeper

SUBMISSIONS = f"{STORAGE}/high-availability"
KEY = b"the key of a simulated cluster"
PUBLISHED_S = 0.05
"""So long after it has won, a leader says where it is."""
TAKEOVER_S = 120.0
"""How long whoever waits may need to lead: sessions end before."""


class LedCluster(SimulatedCluster):
    """Settings as for SimulatedCluster."""

    def __init__(
        self,
        task_managers: int = 1,
        slots_per_task_manager: int = 1,
        *,
        session_timeout_ms: float = 10_000.0,
        alone_ms: int = 0,
        seed: int = 0,
        faults: Iterable[Fault] = (),
        **settings: Any,
    ) -> None:
        """`alone_ms`: how long TaskManagers run on without a JobManager, as they do on hosts of their own."""
        self._alone_ms = alone_ms
        super().__init__(task_managers, slots_per_task_manager, seed=seed, faults=faults, **settings)
        self.zookeeper = SimulatedZooKeeper(self.world, session_timeout_ms)
        self.leaderships: list[SimulatedLeadership] = []
        self.refused: list[CannotTakeOver] = []
        self._kept: KeptJobs | None = None
        self._left: dict[str, JobId] = {}
        self._systems: dict[Process, ActorSystem] = {}
        self._waiting: SimulatedCandidate | None = None

    def stand_by(self, host: str | None = None) -> SimulatedCandidate:
        """Another process queues up to lead, on the same host unless one is named."""
        self._drivers += 1
        process = self.world.process(f"job-manager-{self._drivers}", host or self._started_driver().host)
        self._waiting = self.zookeeper.stand(process)
        return self._waiting

    def take_over(self, host: str | None = None) -> None:
        """Wait until the leader's session has ended; then the process that stands by leads, or a new one. On the same
        machine as a leader that is dead it has that one's address, as with a port that is set.

        Submitting a job by the name of one that was left gives the handle of that. Raises Stalled when the one that
        waits does not come to lead.
        """
        waiting = self._waiting or self.stand_by(host)
        if not self.run_until(lambda: waiting.leads, TAKEOVER_S):
            raise Stalled(f"{waiting.process.name} does not lead, and the queue is {sorted(self.zookeeper.nodes)}")
        before = self._started_driver()
        if waiting.process.host == before.host and not before.is_alive:
            waiting.process.reached_as = before.reached_as
        self._start_driver(waiting.process)
        self._waiting = None
        assert self._kept is not None, "it leads"
        self._kept.remove_leftovers()
        self._left = {}
        for left in list(self._kept.kept()):
            if isinstance(left, CannotTakeOver):
                self.refused.append(left)
            else:
                self._go_on(left.submitted, left.program)

    def translate(self, env: StreamEnvironment, name: str = "job", job_id: JobId | None = None) -> Translation:
        return super().translate(env, name, job_id or self._left.pop(name, None))

    def submit_translated(self, translation: Translation, **options: Any) -> JobHandle:
        if self._kept is not None:
            program = translation.program
            self._kept.offer(translation.graph.job_id, StoredProgram(program.dumps(), (), program.warm_up))
        return super().submit_translated(translation, **options)

    def _go_on(self, submitted: SubmitJob, program: StoredProgram) -> None:
        """As Cluster does it; nobody waits for the answer here."""
        _, job_manager = self._running()
        self._prepare(self._launch(submitted.graph, program), ())
        job_manager.tell(submitted)
        self._left[submitted.graph.name] = submitted.graph.job_id

    def _launch(self, graph: JobGraph, program: StoredProgram) -> TaskManagerLaunch:
        return replace(super()._launch(graph, program), alone_ms=self._alone_ms)

    def _hosts(self, process: Process, task_manager: Ref) -> None:
        """Its host says who leads."""
        if self._alone_ms:

            def say(leader: Leader | None) -> None:
                if leader is not None:
                    task_manager.tell(LeaderIs(f"{leader.address}/job-manager", leader.session))

            self.zookeeper.listen(process).on_change(say)

    def _make_launcher(self, driver: Process) -> SimulatedLauncher:
        """The hosts of an earlier leader are the next one's."""
        launcher = super()._make_launcher(driver)
        if self._alone_ms and driver is not self.world.processes[0]:
            launcher.inherit(self.launcher)
        return launcher

    def _job_manager_settings(self) -> JobManagerSettings:
        return replace(
            super()._job_manager_settings(), adoption_timeout_ms=ADOPTION_TIMEOUT_MS if self._alone_ms else 0
        )

    def _make_high_availability(self, system: ActorSystem) -> HighAvailability:
        driver = self._started_driver()
        self._systems[driver] = system
        candidate = self._waiting or self.zookeeper.stand(driver)
        assert candidate.leads, "nobody leads before it"
        leadership = SimulatedLeadership(self.zookeeper, candidate)
        driver.loop.call_later(PUBLISHED_S, self._publish, driver, leadership, system.address)
        leadership.on_lost(partial(self._deposed, driver))
        self.leaderships.append(leadership)
        submissions = Submissions(self._open_storage(SUBMISSIONS), KEY)
        self._kept = KeptJobs(leadership, submissions, self._open_storage)
        return self._kept

    def _deposed(self, driver: Process, _reason: str) -> None:
        """Its JobManager stops; the process, which may be frozen, does not end."""
        job_manager, system = self._job_managers.get(driver), self._systems.get(driver)
        if job_manager is not None and system is not None and driver.is_alive:
            system.stop(job_manager)

    def _publish(self, driver: Process, leadership: SimulatedLeadership, address: str) -> None:
        with suppress(LostLeadership):
            leadership.publish(address)
            self._tell_job_manager_of(driver, LeaderPublished())
