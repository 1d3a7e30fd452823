"""Faults as data, and the plan of a run: which come, in which order, how hard, and when.

A plan is a list of rounds. Between rounds the job recovers; the faults of one round come during the recovery from the
first of them. One seed is one plan. What real processes make of it differs from run to run.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import Enum


class Target(Enum):
    """Which link to a process a fault of the network hits."""

    DATA = "data"
    CONTROL = "control"
    JOB_MANAGER = "job-manager"


class Disk(Enum):
    """The content of the full disk."""

    CHECKPOINTS = "checkpoints"
    OUTPUT = "output"


@dataclass(frozen=True, slots=True)
class Kill:
    """SIGKILL to one TaskManager."""


@dataclass(frozen=True, slots=True)
class Freeze:
    """SIGSTOP to one TaskManager, and SIGCONT after so long, if somebody has not killed it by then."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Cut:
    """Reset all connections of a link; those that are made in the next `seconds` too."""

    target: Target
    seconds: float


@dataclass(frozen=True, slots=True)
class Stall:
    """A link carries nothing for so long, and its connections stay open."""

    target: Target
    seconds: float


@dataclass(frozen=True, slots=True)
class Slow:
    """A link is slow for so long."""

    target: Target
    seconds: float
    delay_ms: float
    bytes_per_second: float


@dataclass(frozen=True, slots=True)
class FullDisk:
    """A disk has no byte left for so long."""

    disk: Disk
    seconds: float


Fault = Kill | Freeze | Cut | Stall | Slow | FullDisk


@dataclass(frozen=True, slots=True)
class Strike:
    """A fault, `pause_s` seconds after its moment came: when the job had recovered, or when it began to."""

    fault: Fault
    pause_s: float


Round = tuple[Strike, ...]


@dataclass(frozen=True, slots=True)
class Counts:
    """How many of each kind."""

    kills: int = 0
    freezes: int = 0
    cuts: int = 0
    stalls: int = 0
    slow: int = 0
    full_disks: int = 0

    @property
    def total(self) -> int:
        return self.kills + self.freezes + self.cuts + self.stalls + self.slow + self.full_disks


@dataclass(frozen=True, slots=True)
class Pace:
    """How long a run waits, from and to, in seconds."""

    pause_s: tuple[float, float] = (0.0, 0.4)
    """Between the job's recovery and the next fault."""
    in_recovery_s: tuple[float, float] = (0.0, 0.3)
    """Between the first sign of trouble and a fault that comes on top."""


ON_TOP = 0.15
"""The share of faults that come during the recovery from another one."""


def plan(counts: Counts, seed: int, pace: Pace | None = None) -> list[Round]:
    """All faults, in an order, at moments and of a severity that the seed decides."""
    chance, pace = random.Random(seed), pace or Pace()
    faults = _faults(counts, chance)
    chance.shuffle(faults)
    rounds: list[Round] = []
    for fault in faults:
        if rounds and len(rounds[-1]) < 3 and isinstance(rounds[-1][0].fault, Kill) and chance.random() < ON_TOP:
            rounds[-1] += (Strike(fault, chance.uniform(*pace.in_recovery_s)),)
        else:
            rounds.append((Strike(fault, chance.uniform(*pace.pause_s)),))
    return rounds


def _faults(counts: Counts, chance: random.Random) -> list[Fault]:
    return [
        *(Kill() for _ in range(counts.kills)),
        *(_freeze(chance) for _ in range(counts.freezes)),
        *(Cut(chance.choice(list(Target)), chance.choice([0.0, 0.0, 0.5])) for _ in range(counts.cuts)),
        *(_stall(chance) for _ in range(counts.stalls)),
        *(_slow(chance) for _ in range(counts.slow)),
        *(FullDisk(list(Disk)[number % 2], chance.uniform(0.5, 1.5)) for number in range(counts.full_disks)),
    ]


def _freeze(chance: random.Random) -> Freeze:
    """A hiccup that nobody need notice, or long enough to be taken for dead."""
    return Freeze(chance.uniform(0.1, 1.0) if chance.random() < 0.5 else chance.uniform(3.0, 6.0))


def _stall(chance: random.Random) -> Stall:
    """The actors take a silent peer for lost after two seconds, the data plane a while after ten."""
    target = chance.choice(list(Target))
    if target is Target.DATA and chance.random() < 0.3:
        return Stall(target, chance.uniform(14.0, 16.0))
    return Stall(target, chance.uniform(0.3, 4.0))


def _slow(chance: random.Random) -> Slow:
    target, seconds = chance.choice([Target.DATA, Target.DATA, Target.CONTROL]), chance.uniform(1.0, 3.0)
    return Slow(target, seconds, chance.uniform(5, 100), chance.choice([20_000, 50_000, 200_000]))
