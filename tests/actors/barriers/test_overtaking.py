"""Checkpoints that overtake barriers: whenever the switch comes, the cut is consistent, and nothing is lost or doubled.

What a snapshot covers of a channel (what was processed before it, and what it found in flight) is all that came before
the channel's barrier. Chandy and Lamport, "Distributed Snapshots" (1985).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.actors.barriers.barrier_buffer import BarrierBuffer
from understudy.actors.barriers.barrier_handler import Aborted, Aligned
from understudy.actors.barriers.input_gate import GateChannel, InputGate
from understudy.actors.errors import UnknownChannel
from understudy.actors.flow.elements import (
    CancelCheckpointMarker,
    CheckpointBarrier,
    Element,
    EndOfData,
    EndOfPartition,
)
from understudy.messages import AbortReason, CheckpointId, SubtaskIndex
from understudy.state import unpack_batch

Plan = tuple[list[list[Element]], list[tuple[str, int]]]


def barrier(number: int) -> CheckpointBarrier:
    return CheckpointBarrier(CheckpointId(number), 0)


class Channel:
    def __init__(self) -> None:
        self.arrived: deque[Element] = deque()

    def poll(self) -> Element | None:
        return self.arrived.popleft() if self.arrived else None

    def close(self) -> None:
        self.arrived.clear()


class Greedy(BarrierBuffer):
    """Is fed from blocked channels too, so that it sets aside and replays."""

    def is_blocked(self, channel: int) -> bool:
        return False


@dataclass
class Snapshot:
    """By channel: what had been processed, and what was in flight; None as long as that is not known."""

    processed: list[list[Any]]
    in_flight: list[list[Any]] | None = None

    def covered(self, channel: int) -> list[Any]:
        assert self.in_flight is not None
        return self.processed[channel] + self.in_flight[channel]


@dataclass
class MiniTask:
    """Takes from a gate what a task takes, and keeps what its snapshots cover."""

    count: int
    handler: type[BarrierBuffer] = BarrierBuffer
    snapshots: dict[int, Snapshot] = field(default_factory=dict)
    given_up: list[tuple[int, AbortReason]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.channels = [Channel() for _ in range(self.count)]
        ends = [GateChannel(channel, 0, 7, SubtaskIndex(index)) for index, channel in enumerate(self.channels)]
        self.gate = InputGate(ends, self.handler(self.count))
        self.processed: list[list[Any]] = [[] for _ in range(self.count)]
        self.last = 0

    def deliver(self, channel: int, *elements: Element) -> None:
        self.channels[channel].arrived.extend(elements)

    def step(self) -> bool:
        self.read_ahead()
        event = self.gate.next()
        match event:
            case Aligned(barrier):
                self._snapshot(barrier.checkpoint_id, [[] for _ in range(self.count)])
            case Aborted(checkpoint_id, reason):
                self.given_up.append((checkpoint_id, reason))
            case (channel, list() as batch):
                self.processed[channel] += batch
        return event is not None

    def switch(self, checkpoint_id: int) -> None:
        if checkpoint_id <= self.last:
            return
        for event in self.gate.overtake(CheckpointBarrier(CheckpointId(checkpoint_id), 0)):
            if isinstance(event, Aligned):
                self._snapshot(event.barrier.checkpoint_id, None)
            else:
                self.given_up.append((event.checkpoint_id, event.reason))

    def read_ahead(self) -> None:
        log = self.gate.read_ahead()
        if log is not None and log.given_up is not None:
            self.given_up.append((log.checkpoint_id, log.given_up))
        elif log is not None:
            packed = [log.batches.get(channel, []) for channel in range(self.count)]
            flown = [[record for each in batches for record in unpack_batch(each)] for batches in packed]
            self.snapshots[log.checkpoint_id].in_flight = flown

    def run_dry(self) -> None:
        while self.step():
            pass

    def complete(self) -> dict[int, Snapshot]:
        return {number: each for number, each in self.snapshots.items() if each.in_flight is not None}

    def _snapshot(self, checkpoint_id: int, in_flight: list[list[Any]] | None) -> None:
        if checkpoint_id > self.last:
            self.last = checkpoint_id
            self.snapshots[checkpoint_id] = Snapshot([list(each) for each in self.processed], in_flight)


def batches_of(elements: list[Element]) -> list[Any]:
    return [record for element in elements if isinstance(element, list) for record in element]


def before(elements: list[Element], checkpoint_id: int) -> list[Any] | None:
    """What comes before this barrier; None if it does not come."""
    for index, element in enumerate(elements):
        if isinstance(element, CheckpointBarrier) and element.checkpoint_id == checkpoint_id:
            return batches_of(elements[:index])
    return None


def after(elements: list[Element], checkpoint_id: int) -> list[Element]:
    found = [isinstance(each, CheckpointBarrier) and each.checkpoint_id == checkpoint_id for each in elements]
    return elements[found.index(True) + 1 :]


@st.composite
def plans(draw: st.DrawFn, faults: bool) -> Plan:
    """What each channel delivers, and what happens in which order.

    Barriers come in order, and all of the last one; with `faults` some are cancelled or missing, and some channels end.
    """
    count, rounds = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    channels: list[list[Element]] = []
    for channel in range(count):
        elements: list[Element] = []
        for checkpoint in range(1, rounds + 1):
            elements += [[f"{channel}.{checkpoint}.{n}"] for n in range(draw(st.integers(0, 3)))]
            kind = draw(st.sampled_from("bbbbcm")) if faults else "b"
            cancel = CancelCheckpointMarker(CheckpointId(checkpoint))
            elements += {"b": [barrier(checkpoint)], "c": [cancel], "m": []}[kind]
        elements += [barrier(rounds + 1), [f"{channel}.end"], EndOfData()]
        elements += [EndOfPartition()] if faults and draw(st.booleans()) else []
        channels.append(elements)
    moves = st.one_of(
        st.tuples(st.just("deliver"), st.integers(0, count - 1)),
        st.tuples(st.just("step"), st.just(0)),
        st.tuples(st.just("switch"), st.integers(1, rounds)),
        st.tuples(st.just("read ahead"), st.just(0)),
        *([st.tuples(st.just("abort"), st.integers(1, rounds))] if faults else []),
    )
    return channels, draw(st.lists(moves, max_size=40))


def play(task: MiniTask, plan: Plan) -> None:
    """Do as planned; then let everything come, and be processed."""
    channels, moves = plan
    waiting = [deque(elements) for elements in channels]
    for move, number in moves:
        if move == "deliver" and waiting[number]:
            task.deliver(number, waiting[number].popleft())
        elif move == "step":
            task.step()
        elif move == "switch":
            task.switch(number)
        elif move == "read ahead":
            task.read_ahead()
        elif move == "abort":
            task.gate.abort(CheckpointId(number))
    for channel, left in enumerate(waiting):
        task.deliver(channel, *left)
    task.run_dry()
    task.run_dry()


handlers = pytest.mark.parametrize("handler", [BarrierBuffer, Greedy])


@handlers
@given(plan=plans(faults=False))
def test_the_cut_is_consistent_whenever_the_switch_comes(handler: type[BarrierBuffer], plan: Plan) -> None:
    task = MiniTask(len(plan[0]), handler)
    play(task, plan)
    for number, snapshot in task.complete().items():
        for channel, elements in enumerate(plan[0]):
            assert snapshot.covered(channel) == before(elements, number)
    assert task.processed == [batches_of(elements) for elements in plan[0]]


@given(plan=plans(faults=False))
def test_the_last_checkpoint_is_taken_whenever_the_switch_comes(plan: Plan) -> None:
    """Older ones may be given up for it."""
    task = MiniTask(len(plan[0]))
    play(task, plan)
    newest = max(each.checkpoint_id for each in plan[0][0] if isinstance(each, CheckpointBarrier))
    assert newest in task.complete()
    assert {number for number, _ in task.given_up}.isdisjoint(task.complete())


@handlers
@given(plan=plans(faults=True))
def test_with_cancels_gaps_aborts_and_ends_too(handler: type[BarrierBuffer], plan: Plan) -> None:
    """A snapshot that is complete lacks nothing that came before a barrier; and nothing is lost or doubled."""
    task = MiniTask(len(plan[0]), handler)
    play(task, plan)
    for number, snapshot in task.complete().items():
        for channel, elements in enumerate(plan[0]):
            wanted = before(elements, number)
            assert wanted is None or snapshot.covered(channel) == wanted
    assert task.processed == [batches_of(elements) for elements in plan[0]]


@given(plan=plans(faults=False), again=plans(faults=False), choice=st.integers(0, 9))
def test_what_was_in_flight_comes_first_after_a_restore(plan: Plan, again: Plan, choice: int) -> None:
    """And belongs to the next unaligned snapshot as long as it is not processed."""
    task = MiniTask(len(plan[0]))
    play(task, plan)
    number, snapshot = sorted(task.complete().items())[choice % len(task.complete())]
    restored = MiniTask(len(plan[0]))
    flown = dict(enumerate(snapshot.in_flight or []))
    restored.gate.restore({(7, SubtaskIndex(channel)): [flown[channel]] if flown[channel] else [] for channel in flown})
    restored.processed = [list(each) for each in snapshot.processed]
    restored.last = number
    rest = [after(elements, number) for elements in plan[0]]
    play(restored, (rest, [(move, where % restored.count) for move, where in again[1] if move != "switch"]))
    assert restored.processed == [batches_of(elements) for elements in plan[0]]


@given(st.integers(0, 4))
def test_a_snapshot_while_restored_elements_wait_holds_them(steps: int) -> None:
    task = MiniTask(2)
    task.gate.restore({(7, SubtaskIndex(0)): [["a"], ["b"]], (7, SubtaskIndex(1)): [["c"]]})
    for _ in range(steps):
        task.step()
    task.switch(1)
    for channel in (0, 1):
        task.deliver(channel, [f"new {channel}"], CheckpointBarrier(CheckpointId(1), 0))
    task.read_ahead()
    assert task.snapshots[1].covered(0) == ["a", "b", "new 0"]
    assert task.snapshots[1].covered(1) == ["c", "new 1"]


def test_it_reads_ahead_to_the_barrier_and_no_further() -> None:
    task = MiniTask(2)
    task.deliver(0, ["a"], barrier(1), ["b"])
    task.switch(1)
    task.read_ahead()
    assert list(task.channels[0].arrived) == [["b"]]
    assert task.snapshots[1].in_flight is None
    task.deliver(1, barrier(1))
    task.read_ahead()
    assert task.snapshots[1].in_flight == [["a"], []]


@pytest.mark.parametrize(
    ("element", "reason"),
    [
        (barrier(2), AbortReason.SUBSUMED),
        (CancelCheckpointMarker(CheckpointId(1)), AbortReason.CANCELLED),
        (CancelCheckpointMarker(CheckpointId(2)), AbortReason.CANCELLED),
        (EndOfPartition(), AbortReason.INPUT_ENDED),
    ],
)
def test_a_log_is_given_up_when_a_barrier_will_not_come(element: Element, reason: AbortReason) -> None:
    task = MiniTask(2)
    task.switch(1)
    task.deliver(0, ["a"], element)
    task.deliver(1, ["b"], barrier(1))
    task.run_dry()
    assert (1, reason) in task.given_up
    assert task.complete() == {}
    assert task.processed == [["a"], ["b"]]


def test_an_abort_drops_the_log_and_keeps_the_data() -> None:
    task = MiniTask(1)
    task.deliver(0, ["a"], ["b"])
    task.switch(1)
    task.read_ahead()
    task.gate.abort(CheckpointId(1))
    task.deliver(0, barrier(1), ["c"], barrier(2))
    task.run_dry()
    assert task.processed == [["a", "b", "c"]]
    assert list(task.complete()) == [2]


def test_an_abort_of_an_older_checkpoint_leaves_the_log_of_a_newer_one() -> None:
    task = MiniTask(1)
    task.deliver(0, ["a"])
    task.switch(2)
    task.read_ahead()
    task.gate.abort(CheckpointId(1))
    task.deliver(0, ["b"], barrier(2), ["c"])
    task.run_dry()
    assert {number: each.in_flight for number, each in task.complete().items()} == {2: [["a", "b"]]}


def test_a_newer_switch_holds_what_was_read_ahead_for_an_older_one() -> None:
    task = MiniTask(1)
    task.deliver(0, ["a"], ["b"])
    task.switch(1)
    task.read_ahead()
    task.switch(2)
    task.deliver(0, barrier(1), ["c"], barrier(2), ["d"])
    task.run_dry()
    assert {number: each.in_flight for number, each in task.complete().items()} == {2: [["a", "b", "c"]]}
    assert task.processed == [["a", "b", "c", "d"]]


def test_what_the_handler_has_set_aside_is_in_flight() -> None:
    task = MiniTask(2, Greedy)
    task.deliver(0, barrier(1), ["a"], barrier(2), ["b"])
    task.run_dry()
    task.switch(2)
    task.deliver(1, ["c"], barrier(1), ["d"], barrier(2))
    task.run_dry()
    assert task.snapshots[2].in_flight == [["a"], ["c", "d"]]
    assert task.processed == [["a", "b"], ["c", "d"]]


def test_what_the_handler_has_let_through_is_in_flight_until_it_is_taken() -> None:
    """Though the barrier behind it is here already."""
    task = MiniTask(2, Greedy)
    task.deliver(0, barrier(1), ["a"], barrier(2))
    task.run_dry()
    task.deliver(1, barrier(1))
    task.step()
    task.switch(2)
    task.deliver(1, barrier(2))
    task.run_dry()
    assert task.snapshots[1].processed == [[], []]
    assert task.snapshots[2].in_flight == [["a"], []]
    assert task.processed == [["a"], []]


def test_records_that_cannot_be_written_fail_the_snapshot_and_are_processed() -> None:
    task = MiniTask(1)
    records = [object()]
    task.deliver(0, records, barrier(1))
    task.switch(1)
    log = task.gate.read_ahead()
    assert log is not None
    assert "object" in str(log.failure)
    task.run_dry()
    assert task.processed == [records]


def test_records_are_logged_as_they_were_when_an_operator_changes_them() -> None:
    task = MiniTask(2)
    record = {"n": 1}
    task.deliver(0, [record])
    task.switch(1)
    task.read_ahead()
    record["n"] = 2
    for channel in (0, 1):
        task.deliver(channel, barrier(1))
    task.read_ahead()
    assert task.snapshots[1].in_flight == [[{"n": 1}], []]


def test_what_was_in_flight_elsewhere_is_refused() -> None:
    with pytest.raises(UnknownChannel, match=r"edge 8 from subtask 0; .* edge 7 from subtask 0, edge 7 from subtask 1"):
        MiniTask(2).gate.restore({(8, SubtaskIndex(0)): [["a"]]})
