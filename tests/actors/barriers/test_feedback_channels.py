"""The gate of a loop's head: feedback channels are read first, not waited for, and logged until the barrier is back."""

from __future__ import annotations

from collections import deque
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from understudy.actors.barriers.barrier_buffer import BarrierBuffer
from understudy.actors.barriers.barrier_handler import Aborted, Aligned
from understudy.actors.barriers.in_flight_elements import unpack_in_flight
from understudy.actors.barriers.input_gate import GateChannel, InputGate
from understudy.actors.flow.elements import CancelCheckpointMarker, CheckpointBarrier, EndOfPartition, Watermark
from understudy.messages import CheckpointId, SubtaskIndex

FIRST, SECOND = CheckpointBarrier(CheckpointId(1), 0), CheckpointBarrier(CheckpointId(2), 0)
BACK = frozenset({1})


class Queue:
    def __init__(self, *elements: Any) -> None:
        self.elements = deque(elements)

    def poll(self) -> Any | None:
        return self.elements.popleft() if self.elements else None

    def close(self) -> None:
        self.elements.clear()


def gate(*ends: Queue, inputs: int = 1) -> InputGate:
    """The channels behind the first `inputs` ones are feedback channels."""
    channels = [
        GateChannel(end, 0, 0, SubtaskIndex(index), feedback=index >= inputs)  # type: ignore[arg-type]
        for index, end in enumerate(ends)
    ]
    return InputGate(channels, BarrierBuffer(len(ends), frozenset(range(inputs, len(ends)))))


def logged(one: InputGate) -> list[Any]:
    log = one.read_ahead()
    assert log is not None, "a barrier is missing"
    assert log.given_up is None
    return [unpack_in_flight(packed) for _, several in sorted(log.batches.items()) for packed in several]


class TestTheHandler:
    def test_the_barriers_of_its_input_are_enough(self) -> None:
        buffer = BarrierBuffer(3, frozenset({2}))
        assert buffer.receive(0, FIRST) == []
        assert buffer.receive(2, ["back"]) == [(2, ["back"])]  # while it aligns
        assert buffer.receive(1, FIRST) == [Aligned(FIRST, frozenset({2}))]

    def test_a_barrier_that_comes_back_and_a_marker_change_nothing(self) -> None:
        buffer = BarrierBuffer(2, BACK)
        buffer.receive(0, FIRST)
        assert buffer.receive(1, FIRST) == []
        assert buffer.receive(1, CancelCheckpointMarker(CheckpointId(2))) == []
        assert buffer.receive(0, SECOND) == [Aligned(SECOND, BACK)]

    def test_a_channel_that_ends_gives_no_alignment_up(self) -> None:
        buffer = BarrierBuffer(3, frozenset({2}))
        buffer.receive(0, FIRST)
        assert buffer.receive(2, EndOfPartition()) == [(2, EndOfPartition())]
        assert buffer.receive(1, FIRST) == [Aligned(FIRST, frozenset({2}))]

    def test_what_its_input_gives_up_is_given_up(self) -> None:
        buffer = BarrierBuffer(2, BACK)
        (aborted,) = buffer.receive(0, CancelCheckpointMarker(CheckpointId(1)))
        assert isinstance(aborted, Aborted)


class TestTheGate:
    def test_what_comes_back_is_read_first_but_while_a_barrier_is_waited_for(self) -> None:
        one = gate(Queue(["a"], ["b"], ["c"]), Queue(["x"], ["y"]))
        assert [one.next() for _ in range(2)] == [(1, ["x"]), (1, ["y"])]
        assert one.next() == (0, ["a"])
        one.channels[1].channel.elements.extend([["z"], ["zz"]])  # type: ignore[attr-defined]
        one.reads_all = True
        assert {one.next()[0] for _ in range(2)} == {0, 1}  # type: ignore[index]

    def test_channels_of_the_input_take_turns_though_records_come_back_between_them(self) -> None:
        back = Queue()
        one = gate(Queue(["a"], ["b"], ["c"]), Queue(["x"], ["y"], ["z"]), back, inputs=2)
        taken = []
        for _ in range(6):
            taken.append(one.next())
            back.elements.append(["back"])
            assert one.next() == (2, ["back"])
        assert taken == [(0, ["a"]), (1, ["x"]), (0, ["b"]), (1, ["y"]), (0, ["c"]), (1, ["z"])]

    def test_records_between_the_snapshot_and_the_barrier_that_comes_back_are_logged_and_handed_out(self) -> None:
        back = Queue()
        one = gate(Queue(FIRST, ["after"]), back)
        back.elements.append(["before"])
        assert one.next() == (1, ["before"])
        assert one.next() == Aligned(FIRST, BACK)
        back.elements.extend([["in", "flight"], Watermark(5)])
        assert one.read_ahead() is None
        assert one.next() == (1, ["in", "flight"])
        back.elements.extend([["too"], FIRST, ["behind"]])
        assert logged(one) == [["in", "flight"], Watermark(5), ["too"]]
        assert [one.next() for _ in range(4)] == [(1, Watermark(5)), (1, ["too"]), (1, ["behind"]), (0, ["after"])]

    def test_restored_records_come_first_and_are_logged_again_while_they_wait(self) -> None:
        one = gate(Queue(FIRST), Queue(["new"], FIRST))
        one.restore_loop([["old"], ["older"]])
        one.reads_all = True  # the barrier comes before they are taken
        assert one.next() == Aligned(FIRST, BACK)
        rest = [["old"], ["older"], ["new"]]
        assert logged(one) == rest
        assert list(iter(one.next, None)) == [(1, each) for each in rest]

    def test_a_newer_checkpoint_takes_the_place_of_one_whose_barrier_is_not_back(self) -> None:
        back = Queue()
        one = gate(Queue(FIRST, SECOND), back)
        assert one.next() == Aligned(FIRST, BACK)
        assert one.next() == Aligned(SECOND, BACK)
        back.elements.extend([["a"], FIRST, ["b"], SECOND])
        assert logged(one) == [["a"], ["b"]]

    @given(st.lists(st.integers(0, 5), min_size=1, max_size=6), st.integers(1, 3))
    def test_each_record_is_in_the_state_or_in_the_log_of_each_checkpoint(self, counts: list[int], tails: int) -> None:
        """A loop of whatever delay: tails send back `counts[n]` records each between the barriers n and n + 1."""
        inputs = Queue(*(CheckpointBarrier(CheckpointId(n + 1), 0) for n in range(len(counts))))
        backs = [Queue() for _ in range(tails)]
        one = gate(inputs, *backs)
        taken: list[Any] = []
        sent = 0
        for count in counts:
            for back in backs:
                back.elements.extend([[sent + number] for number in range(count)])
            sent += count
            event = one.next()
            while not isinstance(event, Aligned):
                assert event is not None
                taken.append(event)
                event = one.next()
            for back in backs:  # behind the snapshot, before the barrier that comes back
                back.elements.extend([[sent], event.barrier])
            sent += 1
            in_log = logged(one)
            assert len(taken) + len(in_log) == sent * tails
        taken += iter(one.next, None)
        for index in range(tails):
            assert [event[1][0] for event in taken if event[0] == index + 1] == list(range(sent))
