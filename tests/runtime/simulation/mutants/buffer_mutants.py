"""Mutants of small batches that are kept, to be sent together: barriers overtake them, or their order is lost."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from understudy.actors.flow.elements import Batch, CheckpointBarrier
from understudy.actors.flow.output_buffer import OutputBuffer
from understudy.actors.flow.outputs import TaskOutputs
from understudy.runtime.simulation.histories.scenario import Scenario

from .mutant import CUT, OUTPUT, Patch, mutant
from .unaligned_mutants import held_up


def kept(seed: int) -> Scenario:
    """Records that come one by one to a TaskManager that is slow, which keeps them for a long time."""
    scenario, chance = held_up(seed), random.Random(f"kept {seed}")
    workload = replace(
        scenario.workload,
        batch_rows=1,
        buffer_timeout_ms=chance.choice((1_000, 5_000)),
        alignment_timeout_ms=chance.choice((None, 50)),
    )
    return replace(scenario, workload=workload)


def in_order(seed: int) -> Scenario:
    """The same, in a job whose output shows the order of what went through its channels."""
    return replace(kept(seed), topology="columnar-updates")


@mutant(CUT, OUTPUT, within=20, scenarios=kept)
def barriers_overtake_what_is_kept(patch: Patch) -> None:
    broadcast = TaskOutputs.broadcast

    def hasty(self: TaskOutputs, control: Any) -> None:
        if not isinstance(control, CheckpointBarrier):
            return broadcast(self, control)
        for channel in self.channels:
            channel.send(control)

    patch.setattr(TaskOutputs, "broadcast", hasty)


@mutant(OUTPUT, within=20, scenarios=in_order)
def what_is_kept_is_sent_in_reverse(patch: Patch) -> None:
    take = OutputBuffer.take

    def reversed_take(self: OutputBuffer) -> Sequence[Batch]:
        self._kept.reverse()
        return take(self)

    patch.setattr(OutputBuffer, "take", reversed_take)


@mutant(OUTPUT, within=20, scenarios=kept)
def what_is_kept_is_forgotten_when_a_task_rests(patch: Patch) -> None:
    patch.setattr(TaskOutputs, "flush", lambda self: [edge.buffer.take() for edge in self._edges])
