"""What is said about outlets: what a sink has committed, and what readers ask for and get.

    task -> TaskManager -> JobManager: OutletOpened, OutletCommitted       reader -> JobManager: ReadOutlet

Positions count records from the outlet's beginning, over all restarts and jobs. A position belongs to a branch: see
state/outlets.
"""

from __future__ import annotations

from typing import TypeAlias

from .ids import ExecutionAttemptId, JobId, OperatorId
from .registry import message


@message
class OutletBranch:
    """What one attempt has put out: from position `first` up to where the next branch begins."""

    job: str
    """A fingerprint of the job's id."""
    attempt_number: int
    attempt: str
    """A fingerprint of the attempt's id."""
    first: int


@message
class OutletOpened:
    """TaskManager -> JobManager: this attempt writes the outlet now; everything before `end` is committed.

    Sent once, before the attempt runs. What an earlier attempt had committed behind `end` counts no more.
    """

    job_id: JobId
    attempt_id: ExecutionAttemptId
    operator_id: OperatorId
    outlet: str
    """Its name, as it stands in cursors."""
    folder: str
    """Where its segments lie, relative to the job's checkpoint directory."""
    branches: tuple[OutletBranch, ...]
    """The oldest first; the last one is this attempt's."""
    first: int
    """Records before this position are not kept any more."""
    end: int


@message
class OutletCommitted:
    """TaskManager -> JobManager: a checkpoint is complete, and these segments, by their names and in order, are
    committed with it.
    """

    job_id: JobId
    attempt_id: ExecutionAttemptId
    operator_id: OperatorId
    segments: tuple[str, ...]
    first: int
    """As in OutletOpened: files before it are about to go."""


@message
class ReadOutlet:
    """Client -> JobManager: what comes after this cursor; answered with OutletAnswer, when there is something, or
    nothing more can come, or `wait_ms` are over.
    """

    job_id: JobId
    operator: str
    """The sink's name or id."""
    after: str
    """A cursor; empty: from the oldest record that is kept."""
    latest: bool
    """Without a cursor: from where the outlet ends now."""
    max_bytes: int
    """The answer has at most this number, or one segment."""
    wait_ms: int


@message
class OutletPart:
    """One segment: `rows` records as bytes, and the cursor behind them."""

    data: bytes
    rows: int
    cursor: str


@message
class OutletRefusal:
    """Why a cursor cannot be followed."""

    kind: str
    """ "invalid", "expired" or "forked"."""
    text: str
    go_on_from: str
    """A cursor that can be; empty: none, but the beginning."""


@message
class OutletAnswer:
    """Some segments. Without parts nothing came in time, or nothing will come any more."""

    parts: tuple[OutletPart, ...]
    cursor: str
    """Where to go on from; as asked, if nothing is known yet."""
    is_over: bool
    """The job has ended, and nothing is behind `cursor`."""
    refusal: OutletRefusal | None = None


OutletReport: TypeAlias = OutletOpened | OutletCommitted
"""What the task of an outlet reports. A TaskManager passes it on, a JobManager hands it to the job's outlets."""
