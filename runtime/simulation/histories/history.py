"""History: one scenario, run and judged.

The job runs to its end, for which it has a bounded time after the last fault; then the cluster is left alone for a
while, and what remains is looked at. Oracles that need to see the run itself are in probes.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ....messages import JobId, JobStatus
from ...api.job_handle import JobHandle
from ...api.translation import Translation, translate
from ...connectors import CollectSink, UnreadableInput, read_collected
from ..world.cluster import STORAGE, SimulatedCluster
from ..world.network import NetworkOptions
from ..world.oracles import Violation, at_least_once, exactly_once, nothing_extra
from ..world.trace import Trace
from .ending import CALM_MS, LOST, STALLED, leftover_processes, wait_for_the_end, was_spoilt
from .scenario import Scenario
from .topologies import OUTPUT, TOPOLOGIES, Topology, Workload

RECOVERY_MS = 10 * 60_000.0
"""How long a job may take after its last fault, besides the time that its sources take."""

_HEARTBEAT_INTERVAL_MS = 1_500
_HEARTBEAT_TIMEOUT_MS = 6_000

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
    recoveries: int
    checkpoints: int
    trace: Trace


def run_history(scenario: Scenario, watch: Watch | None = None) -> Outcome:
    """Run it from beginning to end. Deterministic; takes some milliseconds. `watch` is called before it begins."""
    topology = TOPOLOGIES[scenario.topology]
    with SimulatedCluster(
        scenario.task_managers,
        scenario.slots,
        seed=scenario.seed,
        faults=scenario.faults,
        heartbeat_interval_ms=_HEARTBEAT_INTERVAL_MS,
        heartbeat_timeout_ms=_HEARTBEAT_TIMEOUT_MS,
        slot_timeout_ms=300_000,
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

    def run(self) -> Outcome:
        scenario, cluster = self._scenario, self._cluster
        job = cluster.submit_translated(
            _translated(scenario.topology, scenario.workload, scenario.task_managers, scenario.slots)
        )
        cluster.probes.when_committed = lambda: self._nothing_is_extra(job)
        status = self._wait_for(job)
        cluster.run_for(CALM_MS)
        self._judge(job, status)
        details = job._last_details
        return Outcome(
            scenario=scenario,
            status=status,
            violations=tuple(self._found),
            virtual_ms=cluster.now_ms,
            faults=cluster.faults_that_happened,
            recoveries=details.restarts if details else 0,
            checkpoints=details.completed_checkpoints if details else 0,
            trace=cluster.trace,
        )

    def _wait_for(self, job: JobHandle) -> str:
        scenario = self._scenario
        last_fault_ms = max((fault.until_ms for fault in scenario.faults), default=0.0)
        limit_ms = last_fault_ms + scenario.workload.duration_ms + RECOVERY_MS
        return wait_for_the_end(job, limit_ms)

    def _judge(self, job: JobHandle, status: str) -> None:
        committed = self._committed(job)
        if status == JobStatus.FINISHED.value:
            self._report((exactly_once if self._topology.exactly_once else at_least_once)(committed, self._expected))
        elif self._topology.exactly_once:
            self._report(nothing_extra(committed, self._expected))
        if status == STALLED:
            self._report(Violation("liveness", f"the job did not end: {job.status.value}"))
        if not self._scenario.faults and (details := job._last_details) is not None and details.restarts:
            self._report(Violation("calm", f"{details.restarts} restarts, and nothing was wrong"))
        if status == JobStatus.FAILED.value and not was_spoilt(self._cluster, job.details()):
            self._report(Violation("liveness", f"the job failed: {job.details().failures[-1]}"))
        if status not in (LOST, STALLED):
            self._report(self._leftover_files(status))
        self._report(leftover_processes(self._cluster, status))

    def _report(self, violation: Violation | None) -> None:
        if violation is not None:
            self._cluster.probes.report(violation.oracle, violation.problem)

    def _committed(self, job: JobHandle) -> list[Any]:
        sink = job._sink(OUTPUT)
        assert isinstance(sink, CollectSink)
        try:
            return read_collected(sink.path)
        except UnreadableInput as error:
            self._report(Violation("readable-output", str(error)))
            return []

    def _nothing_is_extra(self, job: JobHandle) -> None:
        """Holds at every moment; said once."""
        if self._topology.exactly_once and not self._found:
            self._report(nothing_extra(self._committed(job), self._expected))

    def _leftover_files(self, status: str) -> Violation | None:
        """A failed job leaves what its sinks had prepared for a checkpoint that never completed; and nobody removes
        what a zombie writes after the job's end.
        """
        if self._cluster.launcher.zombies:
            return None
        files = [path for path, _ in self._cluster.disk.files()]
        left = [path for path in files if "/collected/" not in path or ("/." in path and status != "failed")]
        return Violation("no-leaked-files", f"after the job's end there are {', '.join(left)}") if left else None


@lru_cache(maxsize=256)
def _translated(topology: str, workload: Workload, task_managers: int, slots: int) -> Translation:
    """Translating and pickling a job takes longer than running it; many scenarios share one."""
    return translate(
        TOPOLOGIES[topology].build(workload),
        default_parallelism=workload.parallelism,
        task_managers=task_managers,
        work_dir=STORAGE,
        slots=slots,
        name=topology,
        job_id=JobId("job-1"),
    )
