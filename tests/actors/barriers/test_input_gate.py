"""InputGate: fair, and never idle while a channel that may be read holds an element."""

from __future__ import annotations

from collections import deque
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from understudy.actors.barriers.barrier_buffer import BarrierBuffer
from understudy.actors.barriers.barrier_handler import Aligned
from understudy.actors.barriers.input_gate import GateChannel, InputGate
from understudy.actors.flow.elements import CheckpointBarrier
from understudy.messages import SubtaskIndex


class Queue:
    """A channel whose elements are all there already."""

    def __init__(self, elements: list[Any]) -> None:
        self.elements = deque(elements)

    def poll(self) -> Any | None:
        return self.elements.popleft() if self.elements else None

    def close(self) -> None:
        self.elements.clear()


def gate(*channels: list[Any]) -> InputGate:
    ends = [GateChannel(Queue(elements), 0, 0, SubtaskIndex(index)) for index, elements in enumerate(channels)]
    return InputGate(ends, BarrierBuffer(len(channels)))


def drain(one: InputGate) -> list[Any]:
    return list(iter(one.next, None))


def test_a_barrier_that_is_kept_does_not_hide_the_next_channel() -> None:
    barrier = CheckpointBarrier(1, 0)
    assert drain(gate([barrier], [barrier])) == [Aligned(barrier)]


def test_channels_take_turns() -> None:
    assert drain(gate([["a1"], ["a2"]], [["b1"], ["b2"]])) == [(0, ["a1"]), (1, ["b1"]), (0, ["a2"]), (1, ["b2"])]


@given(st.lists(st.lists(st.integers(0, 3), max_size=6), min_size=1, max_size=5))
def test_everything_that_is_there_comes_out_before_it_idles(counts: list[list[int]]) -> None:
    """Each channel: runs of batches, with a barrier after each run; all channels have the same number of barriers."""
    rounds = min(len(runs) for runs in counts)
    channels: list[list[Any]] = []
    for number, runs in enumerate(counts):
        elements: list[Any] = []
        for round_, run in enumerate(runs[:rounds]):
            elements += [[(number, round_, n)] for n in range(run)] + [CheckpointBarrier(round_ + 1, 0)]
        channels.append(elements)
    events = drain(gate(*channels))
    assert [event.barrier.checkpoint_id for event in events if isinstance(event, Aligned)] == list(range(1, rounds + 1))
    batches = sorted(event[1][0] for event in events if not isinstance(event, Aligned))
    assert batches == sorted((c, r, n) for c, runs in enumerate(counts) for r in range(rounds) for n in range(runs[r]))


def test_a_source_has_no_gate_to_wait_at() -> None:
    assert InputGate((), None).next() is None
