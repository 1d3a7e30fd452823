"""Tried: one history of a user's job, run to its end and judged. The counterpart of history.py for jobs not ours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from logging import CRITICAL, getLogger
from types import MappingProxyType

from ....actors import operators
from ....actors.checkpoints.checkpoint_reasons import CheckpointFailure
from ....actors.tasks import time_report
from ....messages import CheckpointAborted, JobDetails, JobStatus
from ...api.translation import Translation
from ...clusters.job_handle import JobHandle
from ...connectors.files.folder_owner import FOLDER as OWNER
from ...oracles import Violation
from ..histories.actions import ClientAction
from ..histories.ending import (
    SPOILT,
    STALLED,
    TORN_SAVEPOINT,
    calm_ms,
    is_output,
    leftover_files,
    leftover_processes,
    was_spoilt,
)
from ..histories.story import told_failure
from ..histories.verdict import CRASH, CRASHED
from ..world.cluster import SimulatedCluster
from ..world.faults import Fault
from ..world.trace import Entry, Trace
from ..world.world import ProcessKilled
from .committed_output import Output, Outside, committed_output
from .rescale import SavepointUser

Judge = Callable[[str, Output], Iterable[Violation]]
"""Given the job's status at its end and what it has committed by then: which oracles broke."""

Translated = Callable[[int, int], Translation]
"""The job with this parallelism (0: that of its environment), the first, second, ... that is submitted."""

_HEARD = (operators.__name__, time_report.__name__)
"""The loggers of what operators notice, as times in seconds, and of late records."""


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
    """Without those that a newer one made needless."""
    actions: tuple[ClientAction, ...] = ()
    """The user's actions meanwhile."""
    rescales: int = 0
    """How often the job went on from a savepoint."""
    kept: tuple[str, ...] = ()
    """Which rescalings were refused, and why."""
    ahead: str = ""
    """The source that ran ahead of the others, if one did."""
    failure: str = ""
    """The last one that the job had, in a line."""
    crash: BaseException | None = None
    """What the simulator, or code that it called, has raised and nobody caught."""


def try_once(
    cluster: SimulatedCluster,
    translated: Translated,
    limit_ms: float,
    judge: Judge,
    actions: tuple[ClientAction, ...] = (),
    outside: Outside = MappingProxyType({}),
    *,
    is_first: bool = False,
) -> Tried:
    """Run a job on a cluster that has just been started. Raises only what `submit_translated` raises.

    `limit_ms`: how long the job may take. `is_first`: operators may log what they notice of the program.
    """
    tried = Tried(cluster.seed, cluster.faults, cluster.trace, actions=actions)
    probes = cluster.probes
    submitted: list[Translation] = []

    def submit(parallelism: int, savepoint: str | None) -> JobHandle:
        translation = translated(parallelism, len(submitted) + 1)
        job = cluster.submit_translated(translation, from_savepoint=savepoint)
        submitted.append(translation)
        return job

    with _silence(but=_HEARD if is_first else ()):
        quiet_ms = max((fault.until_ms for fault in cluster.faults), default=0.0)
        user = SavepointUser(cluster, submit, limit_ms, quiet_ms)
        try:
            _run_to_its_end(tried, cluster, user, quiet_ms)
            tried.output = committed_output(submitted, user.jobs[-1], outside)
            for violation in (*judge(tried.status, tried.output), *_judge_the_world(cluster, tried, user.jobs)):
                probes.report(violation.oracle, violation.problem)
        except (Exception, ProcessKilled) as error:  # noqa: BLE001  (the outcome of a history, whatever it is)
            tried.status, tried.crash = CRASHED, error
            probes.report(CRASH, f"{type(error).__name__}: {error}")
    tried.violations = tuple(probes.violations)
    return tried


def _run_to_its_end(tried: Tried, cluster: SimulatedCluster, user: SavepointUser, quiet_ms: float) -> None:
    tried.status = user.run(tried.actions)
    tried.virtual_ms = cluster.now_ms
    user.dispose_of_all()
    cluster.run_for(calm_ms(cluster.now_ms, quiet_ms))
    tried.happened = cluster.faults_that_happened
    tried.aborted_checkpoints = sum(map(_is_failed_checkpoint, cluster.trace.entries))
    tried.rescales, tried.kept = user.done, tuple(user.kept)
    for details in filter(None, map(_details, user.jobs)):
        tried.recoveries += details.restarts
        tried.checkpoints += details.completed_checkpoints
        tried.failure = told_failure(details.failures[-1]) if details.failures else tried.failure
    last = _details(user.jobs[-1])
    if last is not None and tried.status == JobStatus.FAILED.value and was_spoilt(cluster, last):
        tried.status = SPOILT


def _is_failed_checkpoint(entry: Entry) -> bool:
    match entry[3]:
        case (CheckpointAborted(reason=reason),):
            return not reason.startswith(CheckpointFailure.SUBSUMED.value)
        case _:
            return False


def _details(job: JobHandle) -> JobDetails | None:
    """None when there is no JobManager any more that could tell."""
    try:
        return job.details()
    except Exception:  # noqa: BLE001  (a job that no one can describe is judged by its output)
        return None


def _judge_the_world(cluster: SimulatedCluster, tried: Tried, jobs: Sequence[JobHandle]) -> Iterator[Violation]:
    """What must hold at the end of any job, whatever it does. It may fail when all of its checkpoints were spoilt; and
    nobody removes what a zombie writes after the job's end.
    """
    tidy = all(job.status is JobStatus.FINISHED for job in jobs)
    last = f"; its last failure: {tried.failure}" if tried.failure else ""
    if tried.status == STALLED:
        yield Violation(
            "liveness", f"the job has not ended by {tried.virtual_ms / 1000:.0f} s, long after the last fault{last}"
        )
    if tried.status == JobStatus.FAILED.value:
        yield Violation("liveness", f"the job has failed{last}")
    left = [path for path, _ in cluster.disk.files() if _is_leaked(path, tidy)]
    if tried.status == JobStatus.FINISHED.value and (leaked := leftover_files(cluster, left)) is not None:
        yield leaked
    if (living := leftover_processes(cluster, tried.status)) is not None:
        yield living


def _is_leaked(path: str, tidy: bool) -> bool:
    """Checkpoints, and whatever is hidden, but for output, and the file that says whose an output folder is."""
    if TORN_SAVEPOINT in path or f"/{OWNER}/" in path or is_output(path, all_finished=tidy):
        return False
    return "/." in path or "/checkpoints/" in path


@contextmanager
def _silence(but: Sequence[str]) -> Iterator[None]:
    """Logged failures are of no interest where failures are made by the thousand; these loggers are heard."""
    loud = {getLogger(name): getLogger(name).getEffectiveLevel() for name in but}
    levels = {logger: logger.level for logger in (getLogger("understudy"), *loud)}
    getLogger("understudy").setLevel(CRITICAL + 1)
    for logger, level in loud.items():
        logger.setLevel(level)
    try:
        yield
    finally:
        for logger, level in levels.items():
            logger.setLevel(level)
