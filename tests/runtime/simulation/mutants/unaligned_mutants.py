"""Mutants of checkpoints that overtake barriers: what is in flight is forgotten, or not all of it is known."""

from __future__ import annotations

import random
from typing import Any

from understudy.actors.barriers.in_flight_log import InFlightLog
from understudy.actors.barriers.input_gate import InputGate
from understudy.actors.flow.elements import CheckpointBarrier
from understudy.actors.tasks.task_checkpoints import TaskCheckpoints
from understudy.runtime.simulation.histories.scenario import Scenario
from understudy.runtime.simulation.histories.topologies import Workload
from understudy.runtime.simulation.world.faults import KillProcess, SlowProcess

from .mutant import CUT, OUTPUT, Patch, mutant, nothing


def held_up(seed: int) -> Scenario:
    """One TaskManager is slow from the start, so that records pile up before it; one of the two dies midway."""
    chance = random.Random(f"held up {seed}")
    workload = Workload(
        records=60,
        records_per_second=7.1,
        checkpoint_interval_ms=chance.choice((700, 1_000)),
        max_concurrent_checkpoints=chance.choice((1, 2)),
        alignment_timeout_ms=chance.choice((0, 50)),
    )
    slow = SlowProcess(chance.uniform(0, 1_000), 60_000.0, chance.randrange(2), extra_ms=chance.uniform(150, 900))
    dies = KillProcess(round(chance.uniform(0.3, 1.2) * workload.duration_ms, 1), chance.randrange(2))
    topology = chance.choice(("keyed", "fan-in", "two-inputs", "pipeline"))
    return Scenario(seed, topology, workload, faults=(slow, dies))


@mutant(OUTPUT, within=20, scenarios=held_up)
def what_was_in_flight_is_forgotten_on_restore(patch: Patch) -> None:
    patch.setattr(InputGate, "restore", nothing)


@mutant(CUT, OUTPUT, within=20, scenarios=held_up)
def a_log_ends_one_batch_early(patch: Patch) -> None:
    feed = InFlightLog.feed

    def forgetful(self: InFlightLog, channel: int, element: Any) -> None:
        if isinstance(element, CheckpointBarrier) and self._batches.get(channel):
            self._batches[channel].pop()
        feed(self, channel, element)

    patch.setattr(InFlightLog, "feed", forgetful)


@mutant(CUT, OUTPUT, within=20, scenarios=held_up)
def an_unaligned_snapshot_is_acknowledged_without_what_is_in_flight(patch: Patch) -> None:
    take = TaskCheckpoints.take
    patch.setattr(TaskCheckpoints, "take", lambda self, barrier, progress, **_overtaking: take(self, barrier, progress))


@mutant(CUT, OUTPUT, within=60, scenarios=held_up)
def what_was_read_ahead_is_not_in_flight_any_more(patch: Patch) -> None:
    """A log begins with what comes new."""
    patch.setattr(InputGate, "_read_and_waiting", lambda self: [])


@mutant(CUT, OUTPUT, within=40, scenarios=held_up)
def what_was_read_ahead_comes_after_what_is_new(patch: Patch) -> None:
    ahead = InputGate._poll_ahead

    def late(self: InputGate, index: int) -> Any:
        return self._poll(index) or ahead(self, index)

    patch.setattr(InputGate, "_poll_ahead", late)
