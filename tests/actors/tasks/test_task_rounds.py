"""TaskRounds: when a mark goes on, and what it says when a round is over."""

from __future__ import annotations

from typing import Any, cast

from understudy.actors.barriers.input_gate import GateChannel
from understudy.actors.flow.elements import RoundMark
from understudy.actors.tasks.task_rounds import TaskRounds
from understudy.messages import SubtaskIndex


def rounds(inputs: int, feedback: int = 0) -> TaskRounds:
    channel = cast("Any", None)
    return TaskRounds(
        [GateChannel(channel, 0, 0, SubtaskIndex(0), feedback=index >= inputs) for index in range(inputs + feedback)]
    )


def test_inside_a_loop_a_mark_goes_on_when_it_has_come_on_all_channels() -> None:
    inside = rounds(2)
    assert not inside.is_head
    assert inside.receive(0, RoundMark(1)) is None
    assert inside.receive(1, RoundMark(1)) == RoundMark(1)
    assert inside.receive(1, RoundMark(2)) is None
    assert inside.receive(0, RoundMark(2)) == RoundMark(2)


def test_input_from_outside_the_loop_has_to_end_first() -> None:
    inside = rounds(2)
    assert inside.receive(0, RoundMark(1)) is None
    assert inside.end(1) == RoundMark(1)
    assert inside.receive(0, RoundMark(2)) == RoundMark(2)
    assert inside.end(0) is None
    assert inside.all_input_ended


def test_a_round_is_over_when_its_mark_is_back_from_all_tails_and_says_what_all_say() -> None:
    head = rounds(1, feedback=3)
    assert head.is_head
    assert head.is_feedback(1)
    assert not head.is_feedback(0)
    assert head.receive(1, RoundMark(1, 3)) is None
    assert head.receive(3, RoundMark(1, 0, 4)) is None
    assert head.receive(2, RoundMark(1, 5)) == RoundMark(1, 8, 4)


def test_a_tail_that_is_ahead_by_a_round_is_counted_in_its_own() -> None:
    head = rounds(1, feedback=2)
    assert head.receive(1, RoundMark(1, 1)) is None
    assert head.receive(1, RoundMark(2, 10)) is None
    assert head.receive(2, RoundMark(1, 2)) == RoundMark(1, 3)
    assert head.receive(2, RoundMark(2, 20)) == RoundMark(2, 30)


def test_a_tail_whose_data_has_ended_is_waited_for_no_more_and_is_no_input() -> None:
    head = rounds(1, feedback=2)
    assert head.receive(1, RoundMark(4, 1)) is None
    assert head.end(2) == RoundMark(4, 1)
    assert not head.all_input_ended
    assert head.end(0) is None
    assert head.all_input_ended
    assert head.end(1) is None
