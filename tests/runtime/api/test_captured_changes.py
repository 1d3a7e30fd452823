"""A function that changes a variable of the program changes a copy: whoever submits it is warned."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from understudy import Collector, KeyedOperator, LocalCluster, StreamEnvironment
from understudy.runtime.api.captured_changes import changes, warn_of_captured_changes

seen: list[Any] = []
counts: dict[Any, int] = {}
tally: Counter[Any] = Counter()
total = 0
numbers = itertools.count()
stats = SimpleNamespace(records=0)


def appends(record: Any) -> Any:
    seen.append(record)
    return record


def counts_up(record: Any) -> None:
    counts[record] = counts.get(record, 0) + 1


def adds_in_place(record: Any) -> None:
    tally[record["key"]] += 1


def assigns(record: Any) -> None:
    global total
    total += record


def sets_an_attribute(record: Any) -> None:
    stats.records = record


def in_a_branch(record: Any) -> None:
    for each in range(3):
        if each:
            counts[each, record] = len([one + 1 for one in range(each)])


def takes_the_next(record: Any) -> Any:
    return record, next(numbers)


def takes_the_next_of_its_own(record: Any) -> Any:
    return next(iter(record)), next(each for each in seen)


def replaces_a_part(record: Any) -> None:
    seen[1:2] = [record]


def replaces_all(record: Any) -> None:
    seen[:] = []


def adds_to_a_part(record: Any) -> None:
    seen[1:] += [record]


def by_a_key_of_a_comprehension(record: Any) -> None:
    counts[",".join([each for each in record if each])] = {each: len(each) for each in record}


def by_a_key_of_a_condition(record: Any) -> None:
    counts[record["a"] if record else 0] = 1


def by_a_key_with_a_default(record: Any) -> None:
    counts[record or 0] += 1


def changes_one_of_two(record: Any) -> None:
    (counts if record else record)["a"] = 1


def deletes(record: Any) -> None:
    del counts[record]


def within(record: Any) -> None:
    def inner() -> None:
        seen.extend([record])

    inner()


def closure() -> Callable[[Any], None]:
    own: set[Any] = set()

    def adds(record: Any) -> None:
        own.add(record)

    return adds


def changes_a_default(record: Any, memo: list[Any] = []) -> Any:  # noqa: B006 - on purpose
    memo.append(record)
    return len(memo)


def changes_a_default_by_name(record: Any, *, memo: dict[Any, int] = {}) -> None:  # noqa: B006 - on purpose
    memo[record] = 1


def takes_the_next_of_a_default(record: Any, ids: Any = itertools.count()) -> Any:  # noqa: B008 - on purpose
    return record, next(ids)


def changes_what_takes_the_place_of_a_default(record: Any, memo: list[Any] = []) -> Any:  # noqa: B006 - it stays empty
    memo = list(memo)
    memo.append(record)
    return memo


def has_a_local_of_a_defaults_name(record: Any, memo: list[Any] = []) -> Any:  # noqa: B006 - it stays empty
    return [(lambda memo: memo.append(1))(each) for each in record], len(memo)


def reads(record: Any) -> Any:
    time.sleep(0)
    return counts[record], counts.get(record), [each for each in seen if each], sorted(tally)


def changes_its_own(record: Any) -> Any:
    mine: list[Any] = []
    total = 0

    def count() -> None:
        nonlocal total
        total += 1

    mine.append(record)
    record["seen"] = True
    record.update(key=1)
    copy = seen[:]
    copy.append(1)
    count()
    return mine, total


@pytest.mark.parametrize(
    ("function", "found"),
    [
        (appends, "the list 'seen'"),
        (lambda record: (seen.append(record), record)[1], "the list 'seen'"),
        (counts_up, "the dict 'counts'"),
        (adds_in_place, "the Counter 'tally'"),
        (assigns, "the variable 'total'"),
        (sets_an_attribute, "the SimpleNamespace 'stats'"),
        (in_a_branch, "the dict 'counts'"),
        (takes_the_next, "the count 'numbers'"),
        (takes_the_next_of_its_own, None),
        (replaces_a_part, "the list 'seen'"),
        (replaces_all, "the list 'seen'"),
        (adds_to_a_part, "the list 'seen'"),
        (by_a_key_of_a_comprehension, "the dict 'counts'"),
        (by_a_key_of_a_condition, "the dict 'counts'"),
        (by_a_key_with_a_default, "the dict 'counts'"),
        (changes_one_of_two, "the dict 'counts'"),
        (deletes, "the dict 'counts'"),
        (within, "the list 'seen'"),
        (closure(), "the set 'own'"),
        (changes_a_default, "the default list 'memo'"),
        (changes_a_default_by_name, "the default dict 'memo'"),
        (takes_the_next_of_a_default, "the default count 'ids'"),
        (changes_what_takes_the_place_of_a_default, None),
        (has_a_local_of_a_defaults_name, None),
        (reads, None),
        (changes_its_own, None),
    ],
)
def test_changes_are_found_in_the_code(function: Any, found: str | None) -> None:
    assert [each.what for each in changes(function)] == ([] if found is None else [found])


def test_who_submits_such_a_function_is_warned_once(caplog: pytest.LogCaptureFixture) -> None:
    noted: list[int] = []

    def remember(record: int) -> int:
        noted.append(record)
        return record

    class Remembers(KeyedOperator):
        def process(self, record: Any, out: Collector) -> None:
            noted.append(record)

    for _ in range(2):
        env = StreamEnvironment()
        env.from_collection([1, 2]).map(remember).key_by(lambda record: record).process(Remembers).collect(name="out")
        with LocalCluster(debug=True) as cluster:
            cluster.submit(env).wait()
    assert noted == [], "as the warning says"
    warned = [record.getMessage() for record in caplog.records if "of your program" in record.getMessage()]
    assert [text.partition(" of your")[0] for text in warned] == [
        "operator 'map-1': remember changes the list 'noted'",
        "operator 'remembers-1': process changes the list 'noted'",
    ]
    assert all(f"({__file__}:" in text for text in warned)


def test_functions_of_modules_may_keep_what_they_like(caplog: pytest.LogCaptureFixture) -> None:
    env = StreamEnvironment()
    env.from_collection([1, 2]).map(appends).collect(name="out")
    with LocalCluster(debug=True) as cluster:
        cluster.submit(env).wait()
    assert "of your program" not in caplog.text


class Kept:
    """State in an object that is called, or whose method is."""

    def __init__(self) -> None:
        self.calls, self.by_key = 0, dict[Any, int]()
        self.names: list[str] = []

    def __call__(self, record: Any) -> Any:
        self.by_key[record] = 1
        return record

    def counts(self, record: Any) -> Any:
        self.calls += 1
        return record

    def appends(self, record: Any) -> Any:
        self.names.append(record)
        return record

    def reads(self, record: Any) -> Any:
        return self.by_key.get(record, self.calls), len(self.names), [*self.names, record]


@pytest.mark.parametrize(
    ("function", "what"),
    [
        (Kept(), "__call__ changes the dict 'self.by_key'"),
        (Kept().counts, "counts changes the Kept 'self'"),
        (Kept().appends, "appends changes the list 'self.names'"),
        (Kept().reads, ""),
    ],
)
def test_state_in_an_object_is_that_of_a_copy(function: Any, what: str, caplog: pytest.LogCaptureFixture) -> None:
    env = StreamEnvironment()
    mapped = env.from_collection([1]).map(function, name="work")
    (operator,) = (node.operator for node in env.graph.nodes if node.name == "work")
    del mapped
    warn_of_captured_changes("work", operator)
    said = caplog.messages
    assert [f"operator 'work': {what} of your program" in each for each in said] == [True] * bool(what)
