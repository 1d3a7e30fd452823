"""LongWaits: which checkpoint waits too long for its subtasks, and what can be done about it, in words for the log.

    pending --WAIT_MS, and some intervals--> overdue: said, once --AGAIN_MS--> said again

The next checkpoint that waits for the same subtasks is no news. Nothing is said while a subtask that it waits for does
not run, while its metadata are stored, and of a final checkpoint, which has no records before it. A value machine of
the CheckpointCoordinator; it changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...messages import CheckpointConfig, VertexId
from ...messages.counted import counted
from ..job_graph import SubtaskKey
from .awaited_subtasks import awaited, awaited_in_words, names
from .checkpoint_plan import VertexShape
from .checkpoint_tasks import CheckpointTasks
from .pending_checkpoint import CheckpointKind, PendingCheckpoint

WAIT_MS = 10_000
"""Any checkpoint and savepoint may wait for this time."""

INTERVALS = 3
"""A periodic one may wait for this number of intervals, if that is longer; for half its timeout at most."""

AGAIN_MS = 600_000
"""After this time the same wait is said again."""

_BEHIND = "Usually barriers stand behind records that wait there (back-pressure; `understudy back-pressure` shows it)"
_FASTER = "raise the parallelism (that does not divide the records of one key), make the operator faster"
_RATE = "give the source a rate (records_per_second)"
_OVERTAKE = (
    "let barriers overtake records by StreamEnvironment(alignment_timeout_ms=1_000); if the source is always faster "
    "than the operator, give it a rate in any case, as overtaken records wait in memory"
)
_DOCS = 'docs/failures.md, "Checkpoints under back-pressure", says more'


class LongWaits:
    """One job's."""

    def __init__(self, config: CheckpointConfig, shapes: Mapping[VertexId, VertexShape]) -> None:
        self._shapes = shapes
        self._exactly_once = config.exactly_once
        self._overtakes_after_ms = config.alignment_timeout_ms if config.exactly_once else None
        intervals_ms = min(INTERVALS * (config.interval_ms or 0), config.timeout_ms / 2)
        self._patience_ms = max(WAIT_MS, intervals_ms) + (self._overtakes_after_ms or 0)
        self._told: dict[tuple[bool, SubtaskKey], float] = {}
        """When it was said of this subtask that checkpoints, or savepoints, wait for it."""

    def look(self, pending: Iterable[PendingCheckpoint], tasks: CheckpointTasks, now_ms: float) -> str:
        """What is to be said now, if anything. `pending`: oldest first."""
        collecting = [each for each in pending if not each.is_fully_acknowledged]
        for place, each in enumerate(collecting):
            is_savepoint = each.kind.is_savepoint
            if place and not is_savepoint:  # it waits for the older one, too
                continue
            if each.kind is CheckpointKind.FINAL or now_ms - each.started_ms < self._patience(each):
                continue
            missing = awaited(each)
            if tasks.all_run(missing) and self._is_news(is_savepoint, missing, now_ms):
                return self._tell(each, missing, now_ms)
        return ""

    def _patience(self, pending: PendingCheckpoint) -> float:
        return WAIT_MS if pending.kind.is_savepoint else self._patience_ms

    def _is_news(self, is_savepoint: bool, missing: Iterable[SubtaskKey], now_ms: float) -> bool:
        self._told = {each: at_ms for each, at_ms in self._told.items() if now_ms - at_ms < AGAIN_MS}
        found = [(is_savepoint, subtask) for subtask in missing]
        if all(each in self._told for each in found):
            return False
        self._told.update(dict.fromkeys(found, now_ms))
        return True

    def _tell(self, pending: PendingCheckpoint, missing: tuple[SubtaskKey, ...], now_ms: float) -> str:
        who = awaited_in_words(names(missing, self._shapes), len(missing))
        what = "savepoint" if pending.kind.is_savepoint else "checkpoint"
        return (
            f"{what} {pending.checkpoint_id} has waited for {(now_ms - pending.started_ms) / 1000:.0f} s: "
            f"{len(missing)} of {counted(len(pending.attempts), 'subtask')} {'has' if len(missing) == 1 else 'have'} "
            f"not acknowledged it: {who}. {self._advice(pending)}. {_DOCS}"
        )

    def _advice(self, pending: PendingCheckpoint) -> str:
        if pending.kind.is_savepoint:
            return f"{_BEHIND}. A savepoint is always aligned, so its barriers overtake none: {_FASTER}, or {_RATE}"
        if self._overtakes_after_ms is not None:
            return (
                f"Barriers overtake records since alignment_timeout_ms={self._overtakes_after_ms}, so either one call "
                "of the operator takes long there (`understudy flame-graph` shows where), or its state is slow to store"
            )
        if not self._exactly_once:
            return f"{_BEHIND}: {_FASTER}, or {_RATE}"
        return f"{_BEHIND}: {_FASTER}, {_RATE}, or {_OVERTAKE}"
