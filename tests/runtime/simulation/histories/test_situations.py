"""Histories come to where bugs were missed: each theme leads to its situations, and the mix holds each theme often."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

import pytest

from understudy.runtime.simulation.histories import async_themes, inlet_themes, mix, time_themes
from understudy.runtime.simulation.histories import situations as reached
from understudy.runtime.simulation.histories.campaign import Plan, quiet, run_campaign
from understudy.runtime.simulation.histories.catalogue import CATALOGUE
from understudy.runtime.simulation.histories.mix import standard_history, themed
from understudy.runtime.simulation.histories.scenario import Scenario
from understudy.runtime.simulation.histories.situations import POWER, SITUATIONS
from understudy.runtime.simulation.histories.verdict import judge, judge_and_cover

HISTORIES = 12
"""Of each theme, but for those of which nearly every history leads where it should."""

FEW = 5

LED_TO: dict[mix.Theme, tuple[str, ...]] = {
    mix.in_flight: (reached.IN_FLIGHT, reached.SEVERAL_IN_FLIGHT, reached.CLOSED_WAITING),
    mix.ended_in_part: (reached.ENDED_IN_PART, reached.ENDED_AGAIN, reached.ENDED_RESCALED),
    mix.rescaled: (
        reached.UNEVEN_KEYS,
        reached.UNEVEN_LISTS,
        reached.SEVERAL_RESCALES,
        reached.BOUNDARIES,
        reached.INLINE_BESIDE_FILES,
    ),
    mix.rotten: (reached.ROTTEN, reached.FLIPPED),
    mix.given_up_as_lost: (reached.LIVES_ON, reached.ZOMBIE_WRITES, reached.ZOMBIE_ACKNOWLEDGES),
    mix.overtaken_savepoints: (reached.OLDER_SAVEPOINT,),
    mix.powerless: tuple(each for each in SITUATIONS if each.startswith(POWER)),
    mix.crossing_savepoints: (reached.CROSSED,),
    mix.while_storing: (reached.STORED_ANYWAY,),
    mix.around_the_first_checkpoint: (reached.DISPOSED, reached.OWN_ROTTEN),
    mix.behind_the_data: (reached.BEHIND_THE_DATA,),
    mix.drained: (reached.DRAINED, reached.DRAINED_RESCALED),
    mix.unsealed: (reached.UNSEALED,),
    time_themes.event_time: (reached.TIME_RESTORED,),
    mix.time_in_flight: (reached.TIME_IN_FLIGHT,),
    mix.time_rescaled: (reached.TIME_RESCALED,),
    time_themes.between_timers: (reached.BETWEEN_TIMERS,),
    time_themes.falls_silent: (reached.FELL_SILENT,),
}

OF_THEIR_OWN = (
    async_themes.asking,
    async_themes.asked_again,
    async_themes.asked_elsewhere,
    async_themes.asked_in_flight,
    inlet_themes.sent_in,
)
"""Themes that see to it by themselves that they lead somewhere: test_async_themes.py, test_inlets.py."""

DIRECT = (
    mix.crossing_savepoints,
    mix.while_storing,
    mix.behind_the_data,
    mix.drained,
    mix.unsealed,
    time_themes.falls_silent,
)

AT_LEAST = 2
"""Of these histories."""


@lru_cache
def found(theme: mix.Theme) -> Counter[str]:
    counts: Counter[str] = Counter()
    with quiet():
        for seed in range(FEW if theme in DIRECT else HISTORIES):
            verdict = judge_and_cover(themed(theme, seed))
            assert verdict.broken is None, (seed, verdict.violations, verdict.traceback)
            counts.update(verdict.situations)
    return counts


@pytest.mark.drawn(by="theme")
@pytest.mark.parametrize(
    ("theme", "situation"),
    [pytest.param(theme, each, id=f"{theme.__name__}: {each}") for theme, led_to in LED_TO.items() for each in led_to],
)
def test_a_theme_leads_to(theme: mix.Theme, situation: str) -> None:
    assert found(theme)[situation] >= AT_LEAST


def test_each_situation_has_a_theme_and_each_theme_situations() -> None:
    assert {each for led_to in LED_TO.values() for each in led_to} == set(SITUATIONS)
    assert set(LED_TO) == set(mix.THEMES) - set(OF_THEIR_OWN)


def test_of_1_000_standard_histories_each_theme_leads_30(monkeypatch: pytest.MonkeyPatch) -> None:
    led: Counter[str] = Counter()
    lead = mix.themed

    def counting(theme: mix.Theme, seed: int, topology: str | None = None) -> Scenario:
        led[theme.__name__] += 1
        return lead(theme, seed, topology)

    monkeypatch.setattr(mix, "themed", counting)
    for seed in range(1_000):
        standard_history(seed)
    assert set(led) == {theme.__name__ for theme in mix.THEMES}
    assert min(led.values()) >= 30


@pytest.mark.parametrize("topology", CATALOGUE)
def test_a_topology_that_is_named_is_that_of_every_history(topology: str) -> None:
    assert {standard_history(seed, topology).topology for seed in range(100)} == {topology}


@pytest.mark.slow
def test_of_300_standard_histories_some_reach_each_situation() -> None:
    figures = run_campaign(Plan(0, 300, covers=True))
    assert not figures.failed
    assert min(figures.situations.values()) >= AT_LEAST, figures.situations


def test_whoever_counts_situations_changes_nothing() -> None:
    for seed in range(6):
        scenario = standard_history(seed)
        plain, covered = judge(scenario), judge_and_cover(scenario)
        assert plain.situations == ()
        assert (plain.status, plain.virtual_ms, plain.checkpoints) == (
            covered.status,
            covered.virtual_ms,
            covered.checkpoints,
        )
