"""TrialFaults: what goes wrong in the histories of a user's job. One seed is one schedule.

Chance alone seldom hits the moment between a barrier and its completion, or between that and its notice: few records
fall there, and what a sink holds back by itself is lost only there. So seeds are dealt out like cards: in each DECK of
them some have storage that is slow throughout, so that a checkpoint takes as long as many batches, and a kill at such a
moment. The rest is left to chance, in all of them.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from ....messages import CheckpointConfig
from ..histories.scenario import random_faults, random_slow_process
from ..world.faults import JOB_MANAGER, CheckpointMoment, Fault, KillAtCheckpoint, KillProcess, SlowStorage

_Card = tuple[bool, CheckpointMoment | None]
"""Whether storage is slow, and at which moment of a checkpoint a process dies."""

DECK: tuple[_Card, ...] = (
    (False, None),
    (False, None),
    (False, "barrier"),
    (False, "completion"),
    (True, "completion"),
    (True, "notice"),
)
"""Of as many seeds in a row each is one."""

_SLOW = 0.4, 0.9
"""By a factor between these a slow write takes as long as the time between two checkpoints. Each takes a few."""

_OF_THE_TIMEOUT = 0.1
"""But no more than this part of the time that a checkpoint may take."""

_WHEN = 0.05, 0.7
"""Between these parts of the job's life the kill is due."""

_MOST_OPERATORS = 4


@dataclass(frozen=True, slots=True)
class TrialFaults:
    """`within_ms`: how long the job lasts without faults; `checkpoints`: as it runs in a history."""

    task_managers: int
    within_ms: float
    checkpoints: CheckpointConfig

    def of(self, seed: int) -> tuple[Fault, ...]:
        """The random faults of this seed; never the JobManager's death, which is the end of the job.

        Where barriers may overtake what is in flight, a slow process sees to it that there is something.
        """
        chance = random.Random(f"faults {seed}")
        faults = list(random_faults(chance, self.task_managers, self.within_ms))
        if self.checkpoints.alignment_timeout_ms is not None:
            faults.append(random_slow_process(chance, self.task_managers, self.within_ms))
        faults = [fault for fault in faults if not (isinstance(fault, KillProcess) and fault.who == JOB_MANAGER)]
        return tuple(sorted([*faults, *self._dealt(seed)], key=lambda fault: fault.at_ms))

    def _dealt(self, seed: int) -> list[Fault]:
        """What the card of this seed adds."""
        card = random.Random(f"deck {seed // len(DECK)}").sample(DECK, len(DECK))[seed % len(DECK)]
        is_slow, moment = card
        chance = random.Random(f"dealt {seed}")
        dealt: list[Fault] = []
        if is_slow:
            extra_ms = min(
                chance.uniform(*_SLOW) * (self.checkpoints.interval_ms or 0),
                _OF_THE_TIMEOUT * self.checkpoints.timeout_ms,
            )
            dealt.append(SlowStorage(0.0, round(self.within_ms, 1), round(extra_ms, 1)))
        if moment is not None:
            at_ms = round(chance.uniform(*_WHEN) * self.within_ms, 1)
            dealt.append(KillAtCheckpoint(at_ms, moment, chance.randrange(_MOST_OPERATORS)))
        return dealt
