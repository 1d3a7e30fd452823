"""RestoredOperators: state follows its operator, whatever vertex it is in and however many subtasks that has."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.actors.job_graph import SubtaskKey
from understudy.actors.restore.restored_operators import RestoredOperators
from understudy.messages import (
    NO_EDGE,
    ChannelStateHandle,
    InputWatermark,
    JobGraph,
    OperatorId,
    OperatorSubtaskState,
    Partitioning,
    SubtaskIndex,
    SubtaskState,
    VertexId,
)
from understudy.state import inline_handle, key_group_range

from ..graphs import edge, graph
from ..savepoints import chain, checkpoint, keyed_state, list_state


def restored(program: JobGraph, *vertices: Any) -> dict[SubtaskKey, SubtaskState]:
    found = RestoredOperators(checkpoint(*vertices), program).states({each.vertex_id for each in program.vertices})
    return {subtask: state for subtask, (state,) in found.items()}


def of(states: dict[SubtaskKey, SubtaskState], vertex: str, operator: str) -> list[OperatorSubtaskState]:
    """By subtask, as far as there is state."""
    own = [(subtask.subtask_index, state) for subtask, state in states.items() if subtask.vertex_id == vertex]
    return [state.operators[OperatorId(operator)] for _, state in sorted(own, key=lambda each: each[0])]


def test_operators_of_one_chain_may_be_two_vertices_now_and_those_of_two_one() -> None:
    a, b, c = (keyed_state(range(0, 128), name) for name in "abc")
    split = graph(chain("a"), chain("b"), edges=[edge("a", "b")])
    states = restored(split, (chain("a", "b"), [{"a": a, "b": b}]))
    assert of(states, "a", "a") == [a]
    assert of(states, "b", "b") == [b]
    joined = graph(chain("a", "b", "c"))
    states = restored(joined, (chain("a"), [{"a": a}]), (chain("b", "c"), [{"b": b, "c": c}]))
    assert states == {
        SubtaskKey(VertexId("a"), SubtaskIndex(0)): SubtaskState(
            {OperatorId("a"): a, OperatorId("b"): b, OperatorId("c"): c}
        )
    }


def test_an_operator_that_is_new_in_a_chain_gets_nothing_and_one_that_is_gone_is_left_out() -> None:
    a = keyed_state(range(0, 128), "a")
    states = restored(graph(chain("new", "a")), (chain("a", "gone"), [{"a": a, "gone": a}]))
    assert states == {SubtaskKey(VertexId("new"), SubtaskIndex(0)): SubtaskState({OperatorId("a"): a})}


@given(old=st.integers(1, 6), new=st.integers(1, 6), other=st.integers(1, 6))
def test_each_operator_is_dealt_out_from_its_own_old_parallelism(old: int, new: int, other: int) -> None:
    before = [{"a": keyed_state(key_group_range(128, old, index).groups, "a")} for index in range(old)]
    others = [{"b": list_state("items", 3, "split")} for _ in range(other)]
    states = restored(
        graph(chain("a", "b", parallelism=new)),
        (chain("a", parallelism=old), before),
        (chain("b", parallelism=other), others),
    )
    groups = [
        group
        for state in states.values()
        for handle in state.operators[OperatorId("a")].keyed
        for group in range(handle.first_key_group, handle.last_key_group + 1)
    ]
    assert groups == list(range(128))
    items = [
        handle
        for state in states.values()
        if OperatorId("b") in state.operators
        for handle in state.operators[OperatorId("b")].lists
    ]
    assert sum(len(handle.offsets) - 1 for handle in items) == 3 * other


def ended(program: JobGraph, *vertices: Any) -> dict[str, list[bool]]:
    return {str(each): flags for each, flags in RestoredOperators(checkpoint(*vertices), program).ended.items()}


def test_with_the_same_parallelism_each_subtask_goes_on_where_it_was() -> None:
    program = graph(chain("s", parallelism=2), chain("t", parallelism=2), edges=[edge("s", "t", Partitioning.FORWARD)])
    was = (chain("s", parallelism=2), [{}, {}], [True, False]), (chain("t", parallelism=2), [{}, {}], [True, False])
    assert ended(program, *was) == {"s": [True, False], "t": [True, False]}


@pytest.mark.parametrize(("before", "after"), [([True, True], True), ([True, False], False)])
def test_after_a_rescale_data_has_ended_if_it_had_everywhere(before: list[bool], after: bool) -> None:
    assert ended(graph(chain("s", parallelism=3)), (chain("s", parallelism=2), [{}, {}], before)) == {"s": [after] * 3}


def test_an_operator_that_is_new_in_a_chain_that_had_ended_has_ended_too() -> None:
    """It has had no data. Where everything in a vertex is new, its input tells it of the end."""
    program = graph(chain("s", "new"), chain("fresh"), edges=[edge("s", "fresh")])
    assert ended(program, (chain("s"), [{}], [True])) == {"s": [True], "fresh": [False]}


def test_what_is_fed_by_something_that_goes_on_goes_on() -> None:
    program = graph(chain("s"), chain("other"), chain("t"), edges=[edge("s", "t"), edge("other", "t")])
    was = (chain("s"), [{}], [True]), (chain("t"), [{}], [True])
    assert ended(program, *was) == {"s": [True], "other": [False], "t": [False]}


def test_a_loop_has_ended_when_what_feeds_it_has() -> None:
    edges = [edge("s", "head"), edge("head", "tail"), edge("tail", "head", feedback=True)]
    program = graph(chain("s"), chain("head"), chain("tail"), edges=edges)
    for has in (True, False):
        was = [(chain(each), [{}], [has]) for each in ("s", "head", "tail")]
        assert ended(program, *was) == {"s": [has], "head": [has], "tail": [has]}


def test_what_was_in_flight_goes_to_the_same_subtask_of_the_same_vertex() -> None:
    channel = ChannelStateHandle(0, SubtaskIndex(0), (0, 1), inline_handle(b"x"))
    was = checkpoint((chain("t", parallelism=2), [{}, {}], [False, False], [(channel,), ()]))
    (subtask,) = RestoredOperators(was, graph(chain("t", parallelism=2))).states({VertexId("t")})
    assert subtask.subtask_index == 0
    assert RestoredOperators(was, graph(chain("t", parallelism=3))).states({VertexId("t")}) == {}


def at(watermark_ms: int, input_index: int = 0, producer: int = 0) -> InputWatermark:
    return InputWatermark(input_index, SubtaskIndex(producer), input_index, watermark_ms)


def with_watermarks(parallelism: int, *by_subtask: tuple[InputWatermark, ...]) -> dict[int, tuple[InputWatermark, ...]]:
    """What the subtasks of a vertex restore, if it had these before and has this parallelism now."""
    before = checkpoint(
        (chain("a", parallelism=len(by_subtask)), [{"a": keyed_state(range(0, 1), "a")}] * len(by_subtask))
    )
    ((vertex_id, old),) = before.vertices.items()
    subtasks = {index: replace(state, watermarks=by_subtask[index]) for index, state in old.subtasks.items()}
    before = replace(before, vertices={vertex_id: replace(old, subtasks=subtasks)})
    states = RestoredOperators(before, graph(chain("a", parallelism=parallelism))).states({VertexId("a")})
    return {subtask.subtask_index: state.watermarks for subtask, (state,) in states.items()}


def test_with_the_same_parallelism_each_subtask_is_as_far_as_it_was() -> None:
    first, second = (at(10), at(30, producer=1)), (at(20),)
    assert with_watermarks(2, first, second) == {0: first, 1: second}


@pytest.mark.parametrize("parallelism", [1, 3])
def test_after_a_rescale_event_time_is_that_of_the_slowest_old_subtask(parallelism: int) -> None:
    found = with_watermarks(parallelism, (at(10), at(30, 1)), (at(20), at(25, 1)))
    least = InputWatermark(NO_EDGE, SubtaskIndex(0), 0, 10), InputWatermark(NO_EDGE, SubtaskIndex(0), 1, 25)
    assert set(found.values()) == {least}


def test_after_a_rescale_an_old_subtask_that_knew_nothing_yet_holds_all_back() -> None:
    assert set(with_watermarks(3, (at(10), at(30, 1)), (at(25, 1),)).values()) == {
        (InputWatermark(NO_EDGE, SubtaskIndex(0), 1, 25),)
    }
