"""What a user of the API may meet.

ApiError
├── InvalidSetting           an argument of StreamEnvironment, a source or a restart strategy
├── InvalidProgram           a stream program that cannot run; names the operator
│   ├── DuplicateName        two operators of one name or uid
│   ├── InvalidOperator      not an operator, abstract, or without its process method
│   ├── UnknownColumn        a column that the stream does not have
│   ├── SchemaMismatch       columns that do not fit the operator or sink
│   ├── ForeignStream        streams of two environments in one program
│   ├── NotPicklable         user code that cannot be shipped; says what inside it
│   ├── OperatorCheckFailed  an operator's own check at submit, as of the folder that a sink writes to
│   ├── NoSink               nothing would run
│   └── ClusterTooSmall      fewer TaskManagers or slots than the program needs
├── UnknownOperator          a job was asked for an operator that it does not have
├── JobFailed                with the chain of causes
├── JobCanceled
├── JobLost                  the cluster went away before the job ended
├── SavepointFailed          with the cause that the JobManager gave
├── SavepointNotDisposed     the same
└── ResultsUnavailable       a sink that does not keep results for the client, or a job that has none yet
"""

from __future__ import annotations

from ...actors.failure import REPEATED_FAILURE, tell_line, tell_story
from ...messages import JobDetails


class ApiError(Exception):
    """Base of all errors of the API."""


class InvalidSetting(ApiError, ValueError):
    """A setting is out of range or of the wrong type; the text says what was found and what was wanted."""


class InvalidProgram(ApiError, ValueError):
    """The program cannot run as it stands."""


class DuplicateName(InvalidProgram):
    """Names and uids are unique in an environment: state is restored, and questions are addressed, by them."""


class InvalidOperator(InvalidProgram, TypeError):
    """An object given as an operator is not one, or is not complete."""


class UnknownColumn(InvalidProgram):
    """A column name or position that the stream's schema does not have."""


class SchemaMismatch(InvalidProgram):
    """The stream's schema does not fit the operator or sink that takes it."""


class ForeignStream(InvalidProgram):
    """Streams of different environments cannot be joined."""


class NotPicklable(InvalidProgram, TypeError):
    """User code is shipped with cloudpickle, and something inside it cannot be."""


class OperatorCheckFailed(InvalidProgram):
    """What an operator's `check_at_submit` raised, which is the cause: the job would fail."""


class NoSink(InvalidProgram):
    """Only what reaches a sink runs."""


class ClusterTooSmall(InvalidProgram):
    """The program needs more TaskManagers or slots than the cluster has."""


class UnknownOperator(ApiError, LookupError):
    """The job has no operator of this name."""


class JobFailed(ApiError):
    """The job ended in failure. `details.failures` holds the causes, the decisive one last."""

    def __init__(self, details: JobDetails) -> None:
        failed = f"job {details.name!r} ({details.job_id}) {_how_it_failed(details)}"
        super().__init__("\n".join([failed, *_way_back(details)]))
        self.details = details


class JobCanceled(ApiError):
    """The job was canceled before it finished."""

    def __init__(self, details: JobDetails) -> None:
        super().__init__("\n".join([f"job {details.name!r} ({details.job_id}) was canceled", *_way_back(details)]))
        self.details = details


class JobLost(ApiError):
    """The JobManager is gone, so nobody knows how the job would have ended."""


class SavepointFailed(ApiError):
    """The savepoint was refused or declined, it expired, or it could not be stored. The job goes on."""


class SavepointNotDisposed(ApiError):
    """There is no such savepoint, or it cannot be read: nothing was deleted."""


class ResultsUnavailable(ApiError):
    """There are no results to give; the text says why."""


def _how_it_failed(details: JobDetails) -> str:
    """What failed, in the first line; then the chain of causes."""
    after = f"failed after {details.restarts} restarts"
    if not details.failures:
        return f"{after}: no cause was recorded"
    last = details.failures[-1]
    if last.error_type == REPEATED_FAILURE and last.cause is not None:
        return f"{last.error_message}\n{after}\n{tell_story(last.cause)}"
    return f"{after}: {tell_line(last)}\n{tell_story(last)}"


def _way_back(details: JobDetails) -> list[str]:
    """A line that says how to start from what the job has left, if it has left something."""
    path = details.retained_checkpoint_path
    return [f"its checkpoint is kept; to go on from there: from_savepoint={path!r}"] if path else []
