"""BarrierBuffer: the invariants that hold for any input. Flink's scenarios are played in tests/conformance."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.actors.barriers.barrier_buffer import BarrierBuffer
from understudy.actors.barriers.barrier_handler import Aborted, Aligned, GateEvent
from understudy.actors.flow.elements import (
    CancelCheckpointMarker,
    CheckpointBarrier,
    Element,
    EndOfData,
    EndOfPartition,
    Watermark,
)
from understudy.messages import AbortReason, CheckpointId

from ...conformance.barrier_buffer import play_as_gate
from ...conformance.barrier_words import Script
from .barrier_scripts import aborted, scripts, triggered


def barrier(checkpoint_id: int) -> CheckpointBarrier:
    return CheckpointBarrier(CheckpointId(checkpoint_id), 0)


def play(buffer: BarrierBuffer, script: Script) -> list[GateEvent]:
    return [event for channel, element in script for event in buffer.receive(channel, element)]


def test_close_forgets_what_is_set_aside() -> None:
    """BarrierBufferTest.testEarlyCleanup."""
    buffer = BarrierBuffer(2)
    assert play(buffer, [(0, barrier(1)), (0, ["late"]), (0, barrier(2))]) == []

    buffer.close()

    assert not buffer.is_blocked(0)
    assert play(buffer, [(1, barrier(2)), (0, barrier(2))]) == [Aligned(barrier(2))]


def test_other_control_elements_keep_their_place_between_batches() -> None:
    buffer = BarrierBuffer(2)
    behind = [["a"], Watermark(7), EndOfData()]

    events = play(buffer, [(0, barrier(1)), *((0, element) for element in behind), (1, Watermark(3)), (1, barrier(1))])

    assert events == [(1, Watermark(3)), Aligned(barrier(1)), *((0, element) for element in behind)]


def test_an_alignment_that_begins_within_a_replay_comes_before_the_rest_of_it() -> None:
    """What it sets aside is older."""
    buffer = BarrierBuffer(3)
    events = play(
        buffer,
        [
            *((0, barrier(1)), (1, barrier(1))),
            *((0, barrier(2)), (0, ["a"]), (1, barrier(2)), (0, ["b"])),
            (2, EndOfPartition()),
        ],
    )
    assert [event[1] for event in events if isinstance(event, tuple) and event[0] == 0] == [["a"], ["b"]]


def test_a_barrier_that_overtakes_is_not_missed_on_a_channel_that_has_ended() -> None:
    """None will come there: the checkpoint would wait for it until its timeout."""
    buffer = BarrierBuffer(3)
    play(buffer, [(0, EndOfPartition()), (1, barrier(1))])
    assert buffer.overtake(barrier(1)) == [Aligned(barrier(1), frozenset({2}))]


def test_a_handler_without_channels_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one channel, found 0"):
        BarrierBuffer(0)


class TestAbort:
    """The JobManager gives a checkpoint up. Flink 1.11+: notifyCheckpointAborted."""

    def test_ends_the_alignment_and_replays(self) -> None:
        buffer = BarrierBuffer(2)
        play(buffer, [(0, barrier(1)), (0, ["a"])])

        assert buffer.abort(CheckpointId(1)) == [Aborted(CheckpointId(1), AbortReason.GIVEN_UP), (0, ["a"])]
        assert not buffer.is_blocked(0)
        assert play(buffer, [(1, barrier(1)), (1, CancelCheckpointMarker(CheckpointId(1)))]) == []

    def test_twice_is_reported_once(self) -> None:
        buffer = BarrierBuffer(2)
        buffer.receive(0, barrier(1))
        buffer.abort(CheckpointId(1))
        assert buffer.abort(CheckpointId(1)) == []

    def test_of_a_taken_checkpoint_does_nothing(self) -> None:
        buffer = BarrierBuffer(1)
        play(buffer, [(0, barrier(1)), (0, barrier(2))])
        assert buffer.abort(CheckpointId(1)) == buffer.abort(CheckpointId(2)) == []

    def test_of_a_later_checkpoint_lets_an_earlier_one_complete(self) -> None:
        buffer = BarrierBuffer(2)
        buffer.receive(0, barrier(1))
        assert buffer.abort(CheckpointId(2)) == []
        assert buffer.receive(1, barrier(1)) == [Aligned(barrier(1))]

        assert buffer.receive(0, barrier(2)) == [Aborted(CheckpointId(2), AbortReason.GIVEN_UP)]
        assert not buffer.is_blocked(0)
        assert buffer.receive(1, barrier(2)) == []
        assert play(buffer, [(0, barrier(3)), (1, barrier(3))]) == [Aligned(barrier(3))]


ScriptWithAborts = list[tuple[int, Element] | CheckpointId]
"""What channels deliver, and in between the ids of checkpoints that the JobManager gives up."""


@st.composite
def scripts_with_aborts(draw: st.DrawFn) -> tuple[int, ScriptWithAborts]:
    channels, script = draw(scripts())
    mixed: ScriptWithAborts = list(script)
    for checkpoint_id in draw(st.lists(st.integers(1, 6), max_size=3)):
        mixed.insert(draw(st.integers(0, len(mixed))), CheckpointId(checkpoint_id))
    return channels, mixed


def run(channels: int, mixed: ScriptWithAborts) -> list[GateEvent]:
    buffer = BarrierBuffer(channels)
    events: list[GateEvent] = []
    for item in mixed:
        events += buffer.receive(*item) if isinstance(item, tuple) else buffer.abort(item)
    return events


@given(scripts_with_aborts())
def test_each_channel_leaves_in_its_own_order(case: tuple[int, ScriptWithAborts]) -> None:
    channels, mixed = case
    events = run(channels, mixed)
    for channel in range(channels):
        sent = [item[1] for item in mixed if isinstance(item, tuple) and item[0] == channel and passes(item[1])]
        left = [event[1] for event in events if isinstance(event, tuple) and event[0] == channel]
        assert left == sent[: len(left)]


def passes(element: object) -> bool:
    return not isinstance(element, CheckpointBarrier | CancelCheckpointMarker)


@given(scripts_with_aborts())
def test_each_checkpoint_is_a_consistent_cut(case: tuple[int, ScriptWithAborts]) -> None:
    """Chandy and Lamport: exactly what stands in front of the barriers has left when the checkpoint is taken."""
    channels, mixed = case
    events = run(channels, mixed)
    for index, event in enumerate(events):
        if not isinstance(event, Aligned):
            continue
        for channel in range(channels):
            sent = [item[1] for item in mixed if isinstance(item, tuple) and item[0] == channel]
            left = [e[1] for e in events[:index] if isinstance(e, tuple) and e[0] == channel]
            in_front = sent[: sent.index(event.barrier)] if event.barrier in sent else sent
            assert left == [element for element in in_front if passes(element)]


@given(scripts_with_aborts())
def test_checkpoints_grow_and_are_decided_once(case: tuple[int, ScriptWithAborts]) -> None:
    events = run(*case)
    assert triggered(events) == sorted(set(triggered(events)))
    decided = triggered(events) + aborted(events)
    assert len(decided) == len(set(decided))


@given(scripts())
def test_setting_aside_and_not_reading_come_to_the_same(case: tuple[int, Script]) -> None:
    channels, script = case
    assert play_as_gate(BarrierBuffer(channels), script) == play(BarrierBuffer(channels), script)
