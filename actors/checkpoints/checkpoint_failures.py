"""CheckpointFailures: how many checkpoints in a row have failed, and when that fails the job.

Flink: CheckpointFailureManager. Each checkpoint counts once at most; a completed one resets the count. Savepoints
do not count: whoever asked for one gets the failure.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

from ...messages import (
    AbortReason,
    CheckpointId,
    DeclineCheckpoint,
    ExecutionAttemptId,
    FailureCause,
    FailureKind,
    SubtaskIndex,
    VertexId,
)
from .awaited_subtasks import vertex_name
from .checkpoint_effects import FailJob
from .checkpoint_plan import VertexShape
from .checkpoint_reasons import CheckpointFailure
from .finished_checkpoints import REMEMBERED_CHECKPOINTS
from .pending_checkpoint import PendingCheckpoint

_COUNTED = frozenset({CheckpointFailure.DECLINED, CheckpointFailure.EXPIRED, CheckpointFailure.METADATA_FAILED})
"""The others have their cause outside the checkpoint."""

NAMES_SHOWN, INDEXES_SHOWN = 4, 8
"""How many operators, and subtasks of each, an error names."""


class CheckpointFailures:
    """The count of one job."""

    def __init__(self, tolerable: int) -> None:
        self._tolerable = tolerable
        self._in_a_row = 0
        self._uncounted: deque[CheckpointId] = deque(maxlen=REMEMBERED_CHECKPOINTS)

    def completed(self) -> None:
        self._in_a_row = 0

    def gave_up(self, pending: PendingCheckpoint, failure: CheckpointFailure) -> None:
        """It may be counted from now on: when it expired, say, or as soon as a firsthand decline has come."""
        if failure in _COUNTED and not pending.kind.is_savepoint:
            self._uncounted.append(pending.checkpoint_id)

    def forget_uncounted(self) -> None:
        """The tasks restart: what comes in about earlier checkpoints is an echo of that."""
        self._uncounted.clear()

    def count_decline(self, message: DeclineCheckpoint, who: str) -> list[FailJob]:
        """`who` declined, in words. A secondhand decline ends the checkpoint; the one that began it is counted."""
        if message.reason.is_secondhand:
            return []
        what = f"was declined by {who}: {message.text}"
        kind = FailureKind.NOT_STORABLE if message.reason is AbortReason.NOT_STORABLE else FailureKind.OTHER
        return self.count(message.checkpoint_id, what, repeatable=message.repeatable, kind=kind)

    def count(
        self,
        checkpoint_id: CheckpointId,
        what: str,
        *,
        repeatable: bool = False,
        advice: str = "",
        kind: FailureKind = FailureKind.OTHER,
    ) -> list[FailJob]:
        """The job's failure, which ends with the advice, when this was one too many; the count is reset then."""
        if checkpoint_id not in self._uncounted:
            return []
        self._uncounted.remove(checkpoint_id)
        self._in_a_row += 1
        if self._in_a_row <= self._tolerable:
            return []
        self._in_a_row = 0
        text = f"checkpoint {checkpoint_id} {what} (tolerable_checkpoint_failures={self._tolerable}){advice}"
        return [FailJob(FailureCause("CheckpointFailed", text, repeatable=repeatable, kind=kind))]


def who_is(
    attempt_id: ExecutionAttemptId,
    pending: PendingCheckpoint,
    shapes: Mapping[VertexId, VertexShape],
    places: Mapping[ExecutionAttemptId, str],
) -> str:
    """An attempt, as a person knows it: operator, subtask, and where it runs; a stranger by its id."""
    subtask = pending.attempts.get(attempt_id)
    if subtask is None:
        return str(attempt_id)
    place = f" ({places[attempt_id]})" if attempt_id in places else ""
    return f"{vertex_name(subtask.vertex_id, shapes)} subtask {subtask.subtask_index}{place}"


def how_far(
    pending: PendingCheckpoint, shapes: Mapping[VertexId, VertexShape], places: Mapping[ExecutionAttemptId, str]
) -> str:
    """How many subtasks have acknowledged, which are missing, and where these run; of many only some are named."""
    total = len(pending.attempts)
    if pending.is_fully_acknowledged:
        return f"all {total} subtasks had acknowledged, but its metadata was not stored yet"
    missing: dict[VertexId, list[SubtaskIndex]] = {}
    where: dict[str, None] = {}
    for attempt_id, subtask in pending.attempts.items():
        if pending.is_waiting_for(attempt_id):
            missing.setdefault(subtask.vertex_id, []).append(subtask.subtask_index)
            if attempt_id in places:
                where[places[attempt_id]] = None
    named = [
        f"{vertex_name(vertex_id, shapes)} {_some(sorted(indexes), INDEXES_SHOWN)}"
        for vertex_id, indexes in missing.items()
    ]
    told = f" ({_some(list(where), NAMES_SHOWN)})" if where else ""
    acknowledged = f"{len(pending.acknowledged)} of {total} subtasks had acknowledged"
    return f"{acknowledged}; missing: {_some(named, NAMES_SHOWN)}{told}"


def sooner(pending: PendingCheckpoint, *, is_unaligned: bool) -> str:
    """What lets a checkpoint that expired complete; nothing of one that waited for its metadata alone."""
    if pending.is_fully_acknowledged:
        return ""
    overtake = "" if is_unaligned else "alignment_timeout_ms lets barriers overtake records, "
    return (
        "; barriers stand behind records that wait for a slow task: `understudy back-pressure` shows where, "
        f"{overtake}checkpoint_timeout_ms gives them longer"
    )


def _some(items: Sequence[object], limit: int) -> str:
    shown = ", ".join(str(item) for item in items[:limit])
    return f"{shown} and {len(items) - limit} more" if len(items) > limit else shown
