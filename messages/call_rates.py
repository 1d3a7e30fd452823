"""What is said about rates: how many calls a subtask may begin, so that those of its operator keep to the rate."""

from __future__ import annotations

from .ids import ExecutionAttemptId, JobId, OperatorId
from .registry import message


@message
class RequestPermits:
    """Task -> TaskManager -> JobManager: a subtask of an operator with a rate would begin this many calls.

    Answered by one GrantPermits, when there are permits. A newer one of the same attempt takes the place of the one
    that waits.
    """

    job_id: JobId
    attempt_id: ExecutionAttemptId
    operator_id: OperatorId
    count: int


@message
class GrantPermits:
    """JobManager -> TaskManager -> task: it may begin this many calls: as many as it requested, or fewer, and one at
    least. Permits that its attempt does not use are lost.
    """

    job_id: JobId
    attempt_id: ExecutionAttemptId
    operator_id: OperatorId
    count: int
    rate_per_second: float
    """The subtask's share of the operator's present rate."""


@message
class ReportThrottled:
    """Task -> TaskManager -> JobManager: the other end of a call said that there are too many of them, as with 429."""

    job_id: JobId
    attempt_id: ExecutionAttemptId
    operator_id: OperatorId
    retry_after_ms: float
    """No call is wanted for so long; 0: that was not said."""
