"""Tasks of the two phases of an aggregation: the first names keys once, the second stores them with its snapshot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from understudy.actors.barriers.in_flight_elements import unpack_in_flight
from understudy.actors.flow.elements import CheckpointBarrier, EndOfData, NamedRows, NumberedRows, TimedBatch
from understudy.actors.operators.aggregate import ColumnarAggregate, Count, Sum
from understudy.messages import (
    AcknowledgeCheckpoint,
    ChannelId,
    CheckpointId,
    OutputDescriptor,
    Partitioning,
    SwitchToUnaligned,
)
from understudy.state import handle_reader, read_channel

from .task_stage import ATTEMPT, JOB, TaskStage, channel, deployment

ROWS = pa.record_batch({"key": ["a", "b", "c"], "n": [1, 2, 3]})


def phases() -> tuple[Any, Any]:
    whole = ColumnarAggregate(["key"], {"count": Count(), "sum": Sum("n")}, "end")
    whole.output_schema(ROWS.schema)
    return whole.in_two_phases()


def barrier(number: int) -> CheckpointBarrier:
    return CheckpointBarrier(CheckpointId(number), 5)


@pytest.fixture
def first(tmp_path: Path) -> TaskStage:
    edges = (OutputDescriptor(1, Partitioning.HASH, (channel(9),)),)
    return TaskStage(phases()[0], deployment(inputs=1, outputs=edges), str(tmp_path / "first"), edge_key="key")


@pytest.fixture
def second(tmp_path: Path) -> TaskStage:
    return TaskStage(phases()[1], deployment(inputs=2), str(tmp_path / "second"))


def partials_of(stage: TaskStage) -> list[Any]:
    """What the first phase sends, a flush at each of three barriers."""
    stage.arrives(0, ROWS, barrier(1), ROWS.slice(1), barrier(2), ROWS, barrier(3))
    return [each for each in stage.emitted() if not isinstance(each, CheckpointBarrier)]


def test_keys_are_named_once(first: TaskStage) -> None:
    named, some, whole = partials_of(first)
    assert isinstance(named, NamedRows)
    assert named.records["key"].to_pylist() == ["a", "b", "c"]
    assert isinstance(some, NumberedRows)
    assert some.numbers == slice(1, 3)
    assert isinstance(whole, NumberedRows)
    assert whole.numbers == slice(0, 3)


@pytest.mark.parametrize(
    "fields",
    [
        {"in_rounds": True},
        {"outputs": (OutputDescriptor(1, Partitioning.HASH, (channel(9),), in_loop=True),)},
        {"outputs": (OutputDescriptor(1, Partitioning.REBALANCE, (channel(9),)),)},
    ],
    ids=["out of a loop with rounds", "within a loop", "not by key"],
)
def test_where_keys_are_not_numbered_they_go_with_all_rows(tmp_path: Path, fields: dict[str, Any]) -> None:
    """In a loop rows have the time of their round beside them, which their numbers would not say."""
    edges = (OutputDescriptor(1, Partitioning.HASH, (channel(9),)),)
    deployed = deployment(**{"inputs": 1, "outputs": edges} | fields)
    sent = partials_of(TaskStage(phases()[0], deployed, str(tmp_path), edge_key="key"))
    found = [each.records if isinstance(each, TimedBatch) else each for each in sent]
    assert [each["key"].to_pylist() for each in found if isinstance(each, pa.RecordBatch)] == [
        ["a", "b", "c"],
        ["b", "c"],
        ["a", "b", "c"],
    ]


def test_each_channel_has_numbers_of_its_own(tmp_path: Path, second: TaskStage) -> None:
    """Two producers that have seen their keys in another order: what is 0 to one is 2 to the other."""
    edges = (OutputDescriptor(1, Partitioning.HASH, (channel(9),)),)
    for wire, order in enumerate(([0, 1, 2], [2, 1, 0])):
        stage = TaskStage(phases()[0], deployment(inputs=1, outputs=edges), str(tmp_path / str(wire)), edge_key="key")
        for number in range(3):
            stage.arrives(0, ROWS.take(pa.array(order)), barrier(number + 1))
        named, *numbered = [each for each in stage.emitted() if not isinstance(each, CheckpointBarrier)]
        assert isinstance(named, NamedRows)
        assert [type(each) for each in numbered] == [NumberedRows] * 2
        second.arrives(wire, named, *numbered)
    for wire in range(2):
        second.arrives(wire, EndOfData())
    (result,) = [each for each in second.emitted() if isinstance(each, pa.RecordBatch)]
    assert result.to_pylist() == [{"key": key, "count": 6, "sum": 6 * n} for n, key in enumerate("abc", 1)]


def test_what_is_in_flight_is_stored_with_its_keys(first: TaskStage, second: TaskStage) -> None:
    """The first rows are in the state, the others are in flight: one batch read ahead, one still to come."""
    named, some, whole = partials_of(first)
    second.arrives(0, named)
    second.plane.wires[ChannelId(9)].has_credit = False
    second.arrives(0, some)
    second.tell(SwitchToUnaligned(JOB, ATTEMPT, CheckpointId(1), 5))
    second.arrives(0, whole, barrier(1))
    second.arrives(1, barrier(1))
    (ack,) = second.said(AcknowledgeCheckpoint)
    assert ack.state is not None
    (in_flight,) = ack.state.channels
    stored = read_channel(in_flight, handle_reader(None), unpack_in_flight)
    assert [each.to_pylist() for each in stored] == [  # type: ignore[union-attr]
        [{"key": key, "count(*)": 1, "sum(n)": n, "count(n)": 1} for key, n in zip(keys, numbers, strict=True)]
        for keys, numbers in (("bc", (2, 3)), ("abc", (1, 2, 3)))
    ]
    second.plane.wires[ChannelId(9)].has_credit = True
    second.arrives(0, EndOfData())
    second.arrives(1, EndOfData())
    (result,) = [each for each in second.emitted() if isinstance(each, pa.RecordBatch)]
    assert result.to_pylist() == [
        {"key": key, "count": count, "sum": count * n} for key, count, n in (("a", 2, 1), ("b", 3, 2), ("c", 3, 3))
    ]


def test_keys_that_were_read_ahead_are_stored_too(first: TaskStage, second: TaskStage) -> None:
    """No key is in the state yet."""
    second.plane.wires[ChannelId(9)].has_credit = False
    second.tell(SwitchToUnaligned(JOB, ATTEMPT, CheckpointId(1), 5))
    second.arrives(0, *partials_of(first), barrier(1))
    second.arrives(1, barrier(1))
    (ack,) = second.said(AcknowledgeCheckpoint)
    assert ack.state is not None
    (in_flight,) = ack.state.channels
    stored = read_channel(in_flight, handle_reader(None), unpack_in_flight)
    assert ["".join(each["key"].to_pylist()) for each in stored] == ["abc", "bc", "abc"]  # type: ignore[index]
