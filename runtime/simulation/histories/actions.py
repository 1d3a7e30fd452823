"""Client actions, as data: what the user of a job asks of its cluster, and when. Faults go on meanwhile.

Times are virtual milliseconds from the start, as those of faults. An action that finds nothing to be done to (no
savepoint to dispose of, none to restart from) is not done.
"""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClientAction:
    """Something that the user does at one moment, or as soon as what it builds on is there."""

    at_ms: float


@dataclass(frozen=True, slots=True)
class TakeSavepoint(ClientAction):
    """Of the job that is the latest one."""


@dataclass(frozen=True, slots=True)
class TakeCheckpoint(ClientAction):
    """Of the latest job, beside those at its interval."""

    full: bool = False


@dataclass(frozen=True, slots=True)
class StopWithSavepoint(ClientAction):
    """End the latest job with a savepoint: at its barrier, or with `drain` after its data was ended."""

    drain: bool = False


@dataclass(frozen=True, slots=True)
class CancelWithSavepoint(ClientAction):
    """Take a savepoint of the latest job, and cancel the job then."""


@dataclass(frozen=True, slots=True)
class RestartFromSavepoint(ClientAction):
    """Submit the job again, from the newest savepoint that is there, in this parallelism.

    A job that is being stopped is waited for. One that goes on is cancelled; what it has committed after the savepoint
    does not count then.
    """

    parallelism: int = 1


@dataclass(frozen=True, slots=True)
class RestartFromCheckpoint(ClientAction):
    """Cancel the latest job, and submit it again from the newest checkpoint that it leaves.

    Not done to a job that leaves none when it is canceled, or in a history in which files rot: who goes on from an
    older checkpoint repeats what came after it.
    """


@dataclass(frozen=True, slots=True)
class RestartFromDrained(ClientAction):
    """Submit the job again, in this parallelism, from the savepoint that it was drained into: nothing more comes of it.

    Not done when the latest job was not drained.
    """

    parallelism: int = 1


@dataclass(frozen=True, slots=True)
class DisposeSavepoint(ClientAction):
    """Dispose of the `which`-th oldest savepoint, counted round and round."""

    which: int = 0


ACTIONS: tuple[type[ClientAction], ...] = (
    TakeSavepoint,
    TakeCheckpoint,
    StopWithSavepoint,
    CancelWithSavepoint,
    RestartFromSavepoint,
    RestartFromCheckpoint,
    RestartFromDrained,
    DisposeSavepoint,
)
"""Every kind."""

MAX_PARALLELISM = 3
"""Of a restart that chance draws."""


def random_actions(chance: random.Random, within_ms: float) -> tuple[ClientAction, ...]:
    """Savepoints, ends and new beginnings, some disposals; in the order of their times."""

    def between(earliest: float, latest: float) -> float:
        return round(chance.uniform(earliest, latest) * within_ms, 1)

    plan: list[ClientAction] = [TakeSavepoint(between(0, 1)) for _ in range(chance.choice((0, 1, 2, 3)))]
    for part in range(chance.choice((0, 1, 1, 2))):
        plan += _replacement(chance, between(0.15 + 0.4 * part, 0.5 + 0.4 * part))
    for _ in range(chance.choice((0, 0, 1, 2))):
        plan.append(DisposeSavepoint(between(0.2, 1.3), chance.randrange(3)))
    if not plan:
        plan.append(StopWithSavepoint(between(0, 1), drain=chance.random() < 0.5))
    return tuple(sorted(plan, key=lambda action: action.at_ms))


def random_checkpoints(chance: random.Random, within_ms: float) -> tuple[TakeCheckpoint, ...]:
    """Some that the user asks for, now and then several at once."""
    times = [round(chance.random() * within_ms, 1) for _ in range(chance.choice((1, 1, 2)))]
    each = chance.choice((1, 1, 3))
    return tuple(TakeCheckpoint(at_ms, chance.random() < 0.3) for at_ms in sorted(times) for _ in range(each))


def _replacement(chance: random.Random, at_ms: float) -> list[ClientAction]:
    """A job is ended in one of the ways that there are, and another one takes its place."""
    again_ms = round(at_ms + chance.choice((0.0, 100.0, 4_000.0)) * chance.uniform(0.5, 1.5), 1)
    restart = RestartFromSavepoint(again_ms, chance.randint(1, MAX_PARALLELISM))
    match chance.choice(("stop", "stop", "cancel", "drain", "as it is", "what it leaves")):
        case "stop":
            return [StopWithSavepoint(at_ms), restart]
        case "cancel":
            return [CancelWithSavepoint(at_ms), restart]
        case "drain":
            return [StopWithSavepoint(at_ms, drain=True)]
        case "what it leaves":
            return [RestartFromCheckpoint(at_ms)]
        case _:
            return [restart]
