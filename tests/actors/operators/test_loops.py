"""The heads of loops: what they decide when a round is over, and where they go on after a restore."""

from __future__ import annotations

from typing import Any

from understudy.actors.flow.elements import END_OF_TIME, RoundMark, Watermark
from understudy.actors.operators.loops import RoundsHead, StreamHead
from understudy.testing import OperatorHarness


class Sent:
    """A collector that keeps elements."""

    def __init__(self) -> None:
        self.elements: list[Any] = []

    def emit_element(self, element: Any) -> None:
        self.elements.append(element)


def test_a_first_round_in_which_nothing_was_sent_back_says_nothing() -> None:
    """What had been sent back before a restore is not counted, and may still go round."""
    head, sent = StreamHead(), Sent()
    head.begin_rounds()
    goes_on = []
    for number in (1, 2):
        goes_on.append(head.round_over(RoundMark(number), sent))  # type: ignore[arg-type]
        head.send_round(sent)  # type: ignore[arg-type]
        if number == 1:
            assert sent.elements == []
    assert sent.elements == [Watermark(END_OF_TIME - 1)]
    assert [*goes_on, head.round_over(RoundMark(3), sent)] == [True, True, False]  # type: ignore[arg-type]


def test_heads_that_were_in_different_rounds_go_on_in_the_earlier_one() -> None:
    """Its mark may be on its way still, and with it what the next round begins with."""
    ahead = OperatorHarness(RoundsHead(9), parallelism=2, subtask_index=0)
    behind = OperatorHarness(RoundsHead(9), parallelism=2, subtask_index=1)
    ahead.operator.number, behind.operator.number = 4, 3
    snapshots = [each.snapshot(1) for each in (ahead, behind)]
    restored = [ahead.restored(snapshots, parallelism=2, subtask_index=index) for index in range(2)]
    assert [each.operator.number for each in restored] == [3, 3]
    for each in (ahead, behind, *restored):
        each.close()
