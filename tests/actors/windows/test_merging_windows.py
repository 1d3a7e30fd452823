"""MergingWindows: the open sessions of one key. Flink: MergingWindowSetTest."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy import TimeWindow
from understudy.actors.windows import merging_windows
from understudy.actors.windows.merging_windows import FEW, Merge, MergingWindows, OpenWindows
from understudy.actors.windows.window import merged

windows = st.builds(lambda start, length: TimeWindow(start, start + length), st.integers(-200, 200), st.integers(1, 20))


def after(*added: TimeWindow) -> MergingWindows:
    open_windows = MergingWindows({})
    for window in added:
        open_windows.take(open_windows.with_window(window))
    return open_windows


@pytest.fixture(params=[0, 3, FEW], autouse=True)
def _few(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are found by their order from the first on, from the fourth on, or as they are in a job."""
    monkeypatch.setattr(merging_windows, "FEW", request.param)


@given(st.lists(windows, max_size=30))
def test_what_is_open_is_what_merging_all_at_once_gives_in_whatever_order(added: list[TimeWindow]) -> None:
    found = after(*added).slots
    assert sorted(found) == [whole for whole, _ in merged(added)]


@given(st.lists(windows, max_size=30))
def test_no_two_open_windows_share_a_slot_and_slots_are_small(added: list[TimeWindow]) -> None:
    slots = after(*added).slots.values()
    assert len(set(slots)) == len(slots)
    assert all(slot < len(added) for slot in slots)


@given(st.lists(st.one_of(windows, st.integers(0, 30)), max_size=40))
def test_windows_kept_beside_the_state_are_those_of_the_state(script: list[TimeWindow | int]) -> None:
    """A number closes the open window of this place; what is kept may be given up and read again at any time."""
    state: dict[Any, int] = {}
    kept = OpenWindows()
    for step in script:
        if isinstance(step, TimeWindow):
            merge = kept.of("ann", state.items).with_window(step)
            assert merge == MergingWindows(dict(state)).with_window(step)
            kept.of("ann", state.items).take(merge)
            if merge.is_new:
                state = {span: slot for span, slot in state.items() if span not in merge.replaced}
                state[tuple(merge.window)] = merge.slot
        elif state:
            closed = sorted(state)[step % len(state)]
            del state[closed]
            kept.close("ann", closed)


def test_a_window_is_found_among_many_without_a_look_at_each() -> None:
    open_windows = after(*(TimeWindow(_Compared(start), _Compared(start + 5)) for start in range(0, 10_000, 10)))
    assert len(open_windows.slots) == 1_000
    _Compared.times = 0
    open_windows.with_window(TimeWindow(_Compared(5_002), _Compared(5_007)))
    open_windows.take(open_windows.with_window(TimeWindow(_Compared(20_000), _Compared(20_005))))
    assert _Compared.times < 100


class _Compared(int):
    times: ClassVar[int] = 0

    def __lt__(self, other: int) -> bool:
        _Compared.times += 1
        return super().__lt__(other)

    def __le__(self, other: int) -> bool:
        _Compared.times += 1
        return super().__le__(other)


def test_a_crowded_key_is_read_once() -> None:
    state = {(start, start + 5): slot for slot, start in enumerate(range(0, 1_000, 10))}
    reads = []
    kept = OpenWindows()
    for start in range(1_000, 2_000, 10):
        found = kept.of("ann", lambda: reads.append(1) or state.items())  # type: ignore[func-returns-value]
        found.take(found.with_window(TimeWindow(start, start + 5)))
    assert len(reads) == 1


def test_a_window_within_an_open_one_changes_nothing() -> None:
    assert after(TimeWindow(0, 100)).with_window(TimeWindow(20, 80)) == Merge(TimeWindow(0, 100), 0)


def test_a_bridge_replaces_both_and_the_earlier_slot_stays() -> None:
    late_first = after(TimeWindow(200, 300), TimeWindow(0, 100))
    bridge = late_first.with_window(TimeWindow(100, 200))
    assert bridge == Merge(TimeWindow(0, 300), 1, (TimeWindow(0, 100), TimeWindow(200, 300)), is_new=True)
    assert late_first.slots_of(bridge.replaced) == [1, 0]
    late_first.take(bridge)
    assert late_first.slots == {(0, 300): 1}


def test_a_slot_is_free_again_when_its_window_is_gone() -> None:
    assert MergingWindows({(20, 30): 1}).with_window(TimeWindow(40, 50)).slot == 0
    assert MergingWindows({(20, 30): 0}).with_window(TimeWindow(40, 50)).slot == 1
