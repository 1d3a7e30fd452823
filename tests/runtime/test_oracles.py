"""What the oracles say of output: records as a multiset, and of a changelog the rows that it leaves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from understudy.messages.row import row_type
from understudy.runtime.oracles import exactly_once, nothing_extra

Shape = Callable[[str, int, int], Any]
SHAPES: list[Shape] = [
    lambda kind, key, rank: row_type(("kind", "key", "rank"))(kind, key, rank),
    lambda kind, key, rank: {"kind": kind, "key": key, "rank": rank},
    lambda kind, key, rank: (kind, key, [rank]),
]


@pytest.mark.parametrize("change", SHAPES)
def test_of_a_changelog_the_rows_that_are_left_count(change: Shape) -> None:
    wanted = [change("+I", 1, 1), change("-U", 1, 1), change("+U", 1, 2), change("+I", 2, 1)]
    at_once = [change("+I", 2, 1), change("+I", 1, 2)]
    assert exactly_once(at_once, wanted) is None
    assert exactly_once(wanted, at_once) is None
    assert nothing_extra([change("+I", 1, 1)], at_once) is None
    for wrong in (at_once[:1], [*at_once, change("+I", 2, 1)], [*at_once, change("-D", 2, 1)], [*at_once, "text"]):
        assert exactly_once(wrong, wanted) is not None


def test_records_that_only_look_like_changes_are_compared_one_by_one() -> None:
    wanted = [("+I", 1), ("-D", 1), ("no kind", 2)]
    assert exactly_once([("no kind", 2)], wanted) is not None
    assert nothing_extra([("+I", 2)], wanted) is not None
    assert exactly_once([], [("+I", 1)]) is not None
