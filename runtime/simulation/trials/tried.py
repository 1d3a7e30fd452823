"""Tried: one history of a user's job, run to its end and judged. The counterpart of history.py for jobs not ours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from logging import CRITICAL, getLogger

from ....messages import CheckpointAborted, JobDetails, JobStatus
from ...api.translation import Translation
from ...clusters.job_handle import JobHandle
from ...oracles import Violation
from ..histories.actions import ClientAction
from ..histories.ending import CALM_MS, SPOILT, STALLED, leftover_processes, wait_for_the_end, was_spoilt
from ..histories.story import told_failure
from ..histories.verdict import CRASH, CRASHED
from ..world.cluster import SimulatedCluster
from ..world.faults import Fault
from ..world.trace import Trace
from ..world.world import ProcessKilled
from .committed_output import Output, committed_output

Judge = Callable[[str, Output], Iterable[Violation]]
"""Given the job's status at its end and what it has committed by then: which oracles broke."""


@dataclass(slots=True)
class Tried:
    """What became of it. `status` is the job's at its end, or one of "LOST", "STALLED", "CRASHED" and
    "NoRestorableCheckpoint".
    """

    seed: int
    faults: tuple[Fault, ...]
    trace: Trace
    status: str = CRASHED
    output: Output = field(default_factory=dict)
    violations: tuple[Violation, ...] = ()
    virtual_ms: float = 0.0
    happened: Counter[str] = field(default_factory=Counter)
    recoveries: int = 0
    checkpoints: int = 0
    aborted_checkpoints: int = 0
    actions: tuple[ClientAction, ...] = ()
    """What the user was to do meanwhile."""
    failure: str = ""
    """The last one that the job had, in a line."""
    crash: BaseException | None = None
    """What the simulator, or code that it called, has raised and nobody caught."""


def try_once(cluster: SimulatedCluster, translation: Translation, limit_ms: float, judge: Judge) -> Tried:
    """Run a job on a cluster that has just been started. Raises only what `submit_translated` raises."""
    tried = Tried(cluster.seed, cluster.faults, cluster.trace)
    probes = cluster.probes
    with _silence():
        job = cluster.submit_translated(translation)
        try:
            _run_to_its_end(tried, cluster, job, limit_ms)
            tried.output = committed_output(translation)
            for violation in (*judge(tried.status, tried.output), *_judge_the_world(cluster, tried)):
                probes.report(violation.oracle, violation.problem)
        except (Exception, ProcessKilled) as error:  # noqa: BLE001  (the outcome of a history, whatever it is)
            tried.status, tried.crash = CRASHED, error
            probes.report(CRASH, f"{type(error).__name__}: {error}")
    tried.violations = tuple(probes.violations)
    return tried


def _run_to_its_end(tried: Tried, cluster: SimulatedCluster, job: JobHandle, limit_ms: float) -> None:
    tried.status = wait_for_the_end(job, limit_ms)
    tried.virtual_ms = cluster.now_ms
    cluster.run_for(CALM_MS)
    tried.happened = cluster.faults_that_happened
    tried.aborted_checkpoints = sum(what == CheckpointAborted.__name__ for _, _, what, _ in cluster.trace.entries)
    details = _details(job)
    if details is not None:
        tried.recoveries = details.restarts
        tried.checkpoints = details.completed_checkpoints
        tried.failure = told_failure(details.failures[-1]) if details.failures else ""
        if tried.status == JobStatus.FAILED.value and was_spoilt(cluster, details):
            tried.status = SPOILT


def _details(job: JobHandle) -> JobDetails | None:
    """None when there is no JobManager any more that could tell."""
    try:
        return job.details()
    except Exception:  # noqa: BLE001  (a job that no one can describe is judged by its output)
        return None


def _judge_the_world(cluster: SimulatedCluster, tried: Tried) -> Iterator[Violation]:
    """What must hold at the end of any job, whatever it does. It may fail when all of its checkpoints were spoilt; and
    nobody removes what a zombie writes after the job's end.
    """
    last = f"; its last failure: {tried.failure}" if tried.failure else ""
    if tried.status == STALLED:
        yield Violation(
            "liveness", f"the job has not ended by {tried.virtual_ms / 1000:.0f} s, long after the last fault{last}"
        )
    if tried.status == JobStatus.FAILED.value:
        yield Violation("liveness", f"the job has failed{last}")
    left = [path for path, _ in cluster.disk.files() if _is_leaked(path)]
    if left and tried.status == JobStatus.FINISHED.value and not cluster.launcher.zombies:
        yield Violation("no-leaked-files", f"after the job's end there are {', '.join(left)}")
    if (living := leftover_processes(cluster, tried.status)) is not None:
        yield living


def _is_leaked(path: str) -> bool:
    """Checkpoints, and whatever is hidden; what is collected lies among the checkpoints, and stays."""
    return "/." in path or ("/checkpoints/" in path and "/collected/" not in path)


@contextmanager
def _silence() -> Iterator[None]:
    """Logged failures are of no interest where failures are made by the thousand."""
    logger = getLogger("understudy")
    level = logger.level
    logger.setLevel(CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(level)
