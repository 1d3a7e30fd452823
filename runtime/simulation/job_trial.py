"""JobTrial: one job of a user's, prepared once and then tried in as many histories as one likes.

The failure-free run comes first. It says what the job commits, and how long it takes; faults begin within that time.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from logging import CRITICAL, getLogger
from typing import Any

from ...messages import JobDetails, JobId, JobStatus
from ..api.environment import StreamEnvironment
from ..api.errors import JobFailed, JobLost
from ..api.job_handle import JobHandle
from ..api.restart import exponential_delay, no_restart
from ..api.translation import Translation, translate
from .cluster import STORAGE, SimulatedCluster
from .committed_output import Output, committed_output, sinks_outside_of_the_world
from .faults import JOB_MANAGER, Fault, KillProcess
from .history import CALM_MS
from .oracles import Violation
from .pacing import paced
from .scenario import random_faults
from .story import told_failure
from .trace import Trace

RECOVERY_MS = 5 * 60_000.0
"""How long a job may take after its last fault, besides the time that it takes without any."""

_LONGEST_MS = 60 * 60_000.0
_CHECKPOINTS = 10
"""For about so many checkpoints a job shall last; sources without a rate are slowed down to this."""

_SPOILT = "NoRestorableCheckpoint"
_JOB_MANAGER_PROCESS = "job-manager"

_MOST_CHECKPOINTS = 40


@dataclass(frozen=True, slots=True)
class Tried:
    """One history of the job. `status` is the job's at its end, or "LOST", "STALLED" or "CRASHED"."""

    seed: int
    faults: tuple[Fault, ...]
    status: str
    output: Output
    violations: tuple[Violation, ...]
    virtual_ms: float
    happened: Mapping[str, int]
    recoveries: int
    checkpoints: int
    failure: str
    """The last one that the job had, in a line."""
    trace: Trace


Judge = Callable[[str, Output], Iterable[Violation]]
"""Given the job's status at its end and what it has committed by then: which oracles broke."""


class Unfit(ValueError):
    """This job cannot be tried as it is; the text says what to change."""


class JobTrial:
    """Raises Unfit for a job that cannot be tried, and AssertionError for one that fails without any fault."""

    def __init__(
        self,
        env: StreamEnvironment,
        *,
        task_managers: int = 2,
        slots_per_task_manager: int = 1,
        **cluster_settings: Any,
    ) -> None:
        self.task_managers = task_managers
        self._slots = slots_per_task_manager
        self._settings = {"slot_timeout_ms": 300_000, **cluster_settings}
        self._plain = self._translated(env)
        interval_ms = env.checkpoints.interval_ms
        _check(env, self._plain)
        assert interval_ms is not None
        self._translation = self._plain
        self.reference = self._run_calmly(_CHECKPOINTS * interval_ms, interval_ms)

    def faults_of(self, seed: int) -> tuple[Fault, ...]:
        """The random faults of this seed; never the JobManager's death, which is the end of the job."""
        chance = random.Random(f"faults {seed}")
        faults = random_faults(chance, self.task_managers, self.reference.virtual_ms)
        return tuple(fault for fault in faults if not (isinstance(fault, KillProcess) and fault.who == JOB_MANAGER))

    def run(self, seed: int, faults: tuple[Fault, ...], judge: Judge) -> Tried:
        """One history, judged by the world's own oracles too. Deterministic."""
        last_fault_ms = max((fault.until_ms for fault in faults), default=0.0)
        limit_ms = last_fault_ms + self.reference.virtual_ms + RECOVERY_MS
        return self._run(self._translation, seed, faults, limit_ms, judge)

    # ---- the failure-free run

    def _run_calmly(self, wanted_ms: float, interval_ms: int) -> Tried:
        """Without faults, restarts and hurry: slowly enough, and not much too slowly."""
        pause_ms = interval_ms * _CHECKPOINTS / 30
        tried = self._run_at(pause_ms)
        if tried.virtual_ms > _MOST_CHECKPOINTS * interval_ms:
            tried = self._run_at(pause_ms * wanted_ms / tried.virtual_ms)
        if tried.status != JobStatus.FINISHED.value:
            failure = tried.failure or "it does not end"
            raise AssertionError(f"without any fault of the world's making, the job is {tried.status}: {failure}")
        if tried.violations:
            raise AssertionError(f"without any fault of the world's making: {tried.violations[0]}")
        return tried

    def _run_at(self, pause_ms: float) -> Tried:
        self._translation = paced(self._plain, pause_ms)
        calm = replace(self._translation, graph=replace(self._translation.graph, restart=no_restart()))
        return self._run(calm, 0, (), _LONGEST_MS, lambda status, output: ())

    # ---- any run

    def _run(
        self, translation: Translation, seed: int, faults: tuple[Fault, ...], limit_ms: float, judge: Judge
    ) -> Tried:
        with (
            _silence(),
            SimulatedCluster(self.task_managers, self._slots, seed=seed, faults=faults, **self._settings) as cluster,
        ):
            job = cluster.submit_translated(translation)
            status = _wait_for(job, limit_ms)
            virtual_ms = cluster.now_ms
            cluster.run_for(CALM_MS)
            details = _details(job)
            output = committed_output(translation)
            for violation in (*judge(status, output), *_world_oracles(cluster, status, details)):
                cluster.probes.report(violation.oracle, violation.problem)
            return Tried(
                seed=seed,
                faults=faults,
                status=status,
                output=output,
                violations=tuple(cluster.probes.violations),
                virtual_ms=virtual_ms,
                happened=cluster.faults_that_happened,
                recoveries=details.restarts if details else 0,
                checkpoints=details.completed_checkpoints if details else 0,
                failure=told_failure(details.failures[-1]) if details and details.failures else "",
                trace=cluster.trace,
            )

    def _translated(self, env: StreamEnvironment) -> Translation:
        """Patient enough for more failures than a job is likely to meet in its life."""
        patient = copy.copy(env)
        patient.restart = exponential_delay(initial_ms=300, max_ms=10_000)
        patient.checkpoints = replace(
            env.checkpoints,
            directory="",
            timeout_ms=min(env.checkpoints.timeout_ms, 20_000),
            tolerable_failures=1_000_000,
        )
        return translate(
            patient,
            default_parallelism=self.task_managers * self._slots,
            task_managers=self.task_managers,
            work_dir=STORAGE,
            slots=self._slots,
            job_id=JobId("job-1"),
        )


