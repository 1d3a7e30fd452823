"""Each test is handed out once, those of a file to one tester, and no tester stands idle while others have a row."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from .shared_out import Group, Queue, grouped


def test_a_tester_keeps_to_a_file() -> None:
    queue = Queue([Group("a", [0, 1]), Group("b", [2, 3]), Group("c", [4])])
    assert [queue.next(tester) for tester in (0, 1, 0, 1, 0)] == [0, 2, 1, 3, 4]


def test_who_has_none_takes_half_of_what_the_busiest_has_before_it() -> None:
    queue = Queue([Group("short", [0]), Group("long", [1, 2, 3, 4, 5])])
    assert [queue.next(0), queue.next(1)] == [0, 1]
    assert [queue.next(tester) for tester in (0, 0, 1, 1)] == [4, 5, 2, 3]
    assert [queue.next(0), queue.next(1)] == [None, None]


def test_what_stays_whole_is_one_testers() -> None:
    queue = Queue([Group("whole", [0, 1, 2], whole=True), Group("other", [3, 4, 5])])
    assert [queue.next(0), queue.next(1), queue.next(2)] == [0, 3, 5]
    assert [queue.next(tester) for tester in (1, 1, 2, 0, 0, 0)] == [4, None, None, 1, 2, None]


def test_what_a_tester_did_not_begin_comes_first_in_the_next_one() -> None:
    queue = Queue([Group("a", [0, 1, 2])])
    assert [queue.next(0), queue.next(0)] == [0, 1]
    queue.put_back(0, 1)
    assert [queue.next(0), queue.next(0)] == [1, 2]


def test_none_comes_once_it_is_closed() -> None:
    queue = Queue([Group("a", [0, 1]), Group("b", [2])])
    assert queue.next(0) == 0
    queue.close()
    queue.put_back(0, 0)
    assert [queue.next(0), queue.next(1)] == [None, None]


@given(sizes=st.lists(st.tuples(st.integers(1, 6), st.booleans())), asking=st.lists(st.integers(0, 3)))
def test_each_is_handed_out_once(sizes: list[tuple[int, bool]], asking: list[int]) -> None:
    names = [(str(group), whole) for group, (size, whole) in enumerate(sizes) for _ in range(size)]
    queue = Queue(grouped((place, *name) for place, name in enumerate(names)))
    found, by_tester = [], {}
    for tester in [*asking, *(each for each in range(4) for _ in range(len(names) + 1))]:
        test = queue.next(tester)
        if test is not None:
            found.append(test)
            by_tester[test] = tester
    assert sorted(found) == list(range(len(names)))
    for group, (_, whole) in enumerate(sizes):
        runners = {by_tester[place] for place, name in enumerate(names) if name[0] == str(group)}
        assert len(runners) == 1 or not whole
