"""CallOrder: results leave in the order of the input, or as they come, and none overtakes a watermark."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from understudy.actors.async_calls.call import Call
from understudy.actors.async_calls.call_order import CallOrder
from understudy.actors.flow.elements import NO_WATERMARK


def calls(order: CallOrder, *numbers: int) -> list[Call]:
    made = [Call(number, number, f"record {number}", NO_WATERMARK) for number in numbers]
    for each in made:
        order.add(each, order.last)
    return made


def left(order: CallOrder) -> list[int]:
    return [each.number for each in order.leaving()]


def test_where_order_counts_the_first_one_holds_the_others() -> None:
    order = CallOrder(ordered=True)
    one, two, three = calls(order, 1, 2, 3)
    order.finish(three)
    order.finish(two)
    assert (order.may_leave, left(order)) == (False, [])

    order.finish(one)

    assert (order.may_leave, left(order)) == (True, [1, 2, 3])
    assert not order.may_leave


def test_where_it_does_not_they_leave_as_they_are_finished() -> None:
    order = CallOrder(ordered=False)
    one, _, three = calls(order, 1, 2, 3)
    order.finish(three)
    order.finish(one)

    assert (order.may_leave, left(order)) == (True, [3, 1])
    assert not order.may_leave


def test_a_watermark_is_reached_when_all_before_it_is_finished() -> None:
    order = CallOrder(ordered=False)
    one, two = calls(order, 1, 2)
    order.close(50)
    (behind,) = calls(order, 3)
    order.finish(behind)
    order.finish(one)
    assert (left(order), order.reached_ms) == ([1], None)

    order.finish(two)

    assert (left(order), order.reached_ms) == ([2], 50)
    order.pass_watermark()
    assert (left(order), order.reached_ms) == ([3], None)


def test_a_call_waits_behind_the_watermark_before_it_until_that_has_passed() -> None:
    order = CallOrder(ordered=True)
    (one,) = calls(order, 1)
    order.close(50)
    (two,) = calls(order, 2)
    order.close(60)
    (three,) = calls(order, 3)
    assert [each.epoch.behind_ms for each in (one, two, three)] == [NO_WATERMARK, 50, 60]

    order.finish(one)
    assert left(order) == [1]
    order.pass_watermark()

    assert [each.epoch.behind_ms for each in (two, three)] == [NO_WATERMARK, 60]


def test_who_is_held_is_given_out_when_its_turn_comes() -> None:
    order = CallOrder(ordered=False)
    order.close(50)
    (held,) = calls(order, 1)
    held.epoch.held.append(held)

    assert order.pass_watermark().take_held() == [held]
    assert order.first.take_held() == []


@given(st.booleans(), st.lists(st.sampled_from(["call", "watermark"]), max_size=12), st.randoms(use_true_random=False))
def test_nothing_overtakes_a_watermark_and_all_leaves(ordered: bool, inputs: list[str], chance: object) -> None:
    order, waiting, expected = CallOrder(ordered=ordered), [], []
    for number, kind in enumerate(inputs):
        if kind == "call":
            waiting += calls(order, number)
        else:
            order.close(number)
    found: list[int | str] = []
    while waiting or order.reached_ms is not None:
        if waiting:
            order.finish(waiting.pop(chance.randrange(len(waiting))))  # type: ignore[attr-defined]
        found += left(order)
        while order.reached_ms is not None:
            found.append(f"watermark {order.reached_ms}")
            order.pass_watermark()
            found += left(order)
    expected = [number if kind == "call" else f"watermark {number}" for number, kind in enumerate(inputs)]
    assert found == expected if ordered else _by_epochs(found) == _by_epochs(expected)


def _by_epochs(found: list[int | str]) -> list[object]:
    epochs: list[object] = []
    part: list[int] = []
    for each in found:
        if isinstance(each, int):
            part.append(each)
        else:
            epochs += [sorted(part), each]
            part = []
    return [*epochs, sorted(part)]
