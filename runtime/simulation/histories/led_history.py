"""Led histories: the leader of a job is killed, again and again, each time in the middle of something; who waited goes
on, and in the end the output is exact.

The seed chooses what the leader is doing when it dies; whether it was doing that is read from the trace (`led_course`).

    python -m understudy.runtime.simulation.histories.led_history --histories 10000

The last line is `N led histories, M exact`; the exit code is 1 unless all were.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import click

from ....actors.ask_errors import AskFailed
from ....messages import JobStatus, LeaderSessionId
from ...clusters.job_errors import JobLost, SavepointFailed
from ...clusters.job_future import JobFuture
from ...clusters.job_handle import JobHandle
from ...oracles import Violation, exactly_once, nothing_extra
from ..world.faults import JOB_MANAGER
from ..world.led_cluster import LedCluster
from ..world.process import Process, ProcessKilled
from ..world.zookeeper import SimulatedRetrieval
from .campaign import quiet
from .led_course import KillMoment, LedCourse, Orders
from .led_job import DURATION_MS, EXPECTED, LedJob, left_in_progress, published
from .watchdog import Watchdog

MOMENTS = tuple(KillMoment)
SESSION_MS = 6_000
ALONE_MS = 40_000
JOB = "service"
PATIENCE_S = 600.0
FOUND_S = 5.0
"""How long those who listen may take a leader for another one."""
REACH_S = 6.0
"""How long a moment is waited for that may not come any more."""


@dataclass(frozen=True, slots=True)
class LedVerdict:
    """One led history, judged."""

    seed: int
    violations: tuple[Violation, ...]
    moments: tuple[KillMoment, ...]
    """In which leaders died, as the trace says; of one leader there may be several."""
    takeovers: int
    adopted: int
    """Takeovers in which not a task restarted."""


class LedHistory:
    """Deterministic: all of it follows from the seed. Every eighth seed begins with the same moment; of these, every
    other one has TaskManagers that outlive their leaders.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._chance = chance = Random(seed)
        self._wanted = [MOMENTS[seed % len(MOMENTS)]]
        later = [moment for moment in MOMENTS if moment is not KillMoment.SUBMISSION]
        self._wanted += chance.choices(later, k=chance.randint(0, 2))
        self._job = LedJob(chance.choice((1, 2)), chance.choice((300, 700, 1_500)), chance.choice((1, 2)))
        self._moments: list[KillMoment] = []
        self._violations: list[Violation] = []
        self._alone_ms = ALONE_MS if seed // len(MOMENTS) % 2 else 0
        self._takeovers = self._adopted = 0
        self._status: JobStatus | None = None
        """As the leader before the present one has reported it last."""
        self._orders = Orders()
        self._stopped: JobFuture[str] | None = None
        """The answer to the last order to stop with a savepoint."""
        self._ends_with = ""
        """The savepoint with which the job was stopped, as far as its user or a successor knows."""
        self._drains = self._was_to_stop = False
        """Whether it ever was to; what would come after the end of a drained job never comes."""
        self._cluster: LedCluster
        self._follower: SimulatedRetrieval
        self._course: LedCourse

    def run(self) -> LedVerdict:
        with LedCluster(
            2,
            2,
            seed=self.seed,
            session_timeout_ms=SESSION_MS,
            alone_ms=self._alone_ms,
            heartbeat_interval_ms=500,
            heartbeat_timeout_ms=3_000,
        ) as cluster:
            self._cluster, self._course = cluster, LedCourse(cluster)
            self._stand_by()
            self._follower = cluster.zookeeper.listen(cluster.world.process("follower"))
            self._lead()
            if problem := self._course.ids_in_disorder():
                self._report("led-ids", problem)
            self._violations += cluster.probes.violations
        return LedVerdict(self.seed, tuple(self._violations), tuple(self._moments), self._takeovers, self._adopted)

    # -- the course of it

    def _lead(self) -> None:
        job = None if self._wanted[0] is KillMoment.SUBMISSION else self._submit()
        for moment in self._wanted:
            self._cluster.run_for(self._chance.uniform(0, DURATION_MS / 3) if job is not None else 0)
            self._reach(moment, job)
            self._orders.wants_savepoint = self._orders.is_submitting = False
            self._settle_the_stop()
            self._take_over()
            newest = max(self._course.announced, default=0)
            if not self._cluster.zookeeper.records and moment is not KillMoment.SUBMISSION:
                self._judge_the_end()
                return
            job = self._submit()
            job.ready().result(timeout=PATIENCE_S)
            if not self._course.has_deployed(self._cluster.leaderships[-1].session):
                self._adopted += 1
                continue
            restored = job.checkpoint_history().restored_checkpoint_id or 0
            if restored < newest:
                self._report("led-announced", f"{newest} was announced, and the next leader has restored {restored}")
        assert job is not None
        job.wait(timeout=PATIENCE_S)
        self._course.read_on()
        self._status = self._course.status
        self._judge_the_end()

    def _submit(self) -> JobHandle:
        return self._cluster.submit(self._job.environment(), JOB)

    def _take_over(self) -> None:
        self._takeovers += 1
        self._course.read_on()
        self._status, self._course.status = self._course.status, None
        self._cluster.take_over()
        self._stand_by()
        session = self._cluster.leaderships[-1].session
        if not self._cluster.run_until(lambda: self._is_found(session), FOUND_S):
            self._report("led-followers", f"{session} leads, and is taken for the leader: {self._follower.leader()}")

    def _stand_by(self) -> None:
        """Before the leader dies."""
        self._cluster.stand_by("another" if self._chance.random() < 0.5 else None)

    def _is_found(self, session: LeaderSessionId) -> bool:
        leader = self._follower.leader()
        return leader is not None and leader.session == session

    # -- the moments

    def _reach(self, moment: KillMoment, job: JobHandle | None) -> None:
        """Lead it there, and let the leader die."""
        leader = self._leader()
        leader.when_ended(lambda _: self._moments.extend(sorted(self._course.moments(self._orders), key=MOMENTS.index)))
        if moment is KillMoment.SUBMISSION:
            self._die_at_submission(leader)
        else:
            assert job is not None
            self._begin(moment, job)
            self._until(moment)
            if moment is not KillMoment.UNANNOUNCED and self._chance.random() < 0.4:
                leader.die_after(self._chance.randint(1, 4))
                self._cluster.run_until(lambda: not leader.is_alive, 0.2)
        leader.kill("kill -9")

    def _die_at_submission(self, leader: Process) -> None:
        leader.die_after(self._chance.randint(1, 40))
        self._orders.is_submitting = True
        try:
            self._submit()
        except (AskFailed, JobLost, ProcessKilled):
            return
        self._orders.is_submitting = False

    def _begin(self, moment: KillMoment, job: JobHandle) -> None:
        match moment:
            case KillMoment.SAVEPOINT:
                self._orders.wants_savepoint = True
                self._ordered = job.trigger_savepoint()
            case KillMoment.STOP:
                self._orders.wants_stop = True
                self._was_to_stop = True
                self._drains = self._chance.random() < 0.2
                self._stopped = job.stop_with_savepoint(drain=self._drains)
            case KillMoment.CANCELLATION:
                job.cancel()
            case KillMoment.RESTART:
                task_manager = self._cluster.process(self._chance.randint(0, 1))
                if task_manager is not None:
                    task_manager.kill("kill -9")

    def _until(self, moment: KillMoment) -> None:
        """Until it is there, and sometimes a little later; normal running is there."""
        if moment is KillMoment.RUNNING:
            return
        is_there: Callable[[], bool] = {
            KillMoment.PENDING: lambda: bool(self._course.pending()),
            KillMoment.UNANNOUNCED: lambda: bool(self._course.unannounced()),
        }.get(moment, lambda: moment in self._course.moments(self._orders))
        if not is_there():
            self._cluster.run_until(lambda: self._course.has_more() and is_there(), REACH_S)
        if moment is not KillMoment.UNANNOUNCED:
            self._cluster.run_for(self._chance.choice((0.0, 0.0, 1.0, 10.0, 100.0)) * self._chance.random())

    def _leader(self) -> Process:
        process = self._cluster.process(JOB_MANAGER)
        assert process is not None
        return process

    # -- judging

    def _settle_the_stop(self) -> None:
        """The leader is dead: either the job was stopped, for its user or for the next leader, or it goes on."""
        if not self._drains:
            self._ends_with = self._ends_with or _answer(self._stopped) or self._course.stopped_with()
        self._stopped, self._orders.wants_stop = None, False

    def _judge_the_end(self) -> None:
        """Of a job that has ended. One that was stopped has committed what its savepoint covers, and nothing else: what
        is started from there does the rest.
        """
        found, is_whole = published(self._cluster.disk), self._status is JobStatus.FINISHED and not self._was_to_stop
        if self._ends_with:
            again = self._cluster.submit(self._job.environment(), "again", from_savepoint=self._ends_with)
            again.wait(timeout=PATIENCE_S)
            found, is_whole = published(self._cluster.disk), True
        violation = exactly_once(found, EXPECTED) if is_whole else nothing_extra(found, EXPECTED)
        if violation is not None:
            self._violations.append(violation)
        if is_whole and (left := left_in_progress(self._cluster.disk)):
            self._report("led-leftovers", f"the job has ended, and nobody has removed {left}")

    def _report(self, oracle: str, problem: str) -> None:
        self._violations.append(Violation(oracle, problem))


