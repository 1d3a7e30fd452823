"""Changelogs under trial: which sinks get changes, and that one too many is seen, though the right rows are left."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pytest

from understudy import FileSink, StreamEnvironment, bounded_out_of_orderness, tumbling
from understudy.actors.flow.changelog import Changelog
from understudy.runtime.api.stream import KeyedStream
from understudy.runtime.connectors import CollectSink
from understudy.runtime.simulation.trials.changelogs import OUT_OF_ORDER, changelogs_of
from understudy.testing import Rescale, assert_exactly_once

COUNT, KEYS = 40, 5
ROWS = [{"key": n % KEYS, "at": n * 100 - n % 4 * 150, "n": n * 7 % 30} for n in range(COUNT)]
NAMES = [{"key": n % (KEYS + 1), "name": f"name {n}"} for n in range(COUNT // 4)]


def environment() -> StreamEnvironment:
    return StreamEnvironment(parallelism=2, checkpoint_interval_ms=500)


def rows(env: StreamEnvironment) -> KeyedStream:
    """With columns that are known."""
    numbered = env.generate(lambda start, count: pa.RecordBatch.from_pylist(ROWS[start : start + count]), COUNT)
    return numbered.assign_timestamps("at", bounded_out_of_orderness(400)).key_by("key")


def records(env: StreamEnvironment) -> KeyedStream:
    """Without."""
    return env.from_collection(ROWS).key_by(lambda row: row["key"])


def names(env: StreamEnvironment, *, columns: bool) -> KeyedStream:
    if not columns:
        return env.from_collection(NAMES).key_by(lambda row: row["key"])
    return env.generate(
        lambda start, count: pa.RecordBatch.from_pylist(NAMES[start : start + count]), len(NAMES)
    ).key_by("key")


def build(*, columns: bool) -> StreamEnvironment:
    """Each kind of changelog."""
    env = environment()
    keyed = rows(env) if columns else records(env)
    keyed.join(names(env, columns=columns), "full").collect(name="joined")
    keyed.top_n(2, by="n").collect(name="ranked")
    keyed.top_n(3, by="n", rank=None).collect(name="unranked")
    keyed.deduplicate("last").collect(name="last")
    return env


def retracting() -> StreamEnvironment:
    env = environment()
    windows = rows(env).window(tumbling(ms=1_000)).allowed_lateness(ms=1_000).retracting()
    windows.reduce(lambda one, other: {"key": one["key"], "n": one["n"] + other["n"]}).collect(name="sums")
    return env


def ranked_rows(env: StreamEnvironment) -> None:
    rows(env).top_n(2, by="n").sink_to(FileSink("sim://out", "jsonl"), name="out")


def unranked_rows(env: StreamEnvironment) -> None:
    rows(env).top_n(2, by="n", rank=None).collect(name="out")


def ranked_records(env: StreamEnvironment) -> None:
    records(env).top_n(2, by="n").collect(name="out")


def last_records(env: StreamEnvironment) -> None:
    records(env).deduplicate("last").collect(name="out")


def outer_join_of_rows(env: StreamEnvironment) -> None:
    rows(env).join(names(env, columns=True), "right").collect(name="out")


def outer_join_of_records(env: StreamEnvironment) -> None:
    records(env).join(names(env, columns=False), "left").collect(name="out")


def inner_join(env: StreamEnvironment) -> None:
    rows(env).join(names(env, columns=True)).collect(name="out")


def one_subtask(env: StreamEnvironment) -> None:
    rows(env).top_n(2, by="n").collect(name="out", parallelism=1)


def mapped(env: StreamEnvironment) -> None:
    records(env).top_n(2, by="n").map(lambda change: change[:2]).collect(name="out")


def unioned(env: StreamEnvironment) -> None:
    """A row of one may be that of the other."""
    one, other = (records(env).top_n(2, by="n") for _ in range(2))
    one.union(other).collect(name="out")


def rebalanced(env: StreamEnvironment) -> None:
    records(env).top_n(2, by="n").rebalance().collect(name="out")


@pytest.mark.parametrize(
    ("add", "wanted"),
    [
        (ranked_rows, {"out": Changelog(at_once=1)}),
        (unranked_rows, {"out": Changelog(at_once=2)}),
        (ranked_records, {"out": Changelog(at_once=1)}),
        (last_records, {"out": Changelog(at_once=1)}),
        (outer_join_of_rows, {"out": Changelog(at_once=1)}),
        (outer_join_of_records, {"out": Changelog(at_once=1)}),
        (inner_join, {}),
        (one_subtask, {"out": OUT_OF_ORDER}),
        (mapped, {"out": OUT_OF_ORDER}),
        (unioned, {"out": OUT_OF_ORDER}),
        (rebalanced, {"out": OUT_OF_ORDER}),
    ],
)
def test_the_graph_knows_which_sinks_get_changes(
    add: Callable[[StreamEnvironment], None], wanted: Mapping[str, Changelog]
) -> None:
    env = environment()
    add(env)
    assert changelogs_of(env.graph.nodes) == wanted


def test_windows_that_retract_give_a_changelog() -> None:
    assert changelogs_of(retracting().graph.nodes) == {"sums": Changelog()}


@pytest.mark.drawn
@pytest.mark.parametrize("columns", [True, False])
def test_changelogs_survive_faults_and_rescales(*, columns: bool) -> None:
    def job() -> StreamEnvironment:
        return build(columns=columns)

    assert_exactly_once(job, histories=2)
    assert_exactly_once(job, histories=1, actions=[Rescale(1_200, 3), Rescale(2_600, 1)])


@pytest.mark.drawn
def test_retractions_survive_faults_and_rescales() -> None:
    assert_exactly_once(retracting, histories=1)
    assert_exactly_once(retracting, histories=1, actions=[Rescale(1_200, 3)])


class Doubling(CollectSink):
    """Writes each change of a row that does not stay twice."""

    def write(self, transaction: Any, batch: Any) -> None:
        for change in batch:
            times = 1 if change[1]["n"] == COUNT - 1 else 2
            super().write(transaction, [change] * times)


def test_what_is_written_twice_and_taken_back_twice_is_too_much() -> None:
    def job() -> StreamEnvironment:
        env = environment()
        numbers = env.from_collection([{"key": 0, "n": n} for n in range(COUNT)])
        numbers.key_by("key").deduplicate("last").sink_to(Doubling("sim://doubled"), name="out")
        return env

    with pytest.raises(
        AssertionError, match=r"exactly-once: sink 'out' has committed change 2 of \d+, '\+I', adds a row"
    ):
        assert_exactly_once(job, histories=1)
