"""Of several heads of a loop one may be slower: its barrier comes back, round another head, before its input's.

Then the records behind that barrier are no part of the snapshot, and the barrier is not waited for again.
"""

from __future__ import annotations

from understudy.actors.barriers.barrier_buffer import BarrierBuffer
from understudy.actors.barriers.barrier_handler import Aborted, Aligned
from understudy.actors.flow.elements import CancelCheckpointMarker, CheckpointBarrier
from understudy.messages import AbortReason, CheckpointId

FIRST, SECOND = CheckpointBarrier(CheckpointId(1), 0), CheckpointBarrier(CheckpointId(2), 0)


def head() -> BarrierBuffer:
    """One input, 0, and two tails, 1 and 2."""
    return BarrierBuffer(3, frozenset({1, 2}))


def test_it_blocks_its_channel_until_the_barrier_of_the_input_and_is_not_overtaken() -> None:
    buffer = head()
    assert buffer.receive(1, FIRST) == []
    assert buffer.is_blocked(1)
    assert buffer.receive(1, ["behind"]) == []
    assert buffer.receive(2, ["before"]) == [(2, ["before"])]
    assert buffer.receive(0, FIRST) == [Aligned(FIRST, frozenset({2})), (1, ["behind"])]
    assert not buffer.is_blocked(1)


def test_with_all_of_them_nothing_is_overtaken() -> None:
    buffer = head()
    assert [*buffer.receive(1, FIRST), *buffer.receive(2, FIRST)] == []
    assert buffer.receive(0, FIRST) == [Aligned(FIRST, frozenset())]


def test_it_is_not_enough_for_a_head_of_two_inputs() -> None:
    buffer = BarrierBuffer(3, frozenset({2}))
    assert [*buffer.receive(2, FIRST), *buffer.receive(0, FIRST)] == []
    assert buffer.receive(1, FIRST) == [Aligned(FIRST, frozenset())]


def test_it_ends_an_older_alignment_and_opens_its_channel_when_its_own_is_given_up() -> None:
    buffer = BarrierBuffer(4, frozenset({2, 3}))
    buffer.receive(0, FIRST)
    assert buffer.receive(2, SECOND) == [Aborted(CheckpointId(1), AbortReason.SUBSUMED)]
    buffer.receive(2, ["behind"])
    assert buffer.receive(1, CancelCheckpointMarker(CheckpointId(2))) == [
        Aborted(CheckpointId(2), AbortReason.CANCELLED),
        (2, ["behind"]),
    ]


def test_one_that_is_given_up_or_over_blocks_nothing() -> None:
    buffer = head()
    buffer.abort(CheckpointId(1))
    assert buffer.receive(1, FIRST) == []
    assert not buffer.is_blocked(1)
    buffer.receive(0, SECOND)
    assert buffer.receive(2, SECOND) == []
    assert not buffer.is_blocked(2)
