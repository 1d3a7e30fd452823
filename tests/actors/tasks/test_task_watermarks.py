"""TaskWatermarks: the least of all channels, which never goes back. Flink: StatusWatermarkValveTest."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.actors.flow.elements import END_OF_TIME, NO_WATERMARK, EndOfData, Watermark
from understudy.actors.operators import Map
from understudy.actors.tasks.task_watermarks import TaskWatermarks
from understudy.messages import SubtaskIndex

from .task_stage import TaskStage, deployment

END = Watermark(END_OF_TIME)


def test_a_channel_that_has_said_nothing_holds_the_task_back() -> None:
    watermarks = TaskWatermarks(2)

    assert not watermarks.receive(0, 7)
    assert watermarks.current_ms == NO_WATERMARK
    assert watermarks.receive(1, 3)
    assert watermarks.current_ms == 3


def test_only_the_slowest_channel_brings_the_task_further() -> None:
    watermarks = TaskWatermarks(2)
    watermarks.receive(0, 5)
    watermarks.receive(1, 3)

    assert not watermarks.receive(0, 9)
    assert watermarks.receive(1, 8)
    assert watermarks.current_ms == 8


def test_a_channel_whose_data_has_ended_holds_nothing_back() -> None:
    watermarks = TaskWatermarks(2)
    watermarks.receive(0, 5)

    assert watermarks.end(1)
    assert watermarks.current_ms == 5
    assert watermarks.end(0)
    assert watermarks.current_ms == END_OF_TIME


def test_an_older_watermark_changes_nothing() -> None:
    watermarks = TaskWatermarks(1)
    assert watermarks.receive(0, 5)

    assert not watermarks.receive(0, 5)
    assert not watermarks.receive(0, 4)
    assert watermarks.current_ms == 5


class GateChannel(NamedTuple):
    edge: int
    producer_subtask: SubtaskIndex
    input_index: int


def channels(count: int) -> list[GateChannel]:
    """One from each subtask of one producer."""
    return [GateChannel(0, SubtaskIndex(subtask), 0) for subtask in range(count)]


def restored(before: TaskWatermarks, count: int, old_count: int) -> TaskWatermarks:
    after = TaskWatermarks(count)
    after.restore(before.snapshot(channels(old_count)), channels(count))
    return after


def test_a_channel_that_had_said_nothing_holds_the_restored_task_back_too() -> None:
    before = TaskWatermarks(2)
    before.receive(0, 7)
    after = restored(before, 2, 2)

    assert after.current_ms == NO_WATERMARK
    assert after.receive(1, 3)
    assert after.current_ms == 3
    assert restored(before, 3, 2).current_ms == NO_WATERMARK


@pytest.mark.parametrize("slowest", [0, 1, 2])
def test_with_other_channels_it_goes_on_where_the_slowest_of_the_old_ones_was(slowest: int) -> None:
    before = TaskWatermarks(3)
    for channel in range(3):
        before.receive(channel, 5 if channel == slowest else 9)
    after = restored(before, 2, 3)
    assert (after.current_ms, after.receive(0, 8), after.receive(1, 7), after.current_ms) == (5, False, True, 7)


def test_a_restored_task_is_as_far_as_it_was_though_a_channel_is_idle() -> None:
    before = TaskWatermarks(2)
    before.receive(1, 3)
    before.set_idle(1, True)
    before.receive(0, 9)
    assert before.current_ms == 9
    after = restored(before, 2, 2)

    assert after.current_ms == 9
    assert not after.receive(1, 4)
    assert restored(before, 1, 2).current_ms == 9
    before.set_idle(1, False)
    assert restored(before, 2, 2).current_ms == 9


def test_nothing_is_stored_where_no_channel_has_a_watermark() -> None:
    assert TaskWatermarks(2).snapshot(channels(2)) == ()


@given(
    st.integers(1, 4).flatmap(
        lambda n: st.tuples(st.just(n), st.lists(st.tuples(st.integers(0, n - 1), st.integers())))
    )
)
def test_it_is_the_least_of_the_newest_of_each_channel(case: tuple[int, list[tuple[int, int]]]) -> None:
    channels, said = case
    watermarks, newest = TaskWatermarks(channels), [NO_WATERMARK] * channels
    for channel, timestamp_ms in said:
        before = watermarks.current_ms
        newest[channel] = max(newest[channel], timestamp_ms)
        assert watermarks.receive(channel, timestamp_ms) == (min(newest) > before)
        assert watermarks.current_ms == min(newest)


@pytest.fixture
def stage(tmp_path: Path) -> TaskStage:
    return TaskStage(Map(lambda record: record), deployment(inputs=2), str(tmp_path))


def test_a_task_sends_on_how_far_all_its_channels_are(stage: TaskStage) -> None:
    stage.arrives(0, Watermark(5), [1])
    stage.arrives(1, Watermark(3))

    assert stage.watermark_ms == 3
    assert stage.emitted() == [[1], Watermark(3)]


def test_the_end_of_a_channels_data_is_its_last_watermark(stage: TaskStage) -> None:
    stage.arrives(0, Watermark(5), EndOfData())
    stage.arrives(1, Watermark(3))
    assert stage.watermark_ms == 3

    stage.arrives(1, EndOfData())

    assert stage.watermark_ms == END_OF_TIME
    assert stage.emitted() == [Watermark(3), END, EndOfData()]


def test_channels_of_a_group_are_idle_together() -> None:
    """One that is active again does not take event time ahead of records that are on their way on the other."""
    watermarks = TaskWatermarks(2, groups=(7, 7))
    for channel in (0, 1):
        watermarks.receive(channel, 10)
        watermarks.set_idle(channel, True)
    assert watermarks.is_idle

    assert not watermarks.receive(0, 20)
    assert not watermarks.is_idle
    assert not watermarks.set_idle(0, True)
    assert watermarks.current_ms == 10
    assert watermarks.receive(1, 20)
    assert not watermarks.set_idle(1, True)
    assert watermarks.is_idle
    assert watermarks.current_ms == 20


def test_a_channel_of_a_group_is_not_idle_before_the_others_are() -> None:
    watermarks = TaskWatermarks(3, groups=(7, 7, 8))
    for channel, timestamp_ms in enumerate((20, 20, 30)):
        watermarks.receive(channel, timestamp_ms)

    assert not watermarks.set_idle(1, True)
    assert watermarks.current_ms == 20
    assert watermarks.set_idle(0, True)
    assert watermarks.current_ms == 30


def test_a_channel_that_has_ended_does_not_keep_its_group_active() -> None:
    watermarks = TaskWatermarks(3, groups=(7, 7, 8))
    for channel, timestamp_ms in enumerate((20, 10, 30)):
        watermarks.receive(channel, timestamp_ms)
    watermarks.set_idle(1, True)

    assert watermarks.end(0)
    assert watermarks.current_ms == 30
    assert not watermarks.is_idle
