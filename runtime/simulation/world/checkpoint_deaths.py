"""CheckpointDeaths: processes that die between a barrier and the completion of its checkpoint, or around its notice.

Few records, and few moments of chance, fall in between, and what a sink holds back by itself is lost only there.
"""

from __future__ import annotations

from collections import defaultdict

from ....messages import CheckpointId
from .faults import CheckpointMoment
from .process import Process


class CheckpointDeaths:
    """One world's. It knows each barrier and notice of an operator, and each checkpoint that is complete."""

    def __init__(self) -> None:
        self._waiting: dict[CheckpointMoment, list[int]] = defaultdict(list)
        """How many operators are spared before the one whose process dies."""
        self._with_barrier: dict[CheckpointId, list[Process]] = defaultdict(list)
        """By checkpoint, in the order of their barriers: a process for each operator."""

    def await_moment(self, moment: CheckpointMoment, which: int) -> None:
        """At the next one a process dies."""
        self._waiting[moment].append(which)

    def had_barrier(self, process: Process, checkpoint_id: CheckpointId) -> None:
        """If the process dies of it, then after its step: so other operators of the chain may have had theirs."""
        self._with_barrier[checkpoint_id].append(process)
        self._pass("barrier", process, checkpoint_id, "before it is complete")

    def was_told(self, process: Process, checkpoint_id: CheckpointId) -> None:
        """The same."""
        self._pass("notice", process, checkpoint_id, "right after the notice of its completion")

    def completed(self, checkpoint_id: CheckpointId) -> None:
        """Nobody knows of it yet but the JobManager."""
        living = [each for each in self._with_barrier.pop(checkpoint_id, ()) if each.is_alive]
        if self._waiting["completion"] and living:
            which = self._waiting["completion"].pop(0)
            living[which % len(living)].kill(f"SIGKILL, when checkpoint {checkpoint_id} is complete, and nobody knows")

    def _pass(self, moment: CheckpointMoment, process: Process, checkpoint_id: CheckpointId, when: str) -> None:
        """One operator more has come to this moment."""
        waiting = self._waiting[moment]
        if not waiting:
            return
        waiting[0] -= 1
        if waiting[0] < 0:
            del waiting[0]
            process.world.after(0.0, None, process.kill, f"SIGKILL, at checkpoint {checkpoint_id}, {when}")
