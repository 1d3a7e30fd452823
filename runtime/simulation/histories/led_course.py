"""LedCourse: what the leaders of one history have done, read from its trace as it grows; and what each was doing when
it died.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from ....messages import (
    CancelTask,
    CheckpointAborted,
    CheckpointCompleted,
    CheckpointId,
    JobStatus,
    JobStatusChanged,
    LeaderSessionId,
    NotifyCheckpointAborted,
    NotifyCheckpointComplete,
    OrderTogether,
    SubmitTask,
    TriggerCheckpoint,
)
from ...high_availability.job_record import JobRecord, read_record
from ..world.frame_text import FrameText
from ..world.led_cluster import LedCluster


class KillMoment(Enum):
    """A leader dies in the middle of it."""

    RUNNING = "normal running"
    PENDING = "a pending checkpoint"
    UNANNOUNCED = "just after a checkpoint completed and before it was announced"
    SAVEPOINT = "a savepoint under way"
    RESTART = "a restart of the job"
    SUBMISSION = "submission"
    CANCELLATION = "cancellation"
    STOP = "stop with savepoint"


@dataclass(slots=True)
class Orders:
    """What the user has asked the present leader for, and has no answer to."""

    is_submitting: bool = False
    wants_savepoint: bool = False
    wants_stop: bool = False


@dataclass(slots=True)
class _Session:
    triggered: dict[CheckpointId, TriggerCheckpoint] = field(default_factory=dict)
    over: set[CheckpointId] = field(default_factory=set)
    cancels: bool = False
    deploys: bool = False


class LedCourse:
    """Of one history."""

    def __init__(self, cluster: LedCluster) -> None:
        self._cluster = cluster
        self._read = 0
        self._sessions: dict[LeaderSessionId, _Session] = {}
        self.announced: set[CheckpointId] = set()
        """To the job's listeners, or to one of its tasks."""
        self.status: JobStatus | None = None
        """As the latest leader has reported it."""

    def has_more(self) -> bool:
        """Whether anything has happened since `read_on`."""
        return self._read < len(self._cluster.trace.entries)

    def read_on(self) -> None:
        """All that has happened since the last time."""
        entries = self._cluster.trace.entries
        while self._read < len(entries):
            _, _, what, details = entries[self._read]
            self._read += 1
            match what, details:
                case "received", (FrameText() as frame,):
                    session, message = frame.directed()
                    if session is not None:
                        self._directed(self._sessions.setdefault(session, _Session()), message)
                case _, (CheckpointCompleted(checkpoint_id=checkpoint_id),):
                    self.announced.add(checkpoint_id)
                case _, (CheckpointAborted(checkpoint_id=checkpoint_id),):
                    for each in self._sessions.values():
                        each.over.add(checkpoint_id)
                case _, (JobStatusChanged(status=status),):
                    self.status = status

    def _directed(self, session: _Session, message: object) -> None:
        match message:
            case OrderTogether(orders):
                for each in orders:
                    self._directed(session, each)
            case TriggerCheckpoint(checkpoint_id=checkpoint_id):
                session.triggered[checkpoint_id] = message
            case NotifyCheckpointComplete(checkpoint_id=checkpoint_id):
                self.announced.add(checkpoint_id)
            case NotifyCheckpointAborted(checkpoint_id=checkpoint_id):
                session.over.add(checkpoint_id)
            case CancelTask():
                session.cancels = True
            case SubmitTask():
                session.deploys = True

    # -- what was done

    def ids_in_disorder(self) -> str:
        """What is wrong with the ids that leaders have triggered; "" if they increase strictly over all of them."""
        self.read_on()
        highest, of = CheckpointId(0), ""
        for session in sorted(self._sessions, key=_number):
            triggered = self._sessions[session].triggered
            if triggered and min(triggered) <= highest:
                return f"session {session} triggers checkpoint {min(triggered)}, after {highest} of session {of}"
            if triggered:
                highest, of = max(triggered), session
        return ""

    def has_deployed(self, session: LeaderSessionId) -> bool:
        """Whether this leader has started any task; one that goes on with those of another has not."""
        self.read_on()
        return session in self._sessions and self._sessions[session].deploys

    # -- what is under way

    def pending(self) -> set[CheckpointId]:
        """Those that the present leader has triggered, and that are not stored, nor given up."""
        self.read_on()
        session = self._sessions.get(self._cluster.leaderships[-1].session, _Session())
        kept = {each.checkpoint_id for record in self.records() for each in record.checkpoints}
        return session.triggered.keys() - session.over - self.announced - kept

    def unannounced(self) -> set[CheckpointId]:
        """Those that a successor would find, and of which nobody has heard."""
        self.read_on()
        newest = [record.checkpoints[-1].checkpoint_id for record in self.records() if record.checkpoints]
        return {each for each in newest if each > max(self.announced, default=0)}

    def stopped_with(self) -> str:
        """The savepoint that is to be the last thing the job does, if a successor would find it; else ""."""
        self.read_on()
        stops = {each for session in self._sessions.values() for each, said in session.triggered.items() if said.stop}
        newest = [record.checkpoints[-1] for record in self.records() if record.checkpoints]
        return next((each.savepoints[0] for each in newest if each.savepoints and each.checkpoint_id in stops), "")

    def records(self) -> Iterable[JobRecord]:
        return [read_record(data, name) for name, data in self._cluster.zookeeper.records.items()]

    def moments(self, orders: Orders) -> set[KillMoment]:
        """Those that hold of the present leader."""
        pending = self.pending()
        session = self._sessions.get(self._cluster.leaderships[-1].session, _Session())
        triggers = [session.triggered[each] for each in pending]
        has_job = bool(self._cluster.zookeeper.records)
        found = {
            KillMoment.PENDING: bool(pending),
            KillMoment.UNANNOUNCED: bool(self.unannounced()),
            KillMoment.SAVEPOINT: orders.wants_savepoint and any(each.whole for each in triggers),
            KillMoment.RESTART: self.status is JobStatus.RESTARTING,
            KillMoment.SUBMISSION: orders.is_submitting,
            KillMoment.CANCELLATION: session.cancels and self.status is JobStatus.CANCELLING and has_job,
            KillMoment.STOP: orders.wants_stop and has_job and any(each.stop for each in session.triggered.values()),
        }
        reached = {moment for moment, is_so in found.items() if is_so}
        return reached or ({KillMoment.RUNNING} if self.status is JobStatus.RUNNING else set())


def _number(session: LeaderSessionId) -> int:
    """Of a simulated leader."""
    return int(session.partition("-")[0])
