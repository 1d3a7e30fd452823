"""LedCluster: a SimulatedCluster whose JobManagers take each other's place, by a simulated ZooKeeper.

A process that waits queues up behind the leader, and is woken when that one's session has ended; then it goes on with
its jobs, as `Cluster.start` does it in reality.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from typing import Any

from ....messages import JobId, SubmitJob
from ....state.checkpoints.high_availability import HighAvailability
from ....state.errors import LostLeadership
from ...api.environment import StreamEnvironment
from ...api.translation import Translation
from ...clusters.job_handle import JobHandle
from ...high_availability.errors import CannotTakeOver
from ...high_availability.kept_jobs import KeptJobs
from ...high_availability.submissions import StoredProgram, Submissions
from ...system import ActorSystem
from .cluster import STORAGE, SimulatedCluster, Stalled
from .faults import Fault
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
        seed: int = 0,
        faults: Iterable[Fault] = (),
        **settings: Any,
    ) -> None:
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
        """Wait until the leader's session has ended; then the process that stands by leads, or a new one.

        Submitting a job by the name of one that was left gives the handle of that. Raises Stalled when the one that
        waits does not come to lead.
        """
        waiting = self._waiting or self.stand_by(host)
        if not self.run_until(lambda: waiting.leads, TAKEOVER_S):
            raise Stalled(f"{waiting.process.name} does not lead, and the queue is {sorted(self.zookeeper.nodes)}")
        self._start_driver(waiting.process)
        self._waiting = None
        assert self._kept is not None, "it leads"
        self._kept.remove_rubbish()
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

    def _make_high_availability(self, system: ActorSystem) -> HighAvailability:
        driver = self._started_driver()
        self._systems[driver] = system
        candidate = self._waiting or self.zookeeper.stand(driver)
        assert candidate.leads, "nobody leads before it"
        leadership = SimulatedLeadership(self.zookeeper, candidate)
        driver.loop.call_later(PUBLISHED_S, _publish, leadership, system.address)
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


def _publish(leadership: SimulatedLeadership, address: str) -> None:
    with suppress(LostLeadership):
        leadership.publish(address)
