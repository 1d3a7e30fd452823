"""The heads of loops: what they decide when a round is over, and where they go on after a restore."""

from __future__ import annotations

import logging
from collections import defaultdict, deque
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest

from understudy.actors.flow.elements import END_OF_TIME, RoundMark, Watermark
from understudy.actors.operators.collector import Collector
from understudy.actors.operators.loops import RESULT, LoopHead, RoundsHead, StreamHead
from understudy.state.columns.batch_codec import pack_batch
from understudy.testing import OperatorHarness

H = TypeVar("H", bound=LoopHead)


def in_context(head: H, subtask_index: int = 0) -> H:
    now = SimpleNamespace(ms=0.0)
    head.context = SimpleNamespace(  # type: ignore[assignment]
        name="loop", subtask_index=subtask_index, now=now, clock=SimpleNamespace(now_ms=lambda: now.ms)
    )
    return head


class Sent:
    """A collector that keeps elements."""

    def __init__(self) -> None:
        self.elements: list[Any] = []

    def emit_element(self, element: Any) -> None:
        self.elements.append(element)


def test_a_first_round_in_which_nothing_was_sent_back_says_nothing() -> None:
    """What had been sent back before a restore is not counted, and may still go round."""
    head, sent = in_context(StreamHead()), Sent()
    head.begin_rounds()
    goes_on = []
    for number in (1, 2):
        goes_on.append(head.round_over(RoundMark(number), sent))  # type: ignore[arg-type]
        head.send_round(sent)  # type: ignore[arg-type]
        if number == 1:
            assert sent.elements == []
    assert sent.elements == [Watermark(END_OF_TIME - 1)]
    assert [*goes_on, head.round_over(RoundMark(3), sent)] == [True, True, False]  # type: ignore[arg-type]


def test_the_last_of_all_rounds_is_the_result_though_records_were_sent_back() -> None:
    with OperatorHarness(RoundsHead(2)) as harness:
        head, out = harness.operator, Collector()
        goes_on = []
        for number in (1, 2):
            harness.process([f"back {number}"], 1, timestamps=[number])
            goes_on.append(head.round_over(RoundMark(number, 1), out))
        assert goes_on == [True, False]
        assert dict(out.sides())[RESULT.name] == ["back 2"]


@pytest.mark.parametrize(
    ("head", "over", "said"),
    [
        (
            RoundsHead(2, converges=True),
            RoundMark(2, 17),
            ["loop 'loop' ends after max_rounds=2, though 17 records were changed by the last one: its result is not "
             "final. Raise max_rounds, or leave it out"],
        ),
        (
            RoundsHead(2, has_criterion=True),
            RoundMark(2, 9, wanting=1),
            ["loop 'loop' ends after max_rounds=2, though 1 record came to its criterion: its result is not final. "
             "Raise max_rounds"],
        ),
        (RoundsHead(2, converges=True), RoundMark(2, 0), []),
        (RoundsHead(3, converges=True), RoundMark(2, 17), []),
        (RoundsHead(2, has_criterion=True), RoundMark(2, 9), []),
        (RoundsHead(2), RoundMark(2, 17), []),
    ],
)  # fmt: skip
@pytest.mark.parametrize("subtask", [0, 1])
def test_a_loop_that_ends_by_its_limit_before_its_result_is_final_says_so_once(
    head: RoundsHead, over: RoundMark, said: list[str], subtask: int, caplog: pytest.LogCaptureFixture
) -> None:
    in_context(head, subtask)
    head._returned = defaultdict(list)
    head._to_send = deque()
    head.begin_rounds()
    head.round_over(over, Collector())
    assert [record.getMessage() for record in caplog.records] == (said if subtask == 0 else [])


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


@pytest.mark.parametrize("head", [StreamHead(), RoundsHead(None)])
def test_slow_rounds_without_a_limit_are_named_after_ten_minutes_and_then_as_their_time_doubles(
    head: LoopHead, caplog: pytest.LogCaptureFixture
) -> None:
    now: Any = in_context(head).context
    now.now.ms = 5_000_000.0
    if isinstance(head, RoundsHead):
        head._returned, head._to_send = {}, []  # type: ignore[assignment]
    head.begin_rounds()
    with caplog.at_level(logging.WARNING):
        for number in range(1, 15):
            now.now.ms += 3 * 60_000
            assert head.round_over(RoundMark(number, 100 - number), Sent())  # type: ignore[arg-type]
    assert caplog.messages == [
        f"loop 'loop' goes round since its input ended {minutes} min ago: {rounds} rounds so far, and in the last one "
        f"{100 - rounds} records were sent back{before}. If that does not come to 0 by itself, look which records "
        "never leave; delta_iterate takes max_rounds"
        for minutes, rounds, before in [(12, 4, ""), (24, 8, ", 96 in round 4")]
    ]


@pytest.mark.parametrize(("head", "subtask"), [(RoundsHead(20), 0), (StreamHead(), 1)])
def test_rounds_that_will_end_are_not_and_neither_are_those_that_another_head_names(
    head: LoopHead, subtask: int, caplog: pytest.LogCaptureFixture
) -> None:
    now: Any = in_context(head, subtask).context
    if isinstance(head, RoundsHead):
        head._returned, head._to_send = {}, []  # type: ignore[assignment]
    head.begin_rounds()
    now.now.ms = 50_000_000.0
    assert head.round_over(RoundMark(1, 3), Sent())  # type: ignore[arg-type]
    assert caplog.messages == []


def test_what_a_head_has_still_to_send_of_its_round_is_in_a_snapshot() -> None:
    head = OperatorHarness(RoundsHead(9))
    operator: Any = head.operator
    operator.number = 2
    operator._to_send.append([1, 2])
    restored = head.restored(head.snapshot(1))
    after: Any = restored.operator
    assert (after.number, list(after._to_send)) == (2, [[1, 2]])
    for each in (head, restored):
        each.close()


def test_what_was_on_its_way_back_goes_back_once_and_is_not_in_the_next_snapshot() -> None:
    """Its task adds to that what is on its way then."""
    with OperatorHarness(StreamHead()) as harness:
        harness.operator._in_loop.update([pack_batch(["back"])])
        snapshot = harness.snapshot()
    with harness.restored(snapshot) as again:
        assert again.operator.take_in_loop() == [["back"]]
        later = again.snapshot()
    with again.restored(later) as last:
        assert last.operator.take_in_loop() == []
