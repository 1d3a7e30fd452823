"""FrozenCalls: what is in flight goes to bytes and back, call by call, in the key groups of its subtask."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.actors.async_calls.call_table import CallTable
from understudy.actors.async_calls.frozen_calls import CallInFlight, FrozenCalls, calls_of, in_their_order
from understudy.actors.flow.elements import TimedBatch
from understudy.actors.operators.timers import KeyedTimer
from understudy.messages import MalformedMessage, pack_plain, unpack_plain
from understudy.state.columns.packed_columns import unpacked
from understudy.state.keys.key_groups import key_group

MAX_PARALLELISM = 16


class Stored:
    """What `payloads` gave, as a StoredState gives it back."""

    def __init__(self, payloads: list[tuple[int, bytes]]) -> None:
        self._payloads = payloads

    def entries(self) -> Iterator[tuple[Any, list[Any], list[Any]]]:
        for _, payload in self._payloads:
            namespace, keys, values = unpack_plain(payload)
            yield namespace, unpacked(keys), unpacked(values)


def call(number: int, record: Any = "record", **changes: Any) -> CallInFlight:
    usual = CallInFlight(f"key {number}", number, "", "record", record, None, -5, 0, 0, 0, -9, 0, None)
    return usual._replace(**changes)


def payloads(calls: list[CallInFlight], waiting: list[CallInFlight] | None = None, **options: Any) -> Any:
    frozen = FrozenCalls(calls, lambda: waiting or [], bool(waiting), **options)
    return list(frozen.payloads(MAX_PARALLELISM, None))


def there_and_back(calls: list[CallInFlight], waiting: list[CallInFlight] | None = None) -> list[CallInFlight]:
    return sorted(calls_of(Stored(payloads(calls, waiting))), key=lambda each: each.number)


_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
_whole = st.integers(-(2**62), 2**62)


@given(
    st.lists(
        st.builds(
            CallInFlight,
            key=st.integers(0, 99) | st.text(max_size=3),
            number=st.integers(0, 2**40),
            identity=st.text(max_size=8),
            kind=st.just("record"),
            record=_values,
            time_ms=st.none() | _whole,
            watermark_ms=_whole,
            input_index=st.integers(0, 1),
            tries=st.integers(0, 9),
            began_wall_ms=st.integers(0, 2**42),
            behind_ms=_whole,
            again_wall_ms=st.integers(0, 2**42),
            results=st.none()
            | st.lists(st.tuples(st.sampled_from(["", "errors"]), st.lists(_values, min_size=1)), max_size=2),
        ),
        max_size=6,
        unique_by=lambda each: each.number,
    )
)
def test_each_call_is_the_same_again(calls: list[CallInFlight]) -> None:
    assert there_and_back(list(calls)) == sorted(calls, key=lambda each: each.number)


def test_records_are_packed_together() -> None:
    """Each by itself would take longer than the time between two checkpoints."""
    running = [
        call(number, {"number": number}, identity=f"operator-attempt-{number}", time_ms=number, began_wall_ms=7)
        for number in range(400)
    ]
    behind = [call(400 + number, ("y", number), input_index=1, behind_ms=40) for number in range(20)]
    done = [call(420 + number, number, results=[("", [number] * (number % 3))][: number % 3]) for number in range(60)]
    times = [
        call(480 + number, number, results=[("", TimedBatch([number], np.array([number])))]) for number in range(60)
    ]
    calls = [*running, *behind, *done, *times]

    assert there_and_back(calls) == calls
    values = [each for _, payload in payloads(calls) for each in unpacked(unpack_plain(payload)[2])]
    assert sum(each is not None for each in values) <= 4 * MAX_PARALLELISM


def test_keys_of_a_class_of_the_user_are_encoded_and_lie_beside_their_records() -> None:
    frozen = FrozenCalls([call(number, key=number) for number in range(40)], lambda: [], False)
    found = list(frozen.payloads(MAX_PARALLELISM, lambda key: f"<{key}>"))

    assert {each.number: each.key for each in calls_of(Stored(found))} == {at: f"<{at}>" for at in range(40)}


def test_a_batch_that_waits_stays_one() -> None:
    columns = pa.record_batch({"amount": [1, 2]})
    (back,) = there_and_back([call(5, columns, kind="waiting")])

    assert (back.kind, back.number) == ("waiting", 5)
    assert back.record.equals(columns)


def test_a_timer_is_the_same_again() -> None:
    timer = call(3, KeyedTimer(17, "event", ("window", 4)), kind="timer", time_ms=17)

    assert there_and_back([timer]) == [timer]


def test_a_batch_keeps_its_records_and_their_times() -> None:
    times, marks = np.array([5, 7]), np.array([1, 1])
    (back,) = there_and_back([call(0, TimedBatch(["one", "two"], times, None, marks), kind="batch")])

    assert back.record.records == ["one", "two"]
    assert back.record.times.tolist() == [5, 7]
    assert back.record.watermarks.tolist() == [1, 1]


def test_results_may_be_columns() -> None:
    columns = pa.record_batch({"amount": [1, 2]})
    (back,) = there_and_back([call(0, results=[("", columns), ("late", ["x"])])])

    assert back.results is not None
    assert back.results[0][1].equals(columns)
    assert back.results[1] == ("late", ["x"])


def test_what_waits_for_its_call_is_part_of_it() -> None:
    assert [each.number for each in there_and_back([call(1)], [call(2), call(3)])] == [1, 2, 3]


def test_it_is_empty_when_nothing_is_in_flight_and_nothing_waits() -> None:
    assert FrozenCalls([], lambda: [], False).is_empty
    assert not FrozenCalls([call(1)], lambda: [], False).is_empty
    assert not FrozenCalls([], lambda: [call(1)], True).is_empty
    assert payloads([]) == []


def test_calls_lie_in_the_key_groups_of_their_keys() -> None:
    for group, payload in payloads([call(number) for number in range(40)]):
        keys = unpacked(unpack_plain(payload)[1])
        assert {key_group(key, MAX_PARALLELISM) for key in keys} == {group}


@pytest.mark.parametrize("own", [range(0, 8), range(8, 16), range(5, 6)])
def test_calls_without_keys_lie_in_the_key_groups_of_their_subtask(own: range) -> None:
    """Whatever group their numbers would belong to: else the snapshot is refused."""
    calls = [call(number, key=number) for number in range(40)]
    found = payloads(calls, dealt_over=own)

    assert {group for group, _ in found} == set(own)
    assert sorted(each.number for each in calls_of(Stored(found))) == list(range(40))


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        [0, "", "neither", b"", None, 0, 0, 0, 0, 0, 0, None],
        [0, "", "record", b"", "soon", 0, 0, 0, 0, 0, 0, None],
    ],
)
def test_what_is_no_call_is_refused(value: Any) -> None:
    with pytest.raises(MalformedMessage, match="wanted a record in flight"):
        list(calls_of(_One(value)))


def test_a_record_that_is_no_single_one_is_refused() -> None:
    from understudy.state import pack_batch

    value = [0, "", "record", pack_batch([1, 2]), None, 0, 0, 0, 0, 0, 0, None]
    with pytest.raises(MalformedMessage, match="wanted one record"):
        list(calls_of(_One(unpack_plain(pack_plain(value)))))


class _One:
    def __init__(self, value: Any) -> None:
        self._value = value

    def entries(self) -> Iterator[tuple[Any, list[Any], list[Any]]]:
        yield (), ["key"], [tuple(self._value) if isinstance(self._value, list) else self._value]


def test_records_that_have_begun_come_before_those_of_other_subtasks_that_wait() -> None:
    calls = [call(1, kind="waiting"), call(2), call(3, kind="waiting"), call(4), call(0, behind_ms=7, kind="waiting")]
    ordered, behind = in_their_order(calls, 5)
    assert [each.number for _, each in ordered] == [2, 4, 1, 3, 0]
    assert [behind_ms for behind_ms, _ in ordered] == [-9, -9, -9, -9, 5]
    assert behind == 2


def test_failed_tries_of_a_restored_record_count_in_the_next_snapshot_though_it_has_not_begun_again() -> None:
    """Else a job that fails twice in a row would have it tried as if it never was."""
    table = CallTable(keyed=True, ordered=False, in_epochs=False)
    table.add_restored(call(1, tries=2, identity="op-1-1"))
    (again,) = table.frozen("op-2-")()
    assert (again.tries, again.identity) == (2, "op-1-1")
