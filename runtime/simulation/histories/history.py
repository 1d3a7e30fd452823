"""History: one scenario, run and judged.

The job runs to its end, for which it has a bounded time after the last fault; then the cluster is left alone for a
while, and what remains is looked at. Oracles that need to see the run itself are in probes.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from ....messages import CheckpointCompleted, JobId, JobStatus, JobStatusChanged
from ...api.translation import Translation, translate
from ...clusters.job_handle import JobHandle
from ...connectors import UnreadableInput
from ...oracles import Violation, at_least_once, exactly_once, multiset, nothing_extra
from ..world.cluster import STORAGE, SimulatedCluster
from ..world.dangling_metadata import DanglingMetadata
from ..world.faults import FailingStorage, FullDisk, PowerFailure, RottenFile
from ..world.network import NetworkOptions
from ..world.trace import Trace
from .calm import kept_to_the_end, needless_trouble
from .catalogue import CATALOGUE
from .ending import (
    CALM_MS,
    LOST,
    STALLED,
    TORN_SAVEPOINT,
    calm_ms,
    is_output,
    leftover_files,
    leftover_processes,
    wait_for_the_end,
    was_spoilt,
)
from .lineage import Lineage
from .outlet_readers import ORACLE as OUTLET_ORACLE
from .outlet_readers import OutletReaders
from .output_so_far import OutputSoFar
from .savepoints import TakenSavepoints
from .scenario import Scenario
from .topologies import CHECKPOINTS, OUTPUT, SAVEPOINTS, Topology, Workload
from .user import User

RECOVERY_MS = 10 * 60_000.0
"""How long a job may take after its last fault, besides the time that its sources take."""

_HEARTBEAT_INTERVAL_MS = 1_500
_HEARTBEAT_TIMEOUT_MS = 6_000

_STORAGE_FAULTS = (FailingStorage, FullDisk, PowerFailure)

Watch = Callable[[SimulatedCluster], object]
"""Looks at a cluster, and may hang something onto it; it must not change what happens."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a scenario."""

    scenario: Scenario
    status: str
    """The job's status at its end, or LOST, or STALLED."""
    violations: tuple[Violation, ...]
    virtual_ms: float
    faults: Counter[str]
    """What happened, by kind; some faults of the scenario may have found nobody to happen to."""
    actions: Counter[str]
    """What the user did, by kind."""
    recoveries: int
    checkpoints: int
    trace: Trace


def run_history(scenario: Scenario, watch: Watch | None = None) -> Outcome:
    """Run it from beginning to end. Deterministic; takes some milliseconds. `watch` is called before it begins."""
    topology = CATALOGUE[scenario.topology]
    with SimulatedCluster(
        scenario.task_managers,
        scenario.slots,
        seed=scenario.seed,
        faults=scenario.faults,
        heartbeat_interval_ms=_HEARTBEAT_INTERVAL_MS,
        heartbeat_timeout_ms=_HEARTBEAT_TIMEOUT_MS,
        slot_timeout_ms=300_000,
        config={"savepoints.state.backend.fs.dir": SAVEPOINTS},
        network=NetworkOptions(max_latency_ms=scenario.max_latency_ms),
    ) as cluster:
        cluster.storage.extra_ms = scenario.storage_ms
        if watch is not None:
            watch(cluster)
        return _History(scenario, topology, cluster).run()


