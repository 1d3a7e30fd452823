"""Themes of coroutines: histories in which a job goes back, or on elsewhere, while records wait for answers."""

from __future__ import annotations

from dataclasses import replace

from ..world.faults import FailingOperator, FreezeProcess, KillAtOperation, KillProcess, SlowLink, SlowProcess
from .actions import RestartFromDrained, StopWithSavepoint
from .async_topologies import ASYNC
from .scenario import Scenario
from .theme_parts import ALL_KEYS, Chance, kills, moment, on_one_of, paced, replacement, with_faults

_ALL = tuple(sorted(ASYNC))


def asking(chance: Chance, scenario: Scenario) -> Scenario:
    """A job whose operators ask a service, to which anything happens."""
    return replace(scenario, topology=chance.choice(_ALL))


def asked_again(chance: Chance, scenario: Scenario) -> Scenario:
    """Many checkpoints, with records in flight, and the job goes back to some of them: a TaskManager dies, perhaps when
    it has just asked; or is frozen for so long that it is given up, and what it asked ends late; or `process` raises.
    """
    drawn = _busy(chance, on_one_of(scenario, chance, *_ALL))
    for at_ms in sorted(moment(chance, drawn, 0.15, 1.1) for _ in range(chance.choice((1, 2, 3)))):
        who = chance.randrange(2)
        match chance.randrange(5):
            case 0 | 1:
                drawn = with_faults(drawn, KillProcess(at_ms, who))
            case 2:
                drawn = with_faults(drawn, KillAtOperation(at_ms, who, chance.randint(1, 60)))
            case 3:
                drawn = with_faults(drawn, FreezeProcess(at_ms, round(chance.uniform(6_500, 12_000), 1), who))
            case _:
                drawn = with_faults(drawn, FailingOperator(at_ms, chance.choice(("open", "on_checkpoint", "commit"))))
    return drawn


def asked_elsewhere(chance: Chance, scenario: Scenario) -> Scenario:
    """The job goes on from a savepoint in another parallelism, with what was in flight; or it is drained first, so that
    nothing is, and nothing more comes.
    """
    drawn = _busy(chance, on_one_of(scenario, chance, *_ALL), keys=ALL_KEYS, checkpoint_interval_ms=1_000)
    if chance.random() < 0.25:
        at_ms = moment(chance, drawn, 0.2, 0.9)
        again = RestartFromDrained(round(at_ms + chance.uniform(0, 300), 1), chance.choice((1, 3, 5)))
        return replace(drawn, actions=(StopWithSavepoint(at_ms, drain=True), again))
    actions = []
    for part, parallelism in enumerate(chance.sample((1, 3, 5), chance.choice((1, 2, 2)))):
        actions += replacement(chance, round((0.3 + 0.3 * part) * drawn.workload.duration_ms, 1), parallelism)
    drawn = replace(drawn, actions=tuple(actions))
    return with_faults(drawn, *(kills(chance, drawn, 0.2, 1.2) if chance.random() < 0.5 else ()))


def asked_in_flight(chance: Chance, scenario: Scenario) -> Scenario:
    """Barriers overtake what is on its way to operators that are full, and the job goes back."""
    drawn = _busy(chance, on_one_of(scenario, chance, *_ALL), alignment_timeout_ms=chance.choice((0, 50)), batch_rows=1)
    for at_ms in (900.0, moment(chance, drawn, 0.5, 0.9)):
        extra_ms = round(chance.uniform(300, 1_200), 1)
        drawn = with_faults(drawn, *(SlowLink(at_ms, 20_000.0, one, 1 - one, extra_ms) for one in (0, 1)))
    if chance.random() < 0.4:
        slow_ms = round(chance.uniform(50, 400), 1)
        drawn = with_faults(drawn, SlowProcess(900.0, 30_000.0, chance.randrange(2), slow_ms))
    return with_faults(drawn, *kills(chance, drawn, 0.4, 1.1, times=chance.choice((1, 2))))


def _busy(chance: Chance, scenario: Scenario, **changes: object) -> Scenario:
    """More records than can be asked for at a time."""
    usual: dict[str, object] = {"records": chance.randint(30, 48), "records_per_second": 7.1}
    return paced(chance, scenario, **(usual | changes))
