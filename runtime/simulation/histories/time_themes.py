"""Themes of event time: histories led to where watermarks and timers may go wrong."""

from __future__ import annotations

from dataclasses import replace

from ..world.faults import KillProcess, SlowProcess
from .scenario import Scenario
from .theme_parts import ALL_KEYS, Chance, kills, moment, on_one_of, paced, replacement, with_faults
from .timed_topologies import TIMED
from .windowed_topologies import WINDOWED


def event_time(chance: Chance, scenario: Scenario) -> Scenario:
    """A job with event time, to which anything happens."""
    return replace(scenario, topology=chance.choice(sorted(TIMED | WINDOWED)))


def between_timers(chance: Chance, scenario: Scenario) -> Scenario:
    """Many timers come due together where tasks are slow: barriers pass between them, and the job goes back."""
    drawn = on_one_of(scenario, chance, "reminders", "apart", "apart", "apart", "either")
    timeout_ms = chance.choice((None, 0, 50))
    drawn = paced(chance, drawn, keys=ALL_KEYS, records=48, records_per_second=7.1, alignment_timeout_ms=timeout_ms)
    slow_ms = [round(chance.uniform(100, 500), 1) for _ in range(2)]
    drawn = with_faults(drawn, *(SlowProcess(900.0, 60_000.0, who, extra) for who, extra in enumerate(slow_ms)))
    if chance.random() < 0.3:
        at_ms, parallelism = moment(chance, drawn, 0.5, 1.0), chance.choice((1, 3))
        return replace(drawn, actions=tuple(replacement(chance, at_ms, parallelism)))
    again = KillProcess(moment(chance, drawn, 1.0, 1.6), chance.randrange(2))
    return with_faults(drawn, *kills(chance, drawn, 0.5, 1.0), again)


def falls_silent(chance: Chance, scenario: Scenario) -> Scenario:
    """A source says nothing more, so that nobody waits for it; in half of the histories the job goes back then."""
    drawn = on_one_of(scenario, chance, "quiet")
    drawn = paced(chance, drawn, records=40, records_per_second=1.9)
    if chance.random() < 0.5:
        return drawn
    if chance.random() < 0.5:
        at_ms = moment(chance, drawn, 0.3, 0.8)
        return replace(drawn, actions=tuple(replacement(chance, at_ms, chance.choice((1, 3)))))
    return with_faults(drawn, *kills(chance, drawn, 0.3, 0.9))
