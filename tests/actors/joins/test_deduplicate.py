"""`deduplicate`, over columns and per record, against a loop over the records in the order in which they came."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given

from understudy.actors.joins import deduplicate
from understudy.actors.joins.deduplicate import Deduplicate
from understudy.actors.joins.late_records import LATE
from understudy.actors.joins.record_deduplicate import RecordDeduplicate
from understudy.actors.joins.time_to_live import TimeToLive
from understudy.actors.operators.operator import Operator
from understudy.runtime.simulation.harness.harness import OperatorHarness

from ...examples import examples
from .join_stage import LEFT, Advance, Arrive, Step, Wait, batch_of, play, scripts


def operators(within: TimeToLive, is_columnar: bool) -> Callable[[], Operator]:
    return (lambda: Deduplicate(["key"], within)) if is_columnar else (lambda: RecordDeduplicate(within))


@pytest.mark.parametrize("is_columnar", [True, False])
@given(script=scripts(inputs=1))
@examples(60)
def test_only_the_first_of_a_key_goes_on(is_columnar: bool, script: list[Step]) -> None:
    played = play(operators(TimeToLive(), is_columnar), script, is_columnar=is_columnar)
    seen, wanted = set(), []
    for key, number, at in (row for step in script if isinstance(step, Arrive) for row in step.rows):
        if key not in seen:
            wanted.append(((key, number), at))
            seen.add(key)
    assert Counter((record, time) for record, time, _ in played.results) == Counter(wanted)


@pytest.mark.parametrize("is_columnar", [True, False])
@given(script=scripts(inputs=1))
@examples(100)
def test_within_a_time_by_event_time(is_columnar: bool, script: list[Step]) -> None:
    make = operators(TimeToLive(7, "event"), is_columnar)
    played = play(make, script, is_columnar=is_columnar, late=LATE[:1])
    mark, wanted, late = -(2**63), [], 0
    for step in script:
        if isinstance(step, Advance):
            mark = max(mark, step.to_ms)
        for key, number, at in step.rows if isinstance(step, Arrive) else ():
            if at <= mark:
                late += 1
            elif all(key != other or abs(at - there) >= 7 for (other, _), there in wanted):
                wanted.append(((key, number), at))
    assert Counter((record, time) for record, time, _ in played.results) == Counter(wanted)
    assert len(played.late) == late


@pytest.mark.parametrize("is_columnar", [True, False])
@given(script=scripts(inputs=1, has_clock=True, has_watermarks=False))
@examples(60)
def test_within_a_time_by_the_clock(is_columnar: bool, script: list[Step]) -> None:
    make = operators(TimeToLive(10, "processing"), is_columnar)
    played = play(make, script, is_columnar=is_columnar, is_timed=False)
    now, last, wanted = 0, {}, []
    for step in script:
        if isinstance(step, Wait):
            now += step.by_ms
        for key, number, _ in step.rows if isinstance(step, Arrive) else ():
            if now - last.get(key, -100) >= 10:
                last[key] = now
                wanted.append((key, number))
    assert Counter(played.records()) == Counter(wanted)


def test_the_state_does_not_grow_with_the_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deduplicate, "_FEWEST_ROWS", 10)
    with OperatorHarness(operators(TimeToLive(5, "event"), True)(), key_by="key", schemas=[LEFT]) as harness:
        for at in range(1000):
            harness.process(batch_of(0, [(at, 1, at)], True, [LEFT]), timestamps=[at])
            harness.watermark(at)
            assert harness.operator.keyed_state.entry_count() <= 20


def test_of_a_record_that_is_forgotten_nothing_is_left() -> None:
    with OperatorHarness(operators(TimeToLive(5, "event"), False)(), key_by=0) as harness:
        harness.process([(1, 1, 0)], timestamps=[0])
        harness.process([(1, 1, 7)], timestamps=[7])
        for at, entries in ((4, 1), (5, 1), (11, 1), (12, 0)):
            harness.watermark(at)
            assert harness.operator._backend.entry_count() == entries