class _History:
    def __init__(self, scenario: Scenario, topology: Topology, cluster: SimulatedCluster) -> None:
        self._scenario = scenario
        self._topology = topology
        self._cluster = cluster
        self._expected = topology.expected(scenario.workload)
        self._found = cluster.probes.violations
        self._lineage = Lineage(OUTPUT)
        self._submissions = 0
        self._so_far = OutputSoFar(cluster.disk, self._expected)
        self._savepoints = TakenSavepoints(
            SAVEPOINTS,
            cluster._open_storage,
            cluster.probes.report,
            cluster.seen,
            may_be_unreadable=_spoils_files(scenario),
        )
        self._dangling = DanglingMetadata(cluster.disk, cluster._open_storage(CHECKPOINTS), cluster.probes.report)
        self._patience_ms = scenario.quiet_ms + scenario.workload.duration_ms + RECOVERY_MS
        self._user = User(
            cluster,
            self._lineage,
            self._savepoints,
            self._submit,
            scenario.workload.parallelism,
            self._patience_ms,
            scenario.quiet_ms,
        )

        self._readers = OutletReaders(cluster, self._lineage, self._report, lambda: self._user.is_alone)

    def run(self) -> Outcome:
        cluster = self._cluster
        self._lineage.begin(self._submit(self._scenario.workload.parallelism))
        if self._topology.has_outlet:
            self._readers.begin()
        cluster.probes.when_committed = self._nothing_is_extra
        for action in self._scenario.actions:
            self._user.do(action)
        status = self._wait_for(self._lineage.latest)
        cluster.run_for(calm_ms(cluster.now_ms, self._scenario.quiet_ms))
        self._judge(status)
        if self._savepoints.requests:
            self._judge_savepoints(status)
        return self._outcome(status)

    def _outcome(self, status: str) -> Outcome:
        cluster = self._cluster
        told = [job._last_details for job in self._lineage.jobs if job._last_details is not None]
        return Outcome(
            scenario=self._scenario,
            status=status,
            violations=tuple(self._found),
            virtual_ms=cluster.now_ms,
            faults=cluster.faults_that_happened,
            actions=self._user.done,
            recoveries=sum(details.restarts for details in told),
            checkpoints=sum(details.completed_checkpoints for details in told),
            trace=cluster.trace,
        )

    def _submit(self, parallelism: int, savepoint: str | None = None) -> JobHandle:
        scenario = self._scenario
        workload = replace(scenario.workload, parallelism=parallelism)
        self._submissions += 1  # one that is refused has had its id
        translation = _translated(
            scenario.topology, workload, scenario.task_managers, scenario.slots, self._submissions
        )
        job = self._cluster.submit_translated(translation, from_savepoint=savepoint)
        job.on_event(self._on_event)
        if self._topology.feed is not None:
            self._topology.feed(self._cluster, job, workload)
        return job

    def _on_event(self, event: Any) -> None:
        if isinstance(event, CheckpointCompleted | JobStatusChanged):
            self._cluster.probes.look(self._savepoints.all_are_whole)
            self._cluster.probes.look(self._dangling.look)

    def _wait_for(self, job: JobHandle) -> str:
        return wait_for_the_end(job, self._patience_ms)

    # ---- judging

    def _judge(self, status: str) -> None:
        job, found = self._lineage.latest, self._committed()
        ended = self._savepoints.ended(job.job_id)
        is_whole = ended is None and not self._user.goes_on_from_drained
        if status == JobStatus.FINISHED.value and is_whole:
            self._report((exactly_once if self._topology.exactly_once else at_least_once)(found, self._expected))
        elif self._is_part_of_the_whole:
            self._report(nothing_extra(found, self._expected))
        leaves_calls = bool(self._topology.answer_ms) and ended is not None and not ended.is_drained
        if status == JobStatus.FINISHED.value and self._topology.counts_up and not leaves_calls:
            self._report(self._not_whole(found))
        if problem := self._topology.outside(self._scenario.workload, status == JobStatus.FINISHED.value and is_whole):
            self._report(Violation("effects", problem))
        if self._topology.has_outlet:
            self._judge_outlet(status, found)
        if self._user.goes_on_from_drained and (more := self._lineage.committed_by_the_latest()):
            self._report(Violation("drained-is-the-end", f"{len(more)} records came after it: {more[0]!r}"))
        if status == STALLED:
            self._report(Violation("liveness", f"the job did not end: {job.status.value}"))
        if not self._scenario.faults:
            self._judge_calm()
        if status == JobStatus.FAILED.value and not was_spoilt(self._cluster, job.details()):
            self._report(Violation("liveness", f"the job failed: {job.details().failures[-1]}"))
        if status == JobStatus.CANCELED.value and not self._user.has_ended(job.job_id):
            self._report(Violation("promise", "the job was cancelled, and its savepoint failed"))
        if status not in (LOST, STALLED) and not self._savepoints.requests:
            self._judge_files(status)
        self._report(leftover_processes(self._cluster, status))
        self._dangling.look()

    def _judge_outlet(self, status: str, collected: list[Any]) -> None:
        """It has what the other sink has: both commit with the same checkpoints, and to the end if the job finishes."""
        self._readers.end()
        if self._readers.all is None or status != JobStatus.FINISHED.value:
            return
        if problem := exactly_once(self._readers.all, collected):
            self._report(Violation(OUTLET_ORACLE, problem.problem))

    def _judge_calm(self) -> None:
        if restarts := self._restarts():
            self._report(Violation("calm", f"{restarts} restarts, and nothing was wrong"))
        for violation in needless_trouble(self._scenario, self._cluster.trace):
            self._report(violation)
        if self._topology.emits_meanwhile:
            self._report(kept_to_the_end(self._scenario, self._cluster.trace))

    def _not_whole(self, found: list[Any]) -> Violation | None:
        """A job that was stopped or drained has committed all that comes of what its source had emitted by then."""
        workload, committed = self._scenario.workload, multiset(found)
        for records in range(workload.records, -1, -1):
            if committed == multiset(self._topology.expected(replace(workload, records=records))):
                return None
        return Violation("stopped-whole", f"{len(found)} records are not what any first numbers of its source make")

    def _judge_savepoints(self, status: str) -> None:
        """Every promised savepoint is there, and every disposed one is gone, to the last file."""
        cluster = self._cluster
        cluster.run_for(max(0.0, self._scenario.quiet_ms - cluster.now_ms))
        self._savepoints.all_are_whole()
        self._user.dispose_of_all()
        cluster.run_for(CALM_MS)
        for problem in self._savepoints.broken_promises(self._scenario.quiet_ms):
            self._report(Violation("promise", problem))
        if status != STALLED and not self._user.is_alone:
            self._judge_files(status)

    def _judge_files(self, status: str) -> None:
        """Once all jobs have ended, and no savepoint is left."""
        for stored in self._cluster.stored.values():
            stored.kept_are_there()
        self._report(self._leftover_files(status))

    def _restarts(self) -> int:
        return sum(job._last_details.restarts for job in self._lineage.jobs if job._last_details is not None)

    def _report(self, violation: Violation | None) -> None:
        if violation is not None:
            self._cluster.probes.report(violation.oracle, violation.problem)

    def _committed(self) -> list[Any]:
        try:
            return self._lineage.committed()
        except UnreadableInput as error:
            self._report(Violation("readable-output", str(error)))
            return []

    @property
    def _is_part_of_the_whole(self) -> bool:
        """Whether all that is committed must be part of what is expected: not once data was ended before its time, if
        the job tells what it has seen by then.
        """
        return self._topology.exactly_once and not (self._topology.tells_at_the_end and self._savepoints.has_drained)

    def _nothing_is_extra(self) -> None:
        """Holds at every moment; said once."""
        if self._is_part_of_the_whole and not self._found and not self._so_far.is_expected(self._lineage.outputs()):
            self._report(nothing_extra(self._committed(), self._expected))

    def _leftover_files(self, status: str) -> Violation | None:
        """A failed job leaves what its sinks had prepared for a checkpoint that never completed; nobody removes what is
        left of a savepoint that storage would neither take nor take back. Checkpoints that a job is to leave stay.
        """
        may_be_torn = any(isinstance(fault, _STORAGE_FAULTS) for fault in self._scenario.faults)
        kept = {path for stored in self._cluster.stored.values() for path in stored.kept}
        logs = {f"{path.partition('/chk-')[0]}/inlets/" for path in kept}  # checkpoints that are left go on there
        found = [path for path, _ in self._cluster.disk.files() if path not in kept]
        found = [path for path in found if not any(path.startswith(folder) for folder in logs)]
        files = [path for path in found if not (may_be_torn and TORN_SAVEPOINT in path)]
        tidy = all(job.status is JobStatus.FINISHED for job in self._lineage.jobs) and status != JobStatus.FAILED.value
        return leftover_files(self._cluster, [path for path in files if not is_output(path, all_finished=tidy)])


def _spoils_files(scenario: Scenario) -> bool:
    return any(isinstance(fault, RottenFile) for fault in scenario.faults)


@lru_cache(maxsize=256)
def _translated(topology: str, workload: Workload, task_managers: int, slots: int, number: int) -> Translation:
    """Translating and pickling a job takes longer than running it; many scenarios share one."""
    return translate(
        CATALOGUE[topology].build(workload),
        default_parallelism=workload.parallelism,
        task_managers=task_managers,
        work_dir=STORAGE,
        slots=slots,
        name=topology,
        job_id=JobId(f"job-{number}"),
    )
