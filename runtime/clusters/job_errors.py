"""How a job can end, and what it may not answer.

ApiError
├── UnknownOperator          a job was asked for an operator that it does not have
├── UnknownInlet             the same of an inlet
├── JobFailed                with the chain of causes
├── JobCanceled
├── JobLost                  the cluster went away before the job ended
├── CheckpointRequestFailed  of a checkpoint that was asked for: with the cause that the JobManager gave
├── SavepointFailed          with the cause that the JobManager gave
├── SavepointNotDisposed     the same
├── InletClosed              a job that takes no more records
├── NumberGap                a record that was sent with a number that is too high
└── ResultsUnavailable       a sink that does not keep results for the client, or a job that has none yet
"""

from __future__ import annotations

from ...actors.failure import tell_kept, tell_story
from ...messages import FailureKind, JobDetails, JobStatus
from ...messages.counted import counted
from ...messages.failures import tell_line
from ..api.errors import ApiError


class UnknownOperator(ApiError, LookupError):
    """The job has no operator of this name."""


class UnknownInlet(ApiError, LookupError):
    """The job has no inlet of this name: no source that `env.from_inlet` has made."""


class JobFailed(ApiError):
    """The job ended in failure. `details.failures` holds the causes, the decisive one last; `brief` is the text without
    the chain of causes and tracebacks.
    """

    def __init__(self, details: JobDetails) -> None:
        name, (how, story) = f"job {details.name!r} ({details.job_id})", _how_it_failed(details)
        super().__init__("\n".join([f"{name} {how}", *story, *_way_back(details)]))
        self.brief = "\n".join([f"{name} {how}", *_way_back(details)])
        self.details = details


class JobCanceled(ApiError):
    """The job was canceled before it finished."""

    def __init__(self, details: JobDetails) -> None:
        super().__init__("\n".join([f"job {details.name!r} ({details.job_id}) was canceled", *_way_on(details)]))
        self.details = details


class JobLost(ApiError):
    """The JobManager is gone, so nobody knows how the job would have ended."""


class CheckpointRequestFailed(ApiError):
    """The checkpoint was refused or declined, it expired, or it could not be stored. The job goes on."""


class SavepointFailed(ApiError):
    """The savepoint was refused or declined, it expired, or it could not be stored. The job goes on."""


class SavepointNotDisposed(ApiError):
    """There is no such savepoint, or it cannot be read: nothing was deleted."""


class InletClosed(ApiError):
    """The job has ended or is being stopped, or its cluster is gone: whether the record came in is not known, unless it
    was sent after that.
    """


SEND_AGAIN = (
    "send what was not acknowledged to the inlet of the job that goes on in its place, as one submitted with the same "
    "name and resume='latest' does"
)
"""The advice of InletClosed."""


class NumberGap(ApiError, ValueError):
    """A record was sent whose number is not the next one of its sender."""

    def __init__(self, inlet: str, sender: str, number: int, wanted: int) -> None:
        super().__init__(
            f"inlet {inlet!r}: sender {sender!r} sent record {number}, wanted {wanted}, the next one, or one that is "
            "there already: last_number() says which is the last"
        )
        self.number = number
        self.wanted = wanted


class ResultsUnavailable(ApiError):
    """There are no results to give; the text says why."""


def how_it_ended(details: JobDetails) -> JobDetails:
    """The details of a job that has finished; raises JobFailed, JobCanceled."""
    match details.status:
        case JobStatus.FAILED:
            raise JobFailed(details)
        case JobStatus.CANCELED:
            raise JobCanceled(details)
    return details


def _how_it_failed(details: JobDetails) -> tuple[str, list[str]]:
    """What failed; and the chain of causes."""
    after = f"failed after {counted(details.restarts, 'restart')}"
    if not details.failures:
        return f"{after}: no cause was recorded", []
    last = details.failures[-1]
    if last.kind is FailureKind.REPEATED and last.cause is not None:
        return f"{last.error_message}\n{after}", [tell_story(last.cause)]
    line = tell_line(last)
    has_more = last.cause is not None or last.traceback or last.task_manager or last.error_message not in line
    return f"{after}: {line}", [tell_story(last)] if has_more else []


def _way_on(details: JobDetails) -> list[str]:
    """A line that says which job goes on in its place, or else how to start from what it has left."""
    if details.restarted_as:
        return [f"it was restarted from a savepoint, and goes on as job {details.restarted_as} of the same cluster"]
    return _way_back(details)


def _way_back(details: JobDetails) -> list[str]:
    """A line that says how to start from what the job has left, if it has left something."""
    path = details.retained_checkpoint_path
    last = details.failures[-1] if details.failures else None
    return [tell_kept(path, last)] if path else []
