"""Regular joins, over columns and per record, against a plain join of all that came, whatever the order and cuts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.actors.joins.joined_columns import How
from understudy.actors.joins.record_join import RecordJoin
from understudy.actors.joins.regular_join import RegularJoin
from understudy.actors.joins.time_to_live import TimeToLive
from understudy.actors.operators.operator import Operator
from understudy.runtime.simulation.harness.harness import OperatorHarness

from ...examples import examples
from .join_stage import LEFT, RIGHT, Advance, Arrive, Cut, Step, Wait, batch_of, flat, plain, play, scripts

FOREVER = TimeToLive()
HOWS: list[How] = ["inner", "left", "right", "full"]


def operators(how: How, is_columnar: bool, ttl: TimeToLive = FOREVER) -> Callable[[], Operator]:
    if is_columnar:
        return lambda: RegularJoin(["key"], ["key"], how, "_right", ttl)
    return lambda: RecordJoin(how, ttl)


def applied(changes: Sequence[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """The rows that are left when all changes are made; what is taken back must be there."""
    there: Counter[tuple[Any, ...]] = Counter()
    for kind, *row in changes:
        if kind == "+I":
            there[tuple(row)] += 1
        else:
            assert kind == "-D"
            assert there[tuple(row)] > 0, f"{row} is taken back and is not there"
            there[tuple(row)] -= 1
    return +there


def joined(script: Sequence[Step], how: How) -> Counter[tuple[Any, ...]]:
    """All at once, in loops."""
    left = [row for step in script if isinstance(step, Arrive) and step.side == 0 for row in step.rows]
    right = [row for step in script if isinstance(step, Arrive) and step.side == 1 for row in step.rows]
    found = [(key, a, str(b)) for key, a, _ in left for other, b, _ in right if key == other]
    if how in ("left", "full"):
        found += [(key, a, None) for key, a, _ in left if all(key != other for other, _, _ in right)]
    if how in ("right", "full"):
        found += [(other, None, str(b)) for other, b, _ in right if all(key != other for key, _, _ in left)]
    return Counter(found)


@pytest.mark.parametrize("is_columnar", [True, False])
@pytest.mark.parametrize("how", HOWS)
@given(script=scripts(has_watermarks=False), is_timed=st.booleans())
@examples(40)
def test_whatever_the_order_and_the_cuts_the_results_are_those_of_a_plain_join(
    how: How, is_columnar: bool, script: list[Step], is_timed: bool
) -> None:
    played = play(operators(how, is_columnar), script, is_columnar=is_columnar, is_timed=is_timed)
    results = played.records() if is_columnar else [flat(record) for record in played.records()]
    found = Counter(results) if how == "inner" else applied(results)
    assert found == joined(script, how)


@pytest.mark.parametrize("is_columnar", [True, False])
@given(script=scripts(has_watermarks=False, has_clock=True))
@examples(40)
def test_what_is_over_by_the_clock_is_never_seen_again(is_columnar: bool, script: list[Step]) -> None:
    ttl = TimeToLive(10, "processing")
    played = play(operators("inner", is_columnar, ttl), script, is_columnar=is_columnar, is_timed=False)
    now, seen, wanted = 0, ([], []), []
    for step in script:
        if isinstance(step, Wait):
            now += step.by_ms
        elif isinstance(step, Arrive):
            for key, number, _ in step.rows:
                for other, there, came in seen[1 - step.side]:
                    if key == other and now < came + 10:
                        wanted.append((key, number, str(there)) if step.side == 0 else (key, there, str(number)))
                seen[step.side].append((key, number, now))
    results = played.records() if is_columnar else [flat(record) for record in played.records()]
    assert Counter(results) == Counter(wanted)


@pytest.mark.parametrize("is_columnar", [True, False])
@given(script=scripts())
@examples(40)
def test_what_is_over_by_event_time_is_never_seen_again(is_columnar: bool, script: list[Step]) -> None:
    ttl = TimeToLive(10, "event")
    played = play(operators("inner", is_columnar, ttl), script, is_columnar=is_columnar)
    marks, seen, wanted = [-(2**63)] * 2, ([], []), []
    for step in script:
        if isinstance(step, Advance):
            marks[step.side] = max(marks[step.side], step.to_ms)
        elif isinstance(step, Arrive):
            for key, number, at in step.rows:
                for other, there, came in seen[1 - step.side]:
                    if key == other and min(marks) < came + 10 and abs(at - came) < 10:
                        wanted.append((key, number, str(there)) if step.side == 0 else (key, there, str(number)))
                seen[step.side].append((key, number, at))
    results = played.records() if is_columnar else [flat(record) for record in played.records()]
    assert Counter(results) == Counter(wanted)


@pytest.mark.parametrize("is_columnar", [True, False])
@pytest.mark.parametrize("how", ["inner", "full"])
def test_by_event_time_matches_do_not_depend_on_how_soon_watermarks_or_rows_come(how: How, is_columnar: bool) -> None:
    left, right = [Arrive(0, ((1, 5, 0),)), Arrive(0, ((1, 6, 8),))], [Arrive(1, ((1, 7, 15),))]
    quick = [Advance(side, to_ms) for to_ms in (8, 14) for side in (0, 1)]
    found = []
    for script in ([*left, *right], [*right, *left], [left[0], *quick[:2], *right, left[1]], [*left, *quick, *right]):
        played = play(operators(how, is_columnar, TimeToLive(10, "event")), script, is_columnar=is_columnar)
        results = played.records() if is_columnar else [flat(record) for record in played.records()]
        found.append(set(results) if how == "inner" else set(applied(results)))
    pair = (1, 6, "7")
    assert found == [{pair} if how == "inner" else {pair, (1, 5, None)}] * 4


@pytest.mark.parametrize("is_columnar", [True, False])
def test_a_row_whose_match_was_over_is_not_taken_back_twice(is_columnar: bool) -> None:
    one, other = Arrive(0, ((1, 5, 0),)), Arrive(1, ((1, 7, 0),))
    # The left row comes last before each right one, so it lives on while right rows do not.
    script: list[Step] = [one, other, Wait(6), Arrive(0, ((1, 6, 0),)), Cut(2), Wait(5), other]
    played = play(operators("left", is_columnar, TimeToLive(10)), script, is_columnar=is_columnar, is_timed=False)
    results = played.records() if is_columnar else [flat(record) for record in played.records()]
    assert results == [
        ("+I", 1, 5, None),
        ("-D", 1, 5, None),
        ("+I", 1, 5, "7"),
        ("+I", 1, 6, "7"),
        ("+I", 1, 6, "7"),
    ]


@pytest.mark.parametrize("is_columnar", [True, False])
def test_a_row_that_has_had_a_match_is_not_taken_back_after_a_row_that_it_does_not_meet(is_columnar: bool) -> None:
    """By event time a row meets some of the rows that are there: the others have had their matches all the same."""
    left = [Arrive(0, ((1, 5, 0),)), Arrive(0, ((1, 6, 13),))]
    script: list[Step] = [left[0], Arrive(1, ((1, 2, 2),)), left[1], Arrive(1, ((1, 3, 14),)), Arrive(1, ((1, 4, 4),))]
    played = play(operators("left", is_columnar, TimeToLive(10, "event")), script, is_columnar=is_columnar)
    results = played.records() if is_columnar else [flat(record) for record in played.records()]
    assert Counter(results) == Counter(
        [
            ("+I", 1, 5, None),
            ("-D", 1, 5, None),
            ("+I", 1, 5, "2"),
            ("+I", 1, 6, None),
            ("-D", 1, 6, None),
            ("+I", 1, 6, "3"),
            ("+I", 1, 5, "4"),
            ("+I", 1, 6, "4"),
        ]
    )


@pytest.mark.parametrize("is_columnar", [True, False])
def test_a_result_has_the_later_of_both_times(is_columnar: bool) -> None:
    script: list[Step] = [Arrive(0, ((1, 5, 20),)), Arrive(1, ((1, 7, 10), (1, 8, 30)))]
    played = play(operators("inner", is_columnar), script, is_columnar=is_columnar)
    assert sorted(time for _, time, _ in played.results if time is not None) == [20, 30]


@pytest.mark.parametrize("how", HOWS)
def test_in_rounds_nothing_is_kept_for_a_side_that_has_ended(how: How) -> None:
    """What goes round would be kept anew in each round."""
    made = RegularJoin(["key"], ["key"], how, "_right", FOREVER)
    harness = OperatorHarness(made, key_by="key", key_by_2="key", schemas=(LEFT, RIGHT))
    join = harness.operator
    script = [Arrive(0, ((0, 1, 0), (1, 2, 0))), Arrive(1, ((0, 5, 0), (2, 6, 0)))]
    for step in script:
        harness.process(batch_of(step.side, step.rows, True, (LEFT, RIGHT)), step.side)
    join._input_ended(1)
    assert join.keyed_state.stores[0].live_count == 0
    for number in range(5):
        script.append(Arrive(0, ((0, number, 0), (number, 7, 0))))
        harness.process(batch_of(0, script[-1].rows, True, (LEFT, RIGHT)), 0)
        assert join.keyed_state.stores[0].live_count == 2
    results = list(map(plain, harness.output()))
    assert (Counter(results) if how == "inner" else applied(results)) == joined(script, how)
    assert join.keyed_state.stores[1].live_count == 2
    harness.close()