def _check(env: StreamEnvironment, translation: Translation) -> None:
    if env.checkpoints.interval_ms is None:
        raise Unfit("the job takes no checkpoints, so it survives nothing: give its environment checkpoint_interval_ms")
    for vertex in translation.graph.vertices:
        if not vertex.bounded:
            raise Unfit(f"{vertex.name!r} never ends, so there is no result to compare: give its source a bound")
    if names := sinks_outside_of_the_world(translation):
        raise Unfit(
            f"sink {', '.join(map(repr, names))} writes real files, which no simulated failure touches: "
            "for the simulation give it a path that begins with sim://"
        )


def _wait_for(job: JobHandle, limit_ms: float) -> str:
    try:
        return job.wait(timeout=limit_ms / 1000).status.value
    except JobFailed as error:
        return error.details.status.value
    except JobLost:
        return "LOST"
    except TimeoutError:
        return "STALLED"


def _details(job: JobHandle) -> JobDetails | None:
    """None when there is no JobManager any more that could tell."""
    try:
        return job.details()
    except Exception:  # noqa: BLE001  (a job that nobody can tell of is judged by its output)
        return None


def _world_oracles(cluster: SimulatedCluster, status: str, details: JobDetails | None) -> Iterator[Violation]:
    """What must hold at the end of any job, whatever it does. It may fail when all of its checkpoints were spoilt."""
    failures = details.failures if details else ()
    last = f"; its last failure: {told_failure(failures[-1])}" if failures else ""
    if status == "STALLED":
        yield Violation(
            "liveness", f"the job has not ended {RECOVERY_MS / 60_000:g} minutes after the last fault{last}"
        )
    if status == JobStatus.FAILED.value and not any(each.error_type == _SPOILT for each in failures):
        yield Violation("liveness", f"the job has failed{last}")
    if status == JobStatus.FINISHED.value and (left := [path for path, _ in cluster.disk.files() if _is_leaked(path)]):
        yield Violation("no-leaked-files", f"after the job's end there are {', '.join(left)}")
    living = [process.name for process in cluster.processes() if process.name != _JOB_MANAGER_PROCESS]
    if status != "STALLED" and living:
        yield Violation("no-leaked-processes", f"{CALM_MS / 1000:g} s after the job's end there still live {living}")


def _is_leaked(path: str) -> bool:
    """Checkpoints, and whatever is hidden; what is collected lies among the checkpoints, and stays."""
    return "/." in path or ("/checkpoints/" in path and "/collected/" not in path)


@contextmanager
def _silence() -> Iterator[None]:
    """What the package logs of failures is of no interest where failures are made by the thousand."""
    logger = getLogger("understudy")
    level = logger.level
    logger.setLevel(CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(level)
