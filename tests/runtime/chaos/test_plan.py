"""Faults are data: a seed is a plan, and a plan is what was ordered."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from understudy.runtime.chaos import Counts, Cut, Freeze, FullDisk, Kill, Slow, Stall, plan

SOME = st.integers(0, 12)


@given(st.builds(Counts, SOME, SOME, SOME, SOME, SOME, SOME), st.integers())
def test_a_plan_has_what_was_ordered_and_no_more(counts: Counts, seed: int) -> None:
    found = Counter(type(strike.fault) for round in plan(counts, seed) for strike in round)
    assert [found[kind] for kind in (Kill, Freeze, Cut, Stall, Slow, FullDisk)] == [
        counts.kills,
        counts.freezes,
        counts.cuts,
        counts.stalls,
        counts.slow,
        counts.full_disks,
    ]


@given(st.integers())
def test_a_seed_is_one_plan(seed: int) -> None:
    counts = Counts(5, 5, 5, 5, 5, 5)
    assert plan(counts, seed) == plan(counts, seed)


def test_some_faults_come_during_the_recovery_from_a_kill() -> None:
    rounds = plan(Counts(kills=100, cuts=20), 1)
    on_top = [round for round in rounds if len(round) > 1]
    assert on_top
    assert all(isinstance(round[0].fault, Kill) for round in on_top)
