"""Loops in a program: what is refused while it is written, and what delta iterations take for a change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from understudy import (
    DataStream,
    DuplicateName,
    InvalidOperator,
    InvalidProgram,
    InvalidSetting,
    JobFailed,
    KeyedOperator,
    StreamEnvironment,
    Sum,
    monotonous,
    tumbling,
)
from understudy.testing import SimulatedCluster


def numbers(env: StreamEnvironment | None = None) -> DataStream:
    return (env or StreamEnvironment()).from_collection([1, 2, 3])


def rows() -> DataStream:
    return StreamEnvironment().from_collection([{"k": 0, "v": 1}])


def forever() -> DataStream:
    return StreamEnvironment().generate(lambda index: index)


def never(_: Any) -> bool:
    return False


def smaller(known: Any, candidate: Any) -> Any:
    return candidate if candidate < known else None


def forgets(loop: Any) -> None:
    loop.map(str)


def yields(loop: Any) -> Iterator[Any]:
    yield loop


def inner(loop: Any) -> tuple[Any, Any]:
    return loop.filter(never), loop


def round_two(loop: Any, other: Any) -> tuple[Any, Any]:
    """The operator that both go through is in a second loop, which begins with another stream."""

    def step(second: Any) -> tuple[Any, Any]:
        both = second.union(loop).map(abs)
        return both.filter(never), both

    return inner(other.iterate(step))


@pytest.mark.parametrize(
    ("loop", "error", "said"),
    [
        (
            lambda s: s.iterate(forgets),
            InvalidOperator,
            r"^iterate: .*returns nothing .*: return two streams; is a `ret",
        ),
        (
            lambda s: s.bulk_iterate(forgets, max_rounds=2),
            InvalidOperator,
            "nothing.*: return the stream of the next ro",
        ),
        (lambda s: s.iterate(lambda loop: (loop, None)[1]), InvalidProgram, "two streams, .*found None: is a `return`"),
        (
            lambda s: s.iterate(lambda loop: loop.filter(never)),
            InvalidProgram,
            "^iterate: wanted .* found a DataStream$",
        ),
        (
            lambda s: s.iterate(lambda loop: [*inner(loop)]),
            InvalidProgram,
            "found a list of 2 values: DataStream, DataS",
        ),
        (
            lambda s: s.iterate(lambda loop: (loop,) * 3),
            InvalidProgram,
            "found 3 values: DataStream, DataStream, DataS",
        ),
        (
            lambda s: s.iterate(lambda loop: (loop.print(), loop)),
            InvalidProgram,
            "found a DataStreamSink: a sink ends a",
        ),
        (
            lambda s: s.bulk_iterate(lambda loop: loop.key_by(str).window(tumbling(1)), max_rounds=2),
            InvalidProgram,
            r"found a WindowedStream: say what becomes of a window, as by \.aggregate\(",
        ),
        (lambda s: s.iterate(yields), InvalidOperator, "is a generator .*: return two streams"),
        (lambda s: s.iterate(lambda loop: (loop, loop)), InvalidProgram, "would go round without end: send back those"),
        (
            lambda s: s.iterate(lambda loop: (s, loop)),
            InvalidProgram,
            "of 'collection-source-1', does not come from the",
        ),
        (
            lambda s: s.iterate(lambda loop: (loop.filter(never), s)),
            InvalidProgram,
            "what leaves the loop, the stream of",
        ),
        (lambda s: s.iterate(lambda: 1), InvalidOperator, r"is called with 1 argument, \(loop\), and takes \(\)"),
        (
            lambda s: s.bulk_iterate(lambda loop, number: loop, max_rounds=2),
            InvalidOperator,
            r"^bulk_iterate: .* is called with 1 argument, \(loop\), and takes \(loop, number\): missing .*'number'$",
        ),
        (
            lambda s: s.bulk_iterate(lambda loop: loop),
            TypeError,
            r"max_rounds is missing: write bulk_iterate\(step, max_",
        ),
        (lambda s: s.bulk_iterate(lambda loop: loop, max_rounds=0), InvalidSetting, "integer of at least 1, found 0"),
        (
            lambda s: s.bulk_iterate(lambda loop: (loop, never), max_rounds=2),
            InvalidProgram,
            r"wanted the second that .*, the criterion, to be a stream .* moved\.filter\(is_far\), found a function",
        ),
        (
            lambda s: s.iterate(lambda loop: round_two(loop, s)),
            InvalidProgram,
            "'map-1' is inside the loop of 'iterate-1' and inside that of 'iterate-2': .* put one loop behind the",
        ),
        (
            lambda s: s.iterate(lambda loop: inner(loop.iterate(inner))),
            InvalidProgram,
            "the loop of 'iterate-1' has another loop in it, of 'iterate-2'",
        ),
        (
            lambda s: s.iterate(inner, name="loop").iterate(inner, name="loop"),
            DuplicateName,
            "'loop' is taken by another operator",
        ),
        (
            lambda s: s.bulk_iterate(lambda loop: loop.assign_timestamps(int, monotonous()), max_rounds=2),
            InvalidProgram,
            "'assign-timestamps-1' assigns event times inside the loop of 'bulk-iterate-1', where the event time of a",
        ),
        (
            lambda _: forever().bulk_iterate(lambda loop: loop, max_rounds=2),
            InvalidProgram,
            "records of 'generator-source-1' have no end, .*: for a loop in a stream without end call iterate$",
        ),
        (
            lambda _: rows().bulk_iterate(lambda loop: loop.key_by("k").aggregate(v=Sum("v")), max_rounds=2),
            InvalidProgram,
            r"'aggregate-1', .* emits when the loop has ended. .* write \.window\(tumbling\(1\)\) before \.aggregate\(",
        ),
        (
            lambda s: s.delta_iterate(lambda loop: loop, key=str),
            TypeError,
            r"improve is missing: write delta_iterate\(",
        ),
        (
            lambda s: s.delta_iterate(lambda loop: loop, key=str, improve=lambda known: known),
            InvalidOperator,
            r"^improve: .* is called with 2 arguments, \(known, candidate\), and takes \(known\): too many",
        ),
        (
            lambda s: s.delta_iterate(lambda loop: loop, key=str, improve=smaller, workset=[1]),
            InvalidProgram,
            "^delta_iterate: wanted workset to be a stream, found a list of 1 values: int$",
        ),
        (
            lambda s: s.delta_iterate(lambda loop: (loop, loop), key=str, improve=smaller),
            InvalidProgram,
            "found 2 values: DataStream, DataStream$",
        ),
    ],
)
def test_a_loop_that_cannot_be_is_refused_where_it_is_written(
    loop: Callable[[DataStream], Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        loop(numbers())


JOINS: dict[str, Callable[[Any, Any], Any]] = {
    "interval": lambda loop, other: loop.interval_join(other, 0, 1),
    "temporal": lambda loop, other: loop.temporal_join(other),
    "window": lambda loop, other: loop.window_join(other, tumbling(1)),
    "a TTL": lambda loop, other: loop.join(other, ttl_ms=5, ttl_time="event"),
    "groups": lambda loop, other: other.co_group(loop, tumbling(1), lambda key, window, left, right, out: None),
}


@pytest.mark.parametrize("has_columns", [False, True], ids=["records", "columns"])
@pytest.mark.parametrize("join", JOINS)
def test_a_join_by_time_with_what_is_outside_of_rounds_is_refused(join: str, has_columns: bool) -> None:
    """All its records belong to the first round, so the rounds behind it would find nothing."""
    env = StreamEnvironment()
    table = pa.table({"page": [0, 1]})
    pages = env.from_arrow(table) if has_columns else env.from_collection(table.to_pylist())
    links = env.from_arrow(table, name="links") if has_columns else env.from_collection([{"page": 0}], name="links")
    timed = links.assign_timestamps("page", monotonous(), name="timed")
    said = "^bulk_iterate: '.*' joins by event time inside the loop of 'ranks', .* and 'timed' is from outside: write"
    with pytest.raises(InvalidProgram, match=said):
        pages.bulk_iterate(
            lambda loop: JOINS[join](loop.key_by("page"), timed.key_by("page")), max_rounds=2, name="ranks"
        )


@pytest.mark.parametrize("no", [False, np.False_])
def test_a_criterion_of_truths_ends_the_job_with_what_to_write(no: Any) -> None:
    """A record that says no would be one more that comes: the loop would never end before `max_rounds`."""
    env = StreamEnvironment(parallelism=1)
    halved = env.from_collection([8.0]).bulk_iterate(
        lambda loop: (loop.map(lambda number: number / 2), loop.map(lambda number: number > 2 or no)), max_rounds=50
    )
    halved.collect(name="halved")
    with SimulatedCluster(task_managers=1) as cluster, pytest.raises(JobFailed) as failed:
        cluster.submit(env).wait()
    assert "the criterion of the loop got the record False: it goes on as long as any record comes" in str(failed.value)


def kept(known: Any, candidate: Any) -> Any:
    return min(known, candidate, key=lambda row: row["label"])


def made_again(known: Any, candidate: Any) -> Any:
    return {**known, "label": min(known["label"], candidate["label"])}


def in_place(known: Any, candidate: Any) -> Any:
    known["label"] = min(known["label"], candidate["label"])
    return known


def nothing_else(known: Any, candidate: Any) -> Any:
    return candidate if candidate["label"] < known["label"] else None


@pytest.mark.parametrize("improve", [kept, made_again, in_place, nothing_else])
def test_a_record_that_equals_the_known_one_changes_nothing(improve: Callable[[Any, Any], Any]) -> None:
    """Labels go round a ring of three: 0 reaches 1 in the first round, 2 in the second, and is back in the third."""
    env = StreamEnvironment(parallelism=1)
    labels = env.from_collection([{"vertex": vertex, "label": vertex} for vertex in range(3)])

    def step(changed: Any) -> Any:
        changed.map(lambda row: (row["vertex"], row["label"])).collect(name="changed")
        return changed.map(lambda row: {**row, "vertex": (row["vertex"] + 1) % 3})

    found = labels.delta_iterate(step, key="vertex", improve=improve, max_rounds=9)
    found.map(lambda row: (row["vertex"], row["label"])).collect(name="found")
    with SimulatedCluster(task_managers=1) as cluster:
        job = cluster.submit(env)
        job.wait()
        assert sorted(job.results("found")) == [(0, 0), (1, 0), (2, 0)]
        assert sorted(job.results("changed")) == [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2)]


def test_an_improve_that_puts_both_together_gets_each_candidate_once() -> None:
    """A candidate of an earlier round is part of what is known, and none of this round."""
    env = StreamEnvironment(parallelism=1)
    found = env.from_collection([("a", 0)]).delta_iterate(
        lambda changed: changed.flat_map(lambda record: [(record[0], 1), (record[0], 10)]),
        key=0,
        improve=lambda known, candidate: (known[0], known[1] + candidate[1]),
        max_rounds=3,
    )
    found.collect(name="found")
    with SimulatedCluster(task_managers=1) as cluster:
        job = cluster.submit(env)
        job.wait()
        assert job.results("found") == [("a", 33)]


@dataclass(eq=False)
class Plain:
    """Of a class that does not say what is equal."""

    label: int


def test_the_known_record_itself_changes_nothing_though_its_class_does_not_compare() -> None:
    env = StreamEnvironment(parallelism=1)
    start = env.from_collection([1]).map(Plain)

    def step(changed: Any) -> Any:
        changed.map(lambda each: each.label).collect(name="changed")
        return changed.map(lambda each: Plain(each.label + 1))

    found = start.delta_iterate(step, key=lambda _: 0, improve=lambda known, _: known, max_rounds=5)
    found.map(lambda each: each.label).collect(name="found")
    with SimulatedCluster(task_managers=1) as cluster:
        job = cluster.submit(env)
        job.wait()
        assert (job.results("found"), job.results("changed")) == ([1], [1])


def test_an_improve_that_says_whether_ends_the_job_with_what_to_return() -> None:
    env = StreamEnvironment(parallelism=1)
    found = env.from_collection([3, 5]).delta_iterate(
        lambda changed: changed.map(lambda number: number - 1),
        key=lambda _: 0,
        improve=lambda known, candidate: candidate < known,
    )
    found.collect(name="found")
    with SimulatedCluster(task_managers=1) as cluster, pytest.raises(JobFailed) as failed:
        cluster.submit(env).wait()
    assert "improve of a delta iteration returned False: wanted the record that is to be known" in str(failed.value)


class EmitsAtEnd(KeyedOperator):
    def process(self, record: Any, out: Any) -> None:
        pass

    def on_end(self, out: Any) -> None:
        out.collect(1)


def test_a_record_that_is_sent_back_when_the_loop_is_over_is_an_error_with_a_public_name() -> None:
    env = StreamEnvironment(parallelism=1, max_same_failures=1)
    loop = numbers(env).bulk_iterate(lambda loop: loop.key_by(abs).process(EmitsAtEnd), max_rounds=2)
    loop.collect(name="out")
    with SimulatedCluster(task_managers=1) as cluster, pytest.raises(JobFailed, match="LoopIsOver: loop 'bulk-iter"):
        cluster.submit(env).wait()
