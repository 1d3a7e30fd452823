"""State of joins, top lists and windows that came about by other rules is refused at submit, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from understudy import tumbling
from understudy.actors.joins.deduplicate import Deduplicate
from understudy.actors.joins.interval_join import IntervalJoin, TimeInterval
from understudy.actors.joins.record_deduplicate import RecordDeduplicate
from understudy.actors.joins.record_interval_join import RecordIntervalJoin
from understudy.actors.joins.record_join import RecordJoin
from understudy.actors.joins.record_top_n import RecordTopN, of_field
from understudy.actors.joins.regular_join import RegularJoin
from understudy.actors.joins.time_to_live import TimeToLive
from understudy.actors.joins.top_n import TopN, TopRows
from understudy.actors.operators.operator import Operator, described_states
from understudy.actors.windows.window_contents import AllRecords
from understudy.actors.windows.window_function import ProcessWindowFunction
from understudy.actors.windows.window_operator import WindowOperator
from understudy.actors.windows.window_settings import WindowSettings
from understudy.state.kinds.descriptors import ValueState
from understudy.state.kinds.state_descriptions import state_misfit

COLUMNS = pa.schema([("key", pa.int64()), ("a", pa.int64())])
Make = Callable[..., Operator]


def misfits(was: Operator, now: Operator) -> set[str]:
    """What submit says of a program with the second, of a savepoint of the first."""
    for operator in (was, now):
        operator.output_schema(*[COLUMNS] * operator.inputs)
    stored = {each.name: each for each in described_states(was)}
    return {text for each in described_states(now) if (text := state_misfit(each, stored[each.name]))}


def rows(how: Any, ttl_ms: int | None, domain: Any = "processing") -> Operator:
    return RecordJoin(how, TimeToLive(ttl_ms, domain))


def columns(how: Any, ttl_ms: int | None, domain: Any = "processing") -> Operator:
    return RegularJoin(["key"], ["key"], how, "_right", TimeToLive(ttl_ms, domain))


def within(how: Any, *bounds: int) -> Operator:
    return RecordIntervalJoin(how, TimeInterval(*bounds))


def within_columns(how: Any, *bounds: int) -> Operator:
    return IntervalJoin(["key"], ["key"], how, "_right", TimeInterval(*bounds))


def top(n: int, name: str | None, down: bool = True) -> Operator:
    return RecordTopN(n, name and of_field([name]), down)  # type: ignore[arg-type]


def top_columns(n: int, name: str | None, down: bool = True) -> Operator:
    return TopN(["key"], TopRows(n, (name,), (down,)) if name else TopRows(n, (), (), None, newest_first=True))


@pytest.mark.parametrize(
    ("make", "was", "now", "rule"),
    [
        (make, was, now, rule)
        for makes, was, now, rule in [
            ((rows, columns), ("inner", None), ("left", None), "how"),
            ((rows, columns), ("inner", None), ("inner", 5), "rows live"),
            ((rows, columns), ("inner", 5), ("inner", 5, "event"), "rows live"),
            ((rows, columns), ("left", 5), ("left", 500), ""),
            ((within, within_columns), ("inner", 0, 9), ("left", 0, 9), "how"),
            ((within, within_columns), ("left", 0, 9), ("left", 0, 90), "interval"),
            ((within, within_columns), ("left", 0, 9), ("left", 0, 9), ""),
            ((top, top_columns), (2, "a"), (3, "a"), "n"),
            ((top, top_columns), (2, "a"), (2, "key"), "order"),
            ((top, top_columns), (2, "a"), (2, "a", False), "order"),
            ((top, top_columns), (1, "a"), (1, None), "order"),
            ((top, top_columns), (2, "a"), (2, "a"), ""),
        ]
        for make in makes
    ],
)
def test_other_rules_are_refused(make: Make, was: tuple[Any, ...], now: tuple[Any, ...], rule: str) -> None:
    found = misfits(make(*was), make(*now))
    assert bool(found) == bool(rule)
    assert all(rule in text and "stored" in text for text in found), found


@pytest.mark.parametrize("make", [RecordDeduplicate, lambda ttl: Deduplicate(["key"], ttl)], ids=["rows", "columns"])
def test_duplicates_count_by_one_kind_of_time(make: Make) -> None:
    assert misfits(make(TimeToLive(5, "event")), make(TimeToLive(5, "processing")))
    assert not misfits(make(TimeToLive(5, "event")), make(TimeToLive(9, "event")))


class Seen(ProcessWindowFunction):
    count = ValueState(int, default=0)


class SeenOfKey(Seen):
    states_of_key = ("count",)


def windows(keys: list[str] | None, function: type[ProcessWindowFunction] = Seen) -> Operator:
    return WindowOperator(WindowSettings.of(tumbling(5)), AllRecords(), function(), keys)


def test_windows_by_another_key_column_are_refused_as_those_of_columns_are() -> None:
    assert misfits(windows(["shop"]), windows(["item"])) == {"keys: stored [shop], wanted [item]"}
    assert not misfits(windows(["shop"]), windows(None))  # a function may give the same key
    assert not misfits(windows(None), windows(["shop"]))


def test_state_of_windows_is_not_taken_for_state_of_the_key() -> None:
    assert misfits(windows(None), windows(None, SeenOfKey)) == {"belongs to: stored one window, wanted the key"}
    assert not misfits(windows(None), windows(None))
