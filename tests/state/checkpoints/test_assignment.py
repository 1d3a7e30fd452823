"""Redistribution on rescale: what holds for any state. Flink's own cases are played in tests/conformance."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.messages import (
    NO_EDGE,
    InputWatermark,
    KeyedStateHandle,
    OperatorId,
    OperatorSubtaskState,
    SubtaskIndex,
    SubtaskState,
)
from understudy.state.checkpoints.assignment import assign_state, assign_watermarks, cut_handle, redistribute_lists
from understudy.state.handle_bytes import inline_handle
from understudy.state.keys.key_groups import key_group_range

from ...conformance.key_groups import list_handle, named

OP = OperatorId("op")


@given(
    old=st.lists(st.lists(st.integers(0, 5), max_size=3), min_size=1, max_size=5),
    parallelism=st.integers(1, 7),
)
def test_splitting_keeps_every_item_once_in_order_and_is_balanced(old: list[list[int]], parallelism: int) -> None:
    """`old[subtask][state]` is how many items that subtask holds of that state."""
    handles = [
        tuple(list_handle(f"s{state}", list(range(count)), file=f"f{index}") for state, count in enumerate(counts))
        for index, counts in enumerate(old)
    ]
    shares = [named(share) for share in redistribute_lists(handles, parallelism)]
    everything = Counter((name, item) for share in shares for name, items in share.items() for item in items)
    assert everything == Counter(
        (f"s{state}@f{index}", item)
        for index, counts in enumerate(old)
        for state, count in enumerate(counts)
        for item in range(count)
    )
    if len(old) != parallelism:
        for state in range(3):
            sizes = [sum(len(v) for name, v in share.items() if name.startswith(f"s{state}@")) for share in shares]
            assert max(sizes) - min(sizes) <= 1


def test_the_longer_runs_of_several_states_do_not_all_land_on_subtask_0() -> None:
    """RoundRobinOperatorStateRepartitioner.repartitionSplitState."""
    shares = redistribute_lists([(list_handle("a", [0]), list_handle("b", [0]), list_handle("c", [0, 1]))], 3)
    assert [named(share) for share in shares] == [{"a@f0": [0], "c@f0": [1]}, {"b@f0": [0]}, {"c@f0": [0]}]


def keyed(first: int, last: int) -> KeyedStateHandle:
    offsets: dict[int, tuple[int, ...]] = {group: (group, 1) for group in range(first, last + 1)}
    return KeyedStateHandle(first, last, {-1: (999, 5)} | offsets, inline_handle(b""), "memory")


def test_a_cut_keeps_its_key_groups_and_the_header() -> None:
    cut = cut_handle(keyed(3, 9), range(5, 20))
    assert cut is not None
    assert (cut.first_key_group, cut.last_key_group) == (5, 9)
    assert set(cut.offsets) == {-1, 5, 6, 7, 8, 9}
    inner = cut_handle(keyed(3, 9), range(5, 8))
    assert inner is not None
    assert (inner.first_key_group, inner.last_key_group) == (5, 7)
    assert set(inner.offsets) == {-1, 5, 6, 7}
    assert cut_handle(keyed(3, 9), range(10, 20)) is None
    whole = keyed(3, 9)
    assert cut_handle(whole, range(10)) is whole


def vertex(parallelism: int, max_parallelism: int) -> dict[SubtaskIndex, SubtaskState]:
    ranges = [key_group_range(max_parallelism, parallelism, index) for index in range(parallelism)]
    return {
        SubtaskIndex(index): SubtaskState({OP: OperatorSubtaskState((keyed(*own),))})
        for index, own in enumerate(ranges)
    }


@given(old=st.integers(1, 12), new=st.integers(1, 12))
def test_every_key_group_is_restored_by_its_owner_and_by_nobody_else(old: int, new: int) -> None:
    assigned = assign_state(vertex(old, 12), old, new, 12)
    groups = [
        sorted(group for handle in state.operators[OP].keyed for group in handle.offsets if group >= 0)
        for state in assigned
        if state is not None
    ]
    assert [group for own in groups for group in own] == list(range(12))
    assert len(groups) == new


def test_an_unchanged_parallelism_changes_nothing() -> None:
    subtasks = vertex(3, 12)
    assert assign_state(subtasks, 3, 3, 12) == list(subtasks.values())


def test_a_subtask_without_state_gets_none() -> None:
    assert assign_state({}, 2, 3, 12) == [None, None, None]
    assert assign_state({SubtaskIndex(1): vertex(2, 12)[SubtaskIndex(1)]}, 2, 2, 12)[0] is None


@pytest.mark.parametrize("new", [1, 2, 3])
def test_data_has_ended_for_new_subtasks_if_it_had_for_all_old_ones(new: int) -> None:
    ended, running = SubtaskState({}, data_ended=True), SubtaskState({})
    both = {SubtaskIndex(0): ended, SubtaskIndex(1): ended}
    assert assign_state(both, 2, new, 12) == [ended] * new
    if new != 2:
        assert assign_state({**both, SubtaskIndex(1): running}, 2, new, 12) == [None] * new


def event_time(*watermarks_ms: int | None) -> tuple[InputWatermark, ...]:
    """How far one subtask was, by input; None: nothing is known of this one."""
    return tuple(
        InputWatermark(NO_EDGE, SubtaskIndex(0), index, watermark_ms)
        for index, watermark_ms in enumerate(watermarks_ms)
        if watermark_ms is not None
    )


@pytest.mark.parametrize("new", [1, 3])
@pytest.mark.parametrize(
    ("old", "wanted"),
    [
        ([event_time(5, 40), event_time(30, 7)], event_time(5, 7)),
        ([event_time(5, 40), event_time(3)], event_time(3)),
        ([event_time(5), event_time(None, 7)], ()),
        ([event_time(5, 7), ()], ()),
    ],
)
def test_after_a_rescale_an_input_is_as_far_as_in_the_slowest_subtask_and_nowhere_if_one_knew_nothing_of_it(
    old: list[tuple[InputWatermark, ...]], wanted: tuple[InputWatermark, ...], new: int
) -> None:
    """An input that is too far ahead would make records late that were in time."""
    assert assign_watermarks(old, new) == [wanted] * new
    assert assign_watermarks(old, 2) == old


def test_event_time_is_dealt_out_to_subtasks_that_have_no_state_too() -> None:
    old = {SubtaskIndex(index): SubtaskState({}, watermarks=event_time(at)) for index, at in enumerate((5, 3))}
    assert assign_state(old, 2, 2, 12) == list(old.values())
    assert assign_state(old, 2, 3, 12) == [old[SubtaskIndex(1)]] * 3


def test_a_subtask_keeps_its_own_broadcast_list_and_one_without_any_gets_another_ones() -> None:
    """Lists differ where barriers have overtaken what the list is made of, which is in flight then."""
    own = [(list_handle("rules", [index], "broadcast", f"f{index}"),) for index in range(3)]
    assert [named(share) for share in redistribute_lists(own, 3)] == [
        {f"rules@f{index}": [index]} for index in range(3)
    ]
    assert [named(share) for share in redistribute_lists([(), *own[1:]], 3)] == [
        {"rules@f1": [1]},
        {"rules@f1": [1]},
        {"rules@f2": [2]},
    ]
