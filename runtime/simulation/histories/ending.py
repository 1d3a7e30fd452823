"""Ending: how a job of a simulated world has ended, and who is left of it. The same for our own jobs and for users'."""

from __future__ import annotations

from collections.abc import Sequence

from ....messages import FailureKind, JobDetails
from ...clusters.job_errors import JobCanceled, JobFailed, JobLost
from ...clusters.job_handle import JobHandle
from ...oracles import Violation
from ..world.cluster import SimulatedCluster
from ..world.faults import JOB_MANAGER, RottenFile

CALM_MS = 30_000.0
"""How long a cluster without faults is left alone after the job's end; whatever ends by a timeout has ended then."""

STALLED = "STALLED"
"""The status of a job that did not end in time."""

LOST = "LOST"
"""That of a job whose JobManager died."""

SPOILT = "NoRestorableCheckpoint"
"""That of a job that has no readable checkpoint left."""

TORN_SAVEPOINT = "/savepoints/.writing-"
"""In the path of what is left of a savepoint that storage would neither take nor take back."""


def wait_for_the_end(job: JobHandle, limit_ms: float) -> str:
    """The job's status at its end, or LOST, or STALLED after so much virtual time."""
    try:
        return job.wait_as_cluster(limit_ms / 1000).status.value
    except (JobFailed, JobCanceled) as error:
        return error.details.status.value
    except JobLost:
        return LOST
    except TimeoutError:
        return STALLED


def calm_ms(now_ms: float, quiet_ms: float) -> float:
    """How long it is left alone where faults last until `quiet_ms`: what fails is tried again after twice as long each
    time.
    """
    return CALM_MS + 2 * max(0.0, quiet_ms - now_ms)


def was_spoilt(cluster: SimulatedCluster, details: JobDetails) -> bool:
    """Whether a fault took the job its checkpoints. Then it may fail, and has to say so."""
    return bool(cluster.faults_that_happened[RottenFile.__name__]) and any(
        failure.kind is FailureKind.NO_RESTORABLE_CHECKPOINT for failure in details.failures
    )


def leftover_processes(cluster: SimulatedCluster, status: str) -> Violation | None:
    """Once the job has ended and the cluster was left alone, nobody but the JobManager may live."""
    job_manager = cluster.process(JOB_MANAGER)
    left = [process.name for process in cluster.processes() if process is not job_manager]
    if status == STALLED or not left:
        return None
    return Violation("no-leaked-processes", f"long after the job's end there still live {left}")


def is_output(path: str, *, all_finished: bool) -> bool:
    """Whether a file is collected, or in an outlet: that lies among the checkpoints, and stays. There each job has a
    folder of its own, so a process that dies while its job is cancelled or fails (not `all_finished`) leaves there what
    it had begun, which is hidden.
    """
    return ("/collected/" in path or "/outlets/" in path) and not (all_finished and "/." in path)


def leftover_files(cluster: SimulatedCluster, left: Sequence[str]) -> Violation | None:
    """`left`: what should not be there. Nobody removes what a zombie writes after the job's end."""
    if cluster.launcher.zombies or not left:
        return None
    return Violation("no-leaked-files", f"after the job's end there are {', '.join(left)}")
