"""Window joins, over columns and per record, against loops over the records of each window."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.actors.joins.joined_columns import How
from understudy.actors.joins.late_records import LATE
from understudy.actors.joins.tagged_records import CoGroup, OfTagged, Pairs, key_of
from understudy.actors.joins.window_join import TumblingWindows, WindowJoin
from understudy.actors.windows import session, sliding, tumbling
from understudy.actors.windows.window_contents import AllRecords
from understudy.actors.windows.window_operator import WindowOperator
from understudy.actors.windows.window_settings import WindowSettings
from understudy.runtime.simulation.harness.harness import OperatorHarness

from ...examples import examples
from .join_stage import Advance, Arrive, Step, play, scripts


def wanted_of(script: list[Step], how: How, size: int, offset: int) -> tuple[list[Any], list[int]]:
    """The results, with their times, and the sides of the late records."""
    marks: list[int] = [-(2**63)] * 2
    by_window: dict[Any, tuple[list[Any], list[Any]]] = {}
    late = []
    for step in script:
        if isinstance(step, Advance):
            marks[step.side] = max(marks[step.side], step.to_ms)
        for key, number, at in step.rows if isinstance(step, Arrive) else ():
            start = at - (at - offset) % size
            if start + size - 1 <= min(marks):
                late.append(step.side)
            else:
                by_window.setdefault((start, key), ([], []))[step.side].append(number)
    results = []
    for (start, key), (left, right) in by_window.items():
        lefts: list[Any] = left or ([None] if how in ("right", "full") else [])
        rights: list[Any] = right or ([None] if how in ("left", "full") else [])
        last = start + size - 1
        for a in lefts:
            results += [((start, start + size, key, a, None if b is None else str(b)), last) for b in rights]
    return results, late


@pytest.mark.parametrize("how", ["inner", "left", "right", "full"])
@given(script=scripts(), size=st.integers(1, 12), offset=st.integers(0, 5))
@examples(60)
def test_whatever_the_order_and_the_cuts_the_results_are_those_of_loops(
    how: How, script: list[Step], size: int, offset: int
) -> None:
    windows = TumblingWindows(size, offset % size)
    played = play(lambda: WindowJoin(["key"], ["key"], how, "_right", windows), script, is_columnar=True, late=LATE)
    wanted, late = wanted_of(script, how, size, offset % size)
    assert Counter((record, time) for record, time, _ in played.results) == Counter(wanted)
    assert all(time is not None and time > watermark for _, time, watermark in played.results), "none is late behind it"
    assert sorted(side for side, _ in played.late) == sorted(late)


def test_a_window_comes_in_time_though_rows_of_the_other_side_wait_for_longer() -> None:
    """What is left is looked through at the end of the window before it."""
    script: list[Step] = [Arrive(side, ((1, 0, 5), (1, 0, 15 + 10 * side))) for side in (0, 1)]
    for to_ms in (9, 19, 29):
        script += [Advance(0, to_ms), Advance(1, to_ms)]
    windows = TumblingWindows(10, 0)
    played = play(lambda: WindowJoin(["key"], ["key"], "full", "_right", windows), script, is_columnar=True, ends=False)
    assert [(time, watermark) for _, time, watermark in played.results] == [(9, -(2**63)), (19, 9), (29, 19)]


@pytest.mark.parametrize("how", ["inner", "left", "right", "full"])
def test_records_of_both_sides_meet_in_their_window(how: How) -> None:
    found = _run(tumbling(10), Pairs(how))
    wanted = {
        "inner": [("a1", "b1"), ("a2", "b1")],
        "left": [("a1", "b1"), ("a2", "b1"), ("a3", None)],
        "right": [("a1", "b1"), ("a2", "b1"), (None, "b2")],
        "full": [("a1", "b1"), ("a2", "b1"), ("a3", None), (None, "b2")],
    }
    assert sorted(found, key=str) == sorted(wanted[how], key=str)


def test_they_meet_in_sliding_windows_and_in_sessions() -> None:
    assert sorted(_run(sliding(10, 5), Pairs("inner"))) == [("a1", "b1"), ("a1", "b1"), ("a2", "b1"), ("a2", "b1")]
    assert sorted(_run(session(5), Pairs("inner"))) == [("a1", "b1"), ("a2", "b1")]


def _run(assigner: Any, function: Any) -> list[Any]:
    operator = WindowOperator(WindowSettings.of(OfTagged(assigner)), AllRecords(), CoGroup(function))
    with OperatorHarness(operator, key_by=key_of) as harness:
        arriving = [("left", "a1", 5), ("right", "b1", 6), ("left", "a2", 7), ("left", "a3", 20), ("right", "b2", 50)]
        for side, record, at in arriving:
            harness.process([(side, 1, record)], timestamps=[at])
        with harness.restored(harness.snapshot()) as after:
            after.watermark(100)
            return after.output()