def _answer(future: JobFuture[str] | None) -> str:
    """ "" as long as there is none, and for a failure."""
    if future is None or not future.done():
        return ""
    try:
        return future.result(timeout=0)
    except (AskFailed, SavepointFailed):
        return ""


def judge_led(seed: int) -> LedVerdict:
    """Run it. Whatever it raises is a violation too."""
    try:
        with quiet():
            return LedHistory(seed).run()
    except (Exception, ProcessKilled) as error:  # noqa: BLE001  (the outcome of a history, whatever it is)
        return LedVerdict(seed, (Violation("crash", f"{type(error).__name__}: {error}"),), (), 0, 0)


@click.command()
@click.option("--histories", default=1_000, show_default=True, type=click.IntRange(1))
@click.option("--first-seed", default=0, show_default=True, type=int)
def main(histories: int, first_seed: int) -> None:
    """Kill leaders in simulated histories, and count the moments in which they died."""
    moments: Counter[KillMoment] = Counter()
    exact, takeovers, adopted, started = 0, 0, 0, time.perf_counter()
    with Watchdog() as watchdog:
        for seed in range(first_seed, first_seed + histories):
            with watchdog.watching(f"led history {seed}"):
                verdict = judge_led(seed)
            moments.update(verdict.moments)
            takeovers += verdict.takeovers
            adopted += verdict.adopted
            exact += not verdict.violations
            for violation in verdict.violations:
                click.echo(f"seed {seed}: {violation}")
    for moment in MOMENTS:
        click.echo(f"{moments[moment]:7} leaders died in: {moment.value}")
    click.echo(f"{takeovers} takeovers, {adopted} of them without a restart, in {time.perf_counter() - started:.0f} s")
    click.echo(f"{histories} led histories, {exact} exact")
    sys.exit(0 if exact == histories else 1)


if __name__ == "__main__":
    main()
