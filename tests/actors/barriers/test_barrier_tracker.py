"""BarrierTracker: the invariants that hold for any input. Flink's scenarios are played in tests/conformance."""

from __future__ import annotations

from collections import Counter

from hypothesis import given

from understudy.actors.barriers.barrier_handler import Aborted, Aligned
from understudy.actors.barriers.barrier_tracker import MAX_CHECKPOINTS_TO_TRACK, BarrierTracker
from understudy.actors.flow.elements import CancelCheckpointMarker, CheckpointBarrier
from understudy.messages import AbortReason, CheckpointId

from ...conformance.barrier_words import Script
from .barrier_scripts import aborted, scripts, triggered


def barrier(checkpoint_id: int) -> CheckpointBarrier:
    return CheckpointBarrier(CheckpointId(checkpoint_id), 0)


@given(scripts())
def test_data_leaves_at_once_and_nothing_ever_blocks(case: tuple[int, Script]) -> None:
    channels, script = case
    tracker = BarrierTracker(channels)
    for channel, element in script:
        events = tracker.receive(channel, element)
        if not isinstance(element, CheckpointBarrier | CancelCheckpointMarker):
            assert events == [(channel, element)]
        assert not any(map(tracker.is_blocked, range(channels)))


@given(scripts())
def test_checkpoints_grow_and_are_decided_once(case: tuple[int, Script]) -> None:
    channels, script = case
    tracker = BarrierTracker(channels)
    events = [event for channel, element in script for event in tracker.receive(channel, element)]
    assert triggered(events) == sorted(set(triggered(events)))
    decided = triggered(events) + aborted(events)
    assert len(decided) == len(set(decided))


@given(scripts())
def test_a_checkpoint_is_taken_at_once_when_the_last_channel_has_delivered_its_barrier(
    case: tuple[int, Script],
) -> None:
    """All that stands in front of the barriers has left then, and perhaps more."""
    channels, script = case
    tracker = BarrierTracker(channels)
    seen: Counter[CheckpointId] = Counter()
    for channel, element in script:
        if isinstance(element, CheckpointBarrier):
            seen[element.checkpoint_id] += 1
        for checkpoint_id in triggered(tracker.receive(channel, element)):
            assert element == barrier(checkpoint_id)
            assert seen[CheckpointId(checkpoint_id)] == channels


def test_the_only_channel_decides_by_itself_whatever_came_before() -> None:
    """barrier_tracker.json: with one channel there is no state at all."""
    tracker = BarrierTracker(1)
    assert tracker.receive(0, barrier(5)) == [Aligned(barrier(5))]
    assert tracker.receive(0, barrier(4)) == [Aligned(barrier(4))]
    cancel = CancelCheckpointMarker(CheckpointId(5))
    assert tracker.receive(0, cancel) == [Aborted(CheckpointId(5), AbortReason.CANCELLED)]
    assert tracker.pending == ()


def test_the_only_channel_takes_no_checkpoint_that_was_given_up() -> None:
    tracker = BarrierTracker(1)
    tracker.abort(CheckpointId(2))
    assert tracker.receive(0, barrier(1)) == [Aligned(barrier(1))]
    assert tracker.receive(0, barrier(2)) == []
    assert tracker.receive(0, barrier(3)) == [Aligned(barrier(3))]


def test_tracks_a_bounded_number_of_checkpoints() -> None:
    tracker = BarrierTracker(2)
    for checkpoint_id in range(1, MAX_CHECKPOINTS_TO_TRACK + 2):
        assert tracker.receive(0, barrier(checkpoint_id)) == []

    assert len(tracker.pending) == MAX_CHECKPOINTS_TO_TRACK
    assert tracker.receive(1, barrier(1)) == []
    assert tracker.receive(1, barrier(2)) == [Aligned(barrier(2))]


def test_a_checkpoint_given_up_is_not_taken_and_disturbs_no_other() -> None:
    tracker = BarrierTracker(2)
    tracker.receive(0, barrier(1))
    tracker.receive(0, barrier(2))

    assert tracker.abort(CheckpointId(2)) == tracker.abort(CheckpointId(3)) == []

    assert tracker.receive(1, barrier(1)) == [Aligned(barrier(1))]
    assert tracker.receive(1, barrier(2)) == []
    assert tracker.receive(0, barrier(3)) == tracker.receive(1, barrier(3)) == []
    assert tracker.pending == ()
    assert tracker.abort(CheckpointId(1)) == []


def test_close_forgets_all_counts() -> None:
    tracker = BarrierTracker(2)
    tracker.receive(0, barrier(1))
    tracker.close()
    assert tracker.pending == ()


def test_a_cancel_marker_for_a_checkpoint_given_up_reports_only_the_older_ones() -> None:
    tracker = BarrierTracker(2)
    tracker.receive(0, barrier(1))
    tracker.abort(CheckpointId(2))
    events = tracker.receive(1, CancelCheckpointMarker(CheckpointId(2)))
    assert events == [Aborted(CheckpointId(1), AbortReason.CANCELLED)]
