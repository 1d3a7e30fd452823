"""Tables: many messages of one class, column by column."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.messages import (
    ExecutionAttemptId,
    Heartbeat,
    JobView,
    MalformedMessage,
    SubtaskIndex,
    TaskMetrics,
    UnsupportedValue,
    VertexId,
    decode,
    encode,
    packed_heartbeat,
)
from understudy.messages.tables import pack_table, unpack_table

from .strategies import instances

TASK = TaskMetrics(ExecutionAttemptId("a"), VertexId("v"), "v", SubtaskIndex(0), 1, 2, 3, 4, 5, "running")


@given(rows=st.lists(instances(TaskMetrics), max_size=5))
def test_what_is_read_is_what_was_written(rows: list[TaskMetrics]) -> None:
    try:
        data = pack_table(TaskMetrics, rows)
    except UnsupportedValue:  # half a surrogate pair, or an integer of more than 64 bits
        assert packed_heartbeat("tm", 1, tuple(rows), None, True).metrics == tuple(rows)
        return
    assert repr(unpack_table(TaskMetrics, data)) == repr(tuple(rows))


def test_a_heartbeat_has_its_figures_as_a_table_and_once_unpacked_as_they_are() -> None:
    said = packed_heartbeat("tm", 1, (TASK, TASK), {"cpu": 1.0}, False)
    assert not said.metrics
    assert len(encode(said)) < len(encode(Heartbeat("tm", 1, (TASK, TASK))))
    assert decode(encode(said)).unpacked() == Heartbeat("tm", 1, (TASK, TASK), {"cpu": 1.0}, False)
    assert packed_heartbeat("tm", 2, (), None, True).unpacked() == Heartbeat("tm", 2)


def changed(**columns: Any) -> bytes:
    table = msgpack.unpackb(pack_table(TaskMetrics, [TASK, TASK]))
    table |= columns
    return msgpack.packb({name: each for name, each in table.items() if each is not ...})


def test_a_column_that_is_not_there_has_the_default_and_one_that_is_not_known_is_left_out() -> None:
    assert unpack_table(TaskMetrics, changed(user=..., clock_ms=..., later=[1, 2])) == (TASK, TASK)
    assert unpack_table(TaskMetrics, changed(clock_ms=[1, 2.5]))[0].clock_ms == 1.0


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"vertex_name": ...}, "TaskMetrics.vertex_name is missing"),
        ({"records_in": [1, True]}, "TaskMetrics.records_in: wanted int, found bool True"),
        ({"records_in": [1, None]}, "TaskMetrics.records_in: wanted int, found NoneType None"),
        ({"records_in": [1]}, r"TaskMetrics.records_in: wanted 2 values, found list \[1\]"),
        ({"records_in": 7}, "TaskMetrics.records_in: wanted 2 values, found int 7"),
        ({"event_time": [[0, 2], {"rows": 0}]}, "TaskMetrics.event_time: 0 messages do not fit rows"),
        ({"event_time": [[], 7]}, "wanted a table of TaskEventTime, found int 7"),
        ({"user": [[1, -1], {"rows": 0}]}, "TaskMetrics.user: 0 messages do not fit counts"),
        ({"user": [[0], {"rows": 0}]}, "TaskMetrics.user: 0 messages do not fit counts"),
        ({"user": [7, {"rows": 0}]}, "TaskMetrics.user: wanted a list, found int 7"),
        ({"user": 7}, "no table of TaskMetrics"),
        ({"rows": 10**9}, "wanted a table of TaskMetrics"),
        ({"rows": "2"}, "wanted a table of TaskMetrics"),
    ],
)
def test_a_wrong_table_says_where_it_is_wrong(columns: dict[str, Any], said: str) -> None:
    with pytest.raises(MalformedMessage, match=said):
        unpack_table(TaskMetrics, changed(**columns))


@given(data=st.binary(max_size=60))
def test_bytes_that_are_no_table_are_malformed(data: bytes) -> None:
    with pytest.raises(MalformedMessage):
        unpack_table(TaskMetrics, data)


def test_values_that_do_not_travel_are_refused_and_the_heartbeat_says_them_otherwise() -> None:
    huge = TaskMetrics(ExecutionAttemptId("a"), VertexId("v"), "v", SubtaskIndex(0), 2**70, 0, 0, 0, 0, "running")
    with pytest.raises(UnsupportedValue, match="a table of TaskMetrics cannot be sent"):
        pack_table(TaskMetrics, [huge])
    assert packed_heartbeat("tm", 1, (huge,), None, True) == Heartbeat("tm", 1, (huge,))


def test_a_class_with_fields_that_tables_do_not_have_is_refused() -> None:
    with pytest.raises(UnsupportedValue, match="tables have no fields of type"):
        pack_table(JobView, [])
