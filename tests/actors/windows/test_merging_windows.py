"""MergingWindows: the open sessions of one key. Flink: MergingWindowSetTest."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from understudy import TimeWindow
from understudy.actors.windows.merging_windows import Merge, MergingWindows
from understudy.actors.windows.window import merged

windows = st.builds(lambda start, length: TimeWindow(start, start + length), st.integers(-50, 50), st.integers(1, 20))


def after(*added: TimeWindow) -> MergingWindows:
    open_windows = MergingWindows({})
    for window in added:
        open_windows = open_windows.after(open_windows.with_window(window))
    return open_windows


@given(st.lists(windows, max_size=12))
def test_what_is_open_is_what_merging_all_at_once_gives_in_whatever_order(added: list[TimeWindow]) -> None:
    found = after(*added).slots
    assert sorted(found) == [whole for whole, _ in merged(added)]


@given(st.lists(windows, max_size=12))
def test_no_two_open_windows_share_a_slot_and_slots_are_small(added: list[TimeWindow]) -> None:
    slots = after(*added).slots.values()
    assert len(set(slots)) == len(slots)
    assert all(slot < len(added) for slot in slots)


def test_a_window_within_an_open_one_changes_nothing() -> None:
    assert after(TimeWindow(0, 100)).with_window(TimeWindow(20, 80)) == Merge(TimeWindow(0, 100), 0)


def test_a_bridge_replaces_both_and_the_earlier_slot_stays() -> None:
    late_first = after(TimeWindow(200, 300), TimeWindow(0, 100))
    bridge = late_first.with_window(TimeWindow(100, 200))
    assert bridge == Merge(TimeWindow(0, 300), 1, (TimeWindow(0, 100), TimeWindow(200, 300)), is_new=True)
    assert late_first.slots_of(bridge.replaced) == [1, 0]
    assert late_first.after(bridge).slots == {(0, 300): 1}


def test_a_slot_is_free_again_when_its_window_is_gone() -> None:
    assert MergingWindows({(20, 30): 1}).with_window(TimeWindow(40, 50)).slot == 0
    assert MergingWindows({(20, 30): 0}).with_window(TimeWindow(40, 50)).slot == 1
