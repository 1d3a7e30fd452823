"""IndexShare: every index once, whatever the subtasks have taken between changes of their number."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.messages import pack_plain, unpack_plain
from understudy.runtime.connectors import OffsetMismatch
from understudy.runtime.connectors.index_share import IndexShare

TAKES = st.lists(st.tuples(st.integers(0, 5), st.integers(1, 9)), max_size=12)
"""(which subtask, at most how many)"""


def take_all(shares: list[IndexShare], limit: int) -> list[int]:
    taken = []
    for share in shares:
        while (found := share.take(1000, limit)) is not None:
            taken += found
    return taken


def restored(shares: list[IndexShare], parallelism: int, width: int) -> list[IndexShare]:
    plains = [unpack_plain(pack_plain(share.to_plain())) for share in shares]
    if parallelism == len(shares):
        return [IndexShare.from_plain(plain, parallelism) for plain in plains]
    return [IndexShare.dealt_out(plains, subtask, parallelism, width) for subtask in range(parallelism)]


@given(
    stages=st.lists(st.tuples(st.integers(1, 6), st.integers(1, 4), st.integers(0, 70), TAKES), min_size=1, max_size=6),
    adjacent=st.booleans(),
)
def test_every_index_is_taken_once_through_any_parallelisms_widths_and_limits(
    stages: list[tuple[int, int, int, Any]], adjacent: bool
) -> None:
    """A limit may grow and shrink: what lies above it waits."""
    shares: list[IndexShare] = []
    seen: list[int] = []
    for parallelism, width, limit, takes in stages:
        if shares:
            shares = restored(shares, parallelism, width)
        else:
            shares = [IndexShare.fresh(subtask, parallelism, width) for subtask in range(parallelism)]
        furthest: dict[str, int] = {}
        in_order = [not share.goes_back for share in shares]
        names = [name for share in shares for name in share.names]
        assert len(set(names)) == len(names)
        for subtask, most in takes:
            found = shares[subtask % parallelism].take(most, limit, adjacent=adjacent)
            assert found is None or (0 < len(found) <= most and found[-1] < limit)
            assert not adjacent or found is None or found.step == 1 or len(found) == 1
            if found is not None:
                share = shares[subtask % parallelism]
                run = "all" + str(subtask % parallelism) if in_order[subtask % parallelism] else share.taken_of
                assert found[0] > furthest.get(run, -1), "indexes of one run ascend"
                furthest[run] = found[-1]
            seen += found or ()
    seen += take_all(shares, 80)
    assert Counter(seen) == Counter(range(max(80, max(seen, default=0) + 1)))


@given(ahead=st.integers(0, 10**9), parallelism=st.integers(1, 6))
def test_a_subtask_that_is_far_behind_costs_a_few_numbers_and_its_work_is_shared(ahead: int, parallelism: int) -> None:
    plains = [IndexShare.fresh(0, 2).to_plain(), {**IndexShare.fresh(1, 2).to_plain(), "next": 1 + 2 * ahead}]
    shares = [IndexShare.dealt_out(plains, subtask, parallelism).to_plain() for subtask in range(parallelism)]
    lengths = [sum(len(range(*run[:3])) for run in share["left"]) for share in shares]
    assert sum(lengths) == ahead + 1
    assert max(lengths) - min(lengths) <= 1
    assert sum(len(share["left"]) for share in shares) <= parallelism + 1


def test_a_share_of_another_parallelism_is_no_offset() -> None:
    with pytest.raises(OffsetMismatch, match="parallelism 2 and means nothing to one of 3"):
        IndexShare.from_plain(IndexShare.fresh(0, 2, 5).to_plain(), 3)


def test_shares_that_were_not_dealt_out_together_are_refused() -> None:
    with pytest.raises(OffsetMismatch, match="do not belong together"):
        IndexShare.dealt_out([IndexShare.fresh(0, 2).to_plain(), IndexShare.fresh(1, 3).to_plain()], 0, 1)
