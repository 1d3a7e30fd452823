"""Which cursors are places in an outlet, and up to where an outlet is what a reader has seen."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.messages import OutletBranch
from understudy.state.outlets.lineage import CursorForked, NoCursorOfThis, OutletLineage, contiguous

JOB, OTHER = "aa", "bb"


def lineage(*starts: tuple[str, int, int], outlet: str = "alerts-1f") -> OutletLineage:
    """Of branches (job, attempt number, first); the attempt's fingerprint follows from the two."""
    return OutletLineage(outlet, tuple(OutletBranch(job, number, f"{job}{number}", at) for job, number, at in starts))


def common(of: OutletLineage, cursor: str, end: int) -> int:
    with pytest.raises(CursorForked) as caught:
        of.locate(cursor, end)
    return caught.value.common


def test_a_cursor_stays_good_over_restarts_and_jobs() -> None:
    first = lineage((JOB, 0, 0))
    cursor = first.cursor(30)
    assert first.locate(cursor, 30) == 30
    assert lineage((JOB, 0, 0), (JOB, 1, 30)).locate(cursor, 30) == 30
    assert lineage((JOB, 0, 0), (JOB, 1, 40), (OTHER, 0, 90)).locate(cursor, 200) == 30


def test_cursors_sort_as_their_positions() -> None:
    of = lineage((JOB, 0, 0), (JOB, 1, 30), (OTHER, 0, 90))
    cursors = [of.cursor(position) for position in (1, 9, 10, 30, 31, 90, 91, 1000)]
    assert cursors == sorted(cursors)


def test_a_cursor_behind_the_end_of_its_branch_has_what_is_before_that_in_common() -> None:
    """The attempt had committed up to 50, and its successor went back to 40."""
    cursor = lineage((JOB, 0, 0)).cursor(50)
    assert common(lineage((JOB, 0, 0), (JOB, 1, 40)), cursor, 70) == 40


def test_a_cursor_of_a_branch_that_a_restore_has_left_out() -> None:
    """Attempt 2 began at 90 and wrote up to 130; attempt 3 was restored from a checkpoint that ends at 85."""
    cursor = lineage((JOB, 0, 0), (JOB, 1, 50), (JOB, 2, 90)).cursor(130)
    assert common(lineage((JOB, 0, 0), (JOB, 1, 50), (JOB, 3, 85)), cursor, 85) == 85
    assert common(lineage((JOB, 0, 0), (JOB, 1, 50), (JOB, 3, 95)), cursor, 100) == 90


def test_a_cursor_of_a_job_that_went_on_after_the_savepoint() -> None:
    """The savepoint of attempt 1 ends at 80; another job goes on from it, and so does the first, with attempts 1, 2."""
    successor = lineage((JOB, 0, 0), (JOB, 1, 50), (OTHER, 0, 80))
    assert common(successor, lineage((JOB, 0, 0), (JOB, 1, 50)).cursor(95), 80) == 80
    assert common(successor, lineage((JOB, 0, 0), (JOB, 1, 50), (JOB, 2, 100)).cursor(120), 300) == 80


def test_a_cursor_of_a_job_that_is_unknown_here_has_nothing_in_common() -> None:
    assert common(lineage((JOB, 0, 0)), lineage((JOB, 0, 0), (OTHER, 0, 10)).cursor(20), 40) == 0


@pytest.mark.parametrize("text", ["", "12", "alerts-1f@12", "\N{SNOWMAN}", "alerts-1f@0000000000000012.0.aa.x.aa"])
def test_what_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(NoCursorOfThis, match="no cursor"):
        lineage((JOB, 0, 0)).locate(text, 50)


@given(st.data())
def test_a_cursor_that_was_damaged_is_none(data: st.DataObject) -> None:
    """Cut off, grown, or with another character: what it says of other records would be wrong."""
    of = lineage((JOB, 0, 0), (JOB, 1, 30))
    cursor = of.cursor(40)
    at = data.draw(st.integers(0, len(cursor) - 1))
    other = data.draw(st.sampled_from("0123456789abcdef.@-z\N{ARABIC-INDIC DIGIT FOUR}"))
    changed = cursor[:at] + other + cursor[at + 1 :]
    for damaged in (cursor[:at], cursor[at + 1 :], cursor + other, cursor[:at] + other + cursor[at:], changed):
        if damaged != cursor:
            with pytest.raises(NoCursorOfThis):
                of.locate(damaged, 50)


def test_a_cursor_has_at_most_a_hundred_characters_more_than_the_name() -> None:
    """docs/service.md says so: who stores it wants to know."""
    most = 10**16 - 1
    branch = OutletBranch("f" * 16, 2**31, "f" * 16, most - 1)
    cursor = OutletLineage(f"{'n' * 40}-{'f' * 8}", (branch,)).cursor(most)
    assert len(cursor) <= 40 + 100


def test_a_cursor_of_another_outlet_is_refused() -> None:
    with pytest.raises(NoCursorOfThis, match="of outlet 'clicks-2e'"):
        lineage((JOB, 0, 0)).locate(lineage((JOB, 0, 0), outlet="clicks-2e").cursor(3), 50)


def test_branches_without_a_record_are_left_out() -> None:
    of = lineage((JOB, 0, 0), (JOB, 1, 50), (JOB, 2, 50)).continued(JOB, 3, "cc", 50)
    assert [branch.attempt_number for branch in of.branches] == [0, 3]


@given(st.lists(st.integers(0, 30), min_size=1, max_size=6), st.data())
def test_each_position_belongs_to_one_branch(lengths: list[int], data: st.DataObject) -> None:
    starts = [sum(lengths[:index]) for index in range(len(lengths))]
    of = lineage(*((JOB, number, start) for number, start in enumerate(starts)))
    position = data.draw(st.integers(0, sum(lengths)))
    owners = [branch for branch in of.branches if of.owns(branch, position)]
    assert len(owners) == 1
    assert of.locate(of.cursor(position), max(position, starts[-1])) == position


@given(st.lists(st.booleans(), max_size=8))
def test_what_lies_before_a_gap_is_cut_off(there: list[bool]) -> None:
    pieces = [(index, index + 1) for index, is_there in enumerate(there) if is_there]
    kept = pieces[contiguous(pieces, len(there)) :]
    assert kept == [(index, index + 1) for index in range(len(there)) if all(there[index:])]
