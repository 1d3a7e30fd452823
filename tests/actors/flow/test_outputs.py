"""TaskOutputs: what is emitted reaches every edge, together with what was emitted about the same time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.actors.errors import ChannelBroken, UserCodeError
from understudy.actors.flow.elements import CheckpointBarrier, Control, EndOfData, EndOfPartition, TimedBatch, Watermark
from understudy.actors.flow.key_selector import KeySelector
from understudy.actors.flow.output_buffer import ROWS_PER_CHANNEL, OutputBuffer
from understudy.actors.flow.outputs import OutputEdge, TaskOutputs
from understudy.actors.flow.partitioner import Broadcast, Forward, HashByKey, Partitioner
from understudy.messages import CheckpointId, UnsupportedValue
from understudy.state import InvalidKey

from ..tasks.task_stage import Wire


class Clock:
    ms = 0.0

    def now_ms(self) -> float:
        return self.ms

    def wall_ms(self) -> int:
        return 0


class Stage:
    """The outputs of one task, with a wire for each channel of each edge."""

    def __init__(self, *edges: tuple[Partitioner, int], timeout_ms: int = 5) -> None:
        self.clock = Clock()
        self.wires = [tuple(Wire() for _ in range(channels)) for _, channels in edges]
        self.outputs = TaskOutputs(
            [
                OutputEdge(partitioner, wires, OutputBuffer(channels, timeout_ms))
                for (partitioner, channels), wires in zip(edges, self.wires, strict=True)
            ],
            self.clock,
        )

    def sent(self, edge: int = 0, channel: int = 0) -> list[object]:
        return list(self.wires[edge][channel].elements)


@pytest.mark.parametrize(
    "batch", [[], pa.record_batch({"n": pa.array([], pa.int64())}), TimedBatch([], np.empty(0, np.int64))], ids=type
)
@pytest.mark.parametrize("timeout_ms", [0, 5])
def test_a_batch_without_records_goes_nowhere(batch: Any, timeout_ms: int) -> None:
    """A source or an operator may well make one."""
    stage = Stage((Forward(), 1), (HashByKey(2, KeySelector("n"), 128), 2), timeout_ms=timeout_ms)
    stage.outputs.emit(batch)
    stage.outputs.flush()
    assert stage.sent() == stage.sent(1) == stage.sent(1, 1) == []


@dataclass
class Record:
    n: list[int]


class Failing(Wire):
    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def send(self, element: object) -> None:
        raise self.error


def failing_edge(error: Exception, partitioner: Partitioner | None = None) -> OutputEdge:
    return OutputEdge(partitioner or Forward(), (Failing(error),), OutputBuffer(1, 0), "mapper", "count")


@pytest.mark.parametrize("error", [UnsupportedValue("at .owner: a socket"), RecursionError(), AttributeError("x")])
def test_a_record_that_cannot_be_sent_is_blamed_on_the_operator_that_emitted_it(error: Exception) -> None:
    with pytest.raises(UserCodeError) as caught:
        failing_edge(error).send([[1]])
    assert caught.value.operator_name == "mapper"
    assert str(caught.value) == f"operator 'mapper' emitted a record that cannot be sent: {error}"
    assert caught.value.__cause__ is error


def test_a_broken_channel_is_not() -> None:
    with pytest.raises(ChannelBroken):
        failing_edge(ChannelBroken("lost")).send([[1]])


def test_a_key_that_cannot_be_used_is_blamed_on_the_operator_that_is_keyed_by_it() -> None:
    edge = failing_edge(AssertionError(), HashByKey(2, KeySelector(lambda _: [1]), 128))
    with pytest.raises(UserCodeError, match="operator 'count' raised") as caught:
        edge.send([[1]])
    assert isinstance(caught.value.__cause__, InvalidKey)


def test_small_batches_are_kept_until_they_are_due() -> None:
    stage = Stage((Forward(), 1))
    stage.outputs.emit([1])
    stage.clock.ms = 2.0
    stage.outputs.emit([2])
    assert stage.outputs.send_due(4.0) == 1.0
    assert stage.sent() == []
    assert stage.outputs.send_due(5.0) is None
    assert stage.sent() == [[1, 2]]


@pytest.mark.usual_sizes
def test_they_are_dealt_out_together() -> None:
    stage = Stage((HashByKey(2, KeySelector(0), 128), 2))
    for number in range(100):
        stage.outputs.emit([(number,)])
    stage.outputs.flush()
    (left,), (right,) = stage.sent(channel=0), stage.sent(channel=1)
    assert sorted([*left, *right]) == [(number,) for number in range(100)]  # type: ignore[misc]
    assert left == sorted(left)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    "control", [CheckpointBarrier(CheckpointId(1), 0), Watermark(7), EndOfData(), EndOfPartition()], ids=repr
)
def test_a_control_element_stays_behind_what_was_emitted_before_it(control: Control) -> None:
    stage = Stage((Broadcast(2), 2), (Forward(), 1))
    stage.outputs.emit([1])
    stage.outputs.broadcast(control)
    stage.outputs.emit([2])
    stage.outputs.flush()
    assert [stage.sent(0, 0), stage.sent(0, 1), stage.sent(1, 0)] == 3 * [[[1], control, [2]]]


def test_each_edge_is_due_by_itself() -> None:
    stage = Stage((Forward(), 1), (Broadcast(2), 2))
    stage.outputs.emit([0] * ROWS_PER_CHANNEL)  # enough for one channel, and not for two
    assert (len(stage.sent(0)), len(stage.sent(1))) == (1, 0)
    assert stage.outputs.send_due(1.0) == 4.0
    stage.outputs.send_due(5.0)
    assert (len(stage.sent(0)), len(stage.sent(1))) == (1, 1)


def test_without_a_timeout_everything_is_sent_at_once() -> None:
    stage = Stage((Forward(), 1), timeout_ms=0)
    stage.outputs.emit([1])
    stage.outputs.emit([2])
    assert stage.sent() == [[1], [2]]
    assert stage.outputs.send_due(0.0) is None


def test_what_is_kept_goes_nowhere_after_the_close() -> None:
    stage = Stage((Forward(), 1))
    stage.outputs.emit([1])
    stage.outputs.close()
    stage.outputs.flush()
    stage.outputs.send_due(100.0)
    assert stage.sent() == []


def test_records_count_when_they_are_emitted() -> None:
    stage = Stage((Forward(), 1), (Forward(), 1))
    stage.outputs.emit([1, 2, 3])
    assert stage.outputs.records_out == 3


@pytest.mark.parametrize("edges", [[(Forward(), 1), (Forward(), 1)], [(Broadcast(2), 2)]])
@pytest.mark.parametrize("make", [lambda: {"n": [1]}, lambda: [1], lambda: ({"n": 1},), lambda: Record([1])])
def test_each_reader_may_change_its_records(edges: list[tuple[Partitioner, int]], make: Callable[[], Any]) -> None:
    """They may run in one process, and get what was emitted without its being packed."""
    stage = Stage(*edges, timeout_ms=0)
    emitted = [make(), make()]
    stage.outputs.emit(TimedBatch(emitted, np.array([5, 6])))
    (one,), (other,) = (wire.elements for wires in stage.wires for wire in wires)
    assert isinstance(one, TimedBatch)
    assert isinstance(other, TimedBatch)
    assert one == other == TimedBatch([make(), make()], np.array([5, 6]))
    assert one.records is not other.records
    assert not any(mine is its for mine, its in zip(one.records, other.records, strict=True))


ALL = frozenset({0, 1})


@given(
    st.lists(
        st.tuples(st.sampled_from(["forward", "hash", "broadcast"]), st.sampled_from([frozenset(), {0}, {1}, ALL])),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from([0, 5]),
)
@settings(deadline=None)
def test_a_reader_in_this_process_shares_no_record(edges: list[tuple[str, frozenset[int]]], timeout_ms: int) -> None:
    """Neither with another one, nor with a buffer whose records are packed later, for a process elsewhere."""
    wires, made, given_away, broken = [], [], set[int](), list[object]()

    class Reader(Wire):
        def __init__(self, *, is_local: bool) -> None:
            super().__init__()
            self.is_local = is_local

        def send(self, element: object) -> None:
            assert isinstance(element, list)
            broken.extend(record for record in element if id(record) in given_away)
            given_away.update(id(record) for record in element if self.is_local)
            super().send(list(element))

    for kind, local in edges:
        channels = 1 if kind == "forward" else 2
        own = frozenset(local) & frozenset(range(channels))
        partitioner: Partitioner = Forward()
        if kind == "hash":
            partitioner = HashByKey(2, KeySelector("n"), 128)
        elif kind == "broadcast":
            partitioner = Broadcast(2, own)
        readers = tuple(Reader(is_local=channel in own) for channel in range(channels))
        wires.append(readers)
        made.append(OutputEdge(partitioner, readers, OutputBuffer(channels, timeout_ms), local=own))
    outputs = TaskOutputs(made, Clock())
    emitted = [{"n": number} for number in range(8)]
    outputs.emit(emitted)
    outputs.flush()
    assert broken == []
    for (kind, _), readers in zip(edges, wires, strict=True):
        found = sorted(record["n"] for wire in readers for part in wire.elements for record in part)  # type: ignore[union-attr]
        assert found == sorted([*range(8)] * (2 if kind == "broadcast" else 1))


@pytest.mark.parametrize("edges", [[(Forward(), 1), (Forward(), 1)], [(Broadcast(2, frozenset()), 2)]])
def test_what_goes_to_other_processes_is_not_copied(edges: list[tuple[Partitioner, int]]) -> None:
    wires = [tuple(Wire() for _ in range(channels)) for _, channels in edges]
    made = [
        OutputEdge(partitioner, own, OutputBuffer(len(own), 0), local=frozenset())
        for (partitioner, _), own in zip(edges, wires, strict=True)
    ]
    record = {"n": 1}
    TaskOutputs(made, Clock()).emit([record])
    assert all(wire.elements[0][0] is record for own in wires for wire in own)  # type: ignore[index]


def test_what_cannot_be_changed_is_not_copied() -> None:
    stage = Stage((Forward(), 1), (Forward(), 1), timeout_ms=0)
    record = ("a", 1)
    stage.outputs.emit([record])
    assert stage.sent(0)[0][0] is stage.sent(1)[0][0] is record  # type: ignore[index]
