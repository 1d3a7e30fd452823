"""What the oracles say of output: records as a multiset; of a changelog the rows that it leaves, and has meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from understudy.actors.flow.changelog import Changelog
from understudy.messages.row import row_type
from understudy.runtime.oracles import at_least_once, exactly_once, nothing_extra

Shape = Callable[[str, int, int], Any]
SHAPES: list[Shape] = [
    lambda kind, key, rank: row_type(("kind", "key", "rank"))(kind, key, rank),
    lambda kind, key, rank: {"kind": kind, "key": key, "rank": rank},
    lambda kind, key, rank: (kind, key, [rank]),
]

ONE_AT_ONCE = Changelog(at_once=1)
OUT_OF_ORDER = Changelog(in_order=False)


@pytest.mark.parametrize("change", SHAPES)
@pytest.mark.parametrize("changelog", [ONE_AT_ONCE, Changelog(), OUT_OF_ORDER])
def test_of_a_changelog_the_rows_that_are_left_count(change: Shape, changelog: Changelog) -> None:
    wanted = [change("+I", 1, 1), change("-U", 1, 1), change("+U", 1, 2), change("+I", 2, 1)]
    at_once = [change("+I", 2, 1), change("+I", 1, 2)]
    assert exactly_once(at_once, wanted, changelog) is None
    assert exactly_once(wanted, at_once, changelog) is None
    assert nothing_extra([change("+I", 1, 1)], at_once, changelog) is None
    for wrong in (at_once[:1], [*at_once, change("+I", 2, 1)], [*at_once, change("-D", 2, 1)], [*at_once, "text"]):
        assert exactly_once(wrong, wanted, changelog) is not None


@pytest.mark.parametrize("change", SHAPES)
def test_a_doubled_change_that_is_taken_back_twice_is_seen(change: Shape) -> None:
    """It leaves the right rows."""
    wanted = [change("+I", 1, 1), change("-U", 1, 1), change("+U", 1, 2)]
    doubled = [wanted[0], wanted[0], wanted[1], wanted[1], wanted[2]]
    assert "adds a row that is there 1 times, and may be 1 times" in str(exactly_once(doubled, wanted, ONE_AT_ONCE))
    assert exactly_once(doubled, wanted, OUT_OF_ORDER) is None


@pytest.mark.parametrize("change", SHAPES)
def test_a_change_too_many_of_a_running_job_is_seen(change: Shape) -> None:
    wanted = [change("+I", 1, 1), change("-U", 1, 1), change("+U", 1, 2)]
    assert nothing_extra([wanted[0], wanted[0]], wanted, ONE_AT_ONCE) is not None
    for changelog in (ONE_AT_ONCE, Changelog()):
        assert "takes back a row that is not there" in str(nothing_extra([*wanted[:2], wanted[1]], wanted, changelog))
    for wrong in ([wanted[0], wanted[0]], [*wanted[:2], wanted[1]]):
        assert nothing_extra(wrong, wanted, OUT_OF_ORDER) is None


def test_equal_rows_may_be_there_as_often_as_the_operator_allows_or_the_end_has_them() -> None:
    twice = [("+I", 1), ("+I", 1), ("-D", 1), ("-D", 1), ("+I", 2)]
    assert exactly_once(twice, [("+I", 2)], ONE_AT_ONCE) is not None
    assert exactly_once(twice, [("+I", 2)], Changelog(at_once=2)) is None
    thrice = [("+I", 1), *twice[:2], *twice[2:4], ("-D", 1), ("+I", 2)]
    assert "may be 2 times" in str(exactly_once(thrice, [("+I", 2)], Changelog(at_once=2)))
    assert nothing_extra(thrice, [("+I", 2)], Changelog(at_once=2)) is not None
    assert exactly_once(twice, [("+I", 2)], Changelog()) is None
    assert exactly_once([*twice, ("+I", 2)], [("+I", 2), ("+I", 2)], ONE_AT_ONCE) is None


def test_changes_out_of_order_may_take_a_row_back_before_it_is_added() -> None:
    wanted = [("+I", 1), ("-D", 1), ("+I", 2)]
    assert exactly_once([wanted[1], wanted[2], wanted[0]], wanted, OUT_OF_ORDER) is None
    assert exactly_once([wanted[1], *wanted[1:], wanted[0]], wanted, OUT_OF_ORDER) is not None, "taken back twice"


def test_records_that_only_look_like_changes_are_compared_one_by_one() -> None:
    """Whether they are changes the job knows, and not they themselves."""
    wanted = [("+I", 1), ("-D", 1), ("+I", 2)]
    assert exactly_once([("+I", 2)], wanted) is not None
    assert nothing_extra([("+I", 3)], wanted) is not None
    for changelog in (ONE_AT_ONCE, OUT_OF_ORDER):
        assert exactly_once([("+I", 2)], [*wanted, ("no kind", 2)], changelog) is not None
        assert exactly_once([], [("+I", 1)], changelog) is not None
        assert at_least_once([*wanted, wanted[0]], wanted, changelog) is None


def test_all_nans_are_one() -> None:
    """Each that is read from a file is an object of its own, and equal to no other."""
    assert exactly_once([("a", float("nan")), float("nan")], [("a", float("nan")), float("nan")]) is None
    for change in SHAPES[:2]:
        nans = [change("+I", 1, float("nan")), change("-D", 1, float("nan"))]  # type: ignore[arg-type]
        assert exactly_once(nans, [], ONE_AT_ONCE) is None
