"""The queries of Nexmark give what DuckDB gives, on a whole cluster in one thread, under simulated faults, and when
TaskManagers are killed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("benchmarks.contest", reason="run from the root of the checkout")
pytest.importorskip("numba", reason="some queries are compiled")
pytest.importorskip("duckdb", reason="it computes the right answers")

from benchmarks.nexmark import oracle
from benchmarks.nexmark.comparison import killed_case
from benchmarks.nexmark.dataset import dataset
from benchmarks.nexmark.model import Model
from benchmarks.nexmark.queries import QUERIES
from benchmarks.nexmark.query import Query
from benchmarks.nexmark.streams import generated, stored
from understudy import KeyedOperator, LocalCluster, StreamEnvironment, ValueState
from understudy.testing import assert_exactly_once

Rows = Counter[tuple[Any, ...]]

MODEL = Model(6_000, rate=200, seed=3)
"""30 seconds of event time, three windows of 10 seconds, across a full hour."""
DISORDERED = Model(6_000, rate=200, seed=4, group=40, late_share=0.05, late_ms=2_500)
TINY = Model(400, rate=20, seed=5)


class Latest(KeyedOperator):
    """The last row of each key, at the end."""

    row = ValueState(tuple)

    def process(self, record: Any, out: Any) -> None:
        self.row.update(tuple(record))

    def on_end(self, out: Any) -> None:
        for _ in self.keys():
            out.collect(self.row.value())


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("nexmark")


def wanted(folder: Path, query: Query) -> Rows:
    with oracle.connect(folder) as connection:
        return rows_of(oracle.answer_of(connection, query.name, query.compared))


def rows_of(table: pa.Table) -> Rows:
    batches = [with_numbers(batch) for batch in table.to_batches()]
    return Counter(row for batch in batches for row in zip(*(each.to_pylist() for each in batch.columns), strict=True))


def compared_only(query: Query) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    return lambda batch: with_numbers(batch.select(query.compared))


def with_numbers(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Times as milliseconds, as some jobs give them."""
    kinds = [pa.timestamp("ms") if pa.types.is_timestamp(kind) else kind for kind in batch.schema.types]
    columns = [column.cast(kind) for column, kind in zip(batch.columns, kinds, strict=True)]
    columns = [each.view(pa.int64()) if pa.types.is_timestamp(each.type) else each for each in columns]
    return pa.RecordBatch.from_arrays(columns, batch.schema.names)


def collected(env: StreamEnvironment, query: Query, streams: Any) -> None:
    """End the query in the compared columns of what is left when all updates have been applied."""
    results = query.build(streams).map_batches(compared_only(query))
    if query.key:
        results = results.key_by(*query.key).process(Latest)
    results.collect(name="answer")


def run(query: Query, make: Callable[[StreamEnvironment], Any]) -> Rows:
    env = StreamEnvironment(parallelism=2, checkpoint_interval_ms=50, slow_step_ms=None)
    collected(env, query, make(env))
    with LocalCluster(2, debug=True) as cluster:
        job = cluster.submit(env, name=query.name)
        job.wait()
        return plain(job.results("answer"))


def plain(records: Iterable[Any]) -> Rows:
    return Counter(tuple(record) for record in records)


@pytest.mark.parametrize("query", QUERIES.values(), ids=lambda query: query.name)
def test_it_gives_what_duckdb_gives(query: Query, cache: Path) -> None:
    folder = dataset(cache, MODEL)
    found = run(query, lambda env: stored(env, folder, MODEL))
    assert found == wanted(folder, query)
    assert found, "nothing was compared"


@pytest.mark.parametrize("query", QUERIES.values(), ids=lambda query: query.name)
def test_it_gives_the_same_from_the_generator_out_of_order(query: Query, cache: Path) -> None:
    found = run(query, lambda env: generated(env, DISORDERED))
    assert found == wanted(dataset(cache, DISORDERED), query)


def test_all_queries_have_an_answer() -> None:
    assert set(QUERIES) <= set(oracle.ANSWERS)


@pytest.mark.drawn
@pytest.mark.parametrize("name", ["q5", "q6", "q7", "q9", "q11", "q17", "q18", "q19", "q20"])
def test_it_is_exact_in_simulated_failures(name: str, cache: Path) -> None:
    query = QUERIES[name]

    def build() -> StreamEnvironment:
        env = StreamEnvironment(parallelism=2, checkpoint_interval_ms=200, batch_rows=32)
        collected(env, query, generated(env, TINY))
        return env

    expected = list(wanted(dataset(cache, TINY), query).elements())
    assert_exactly_once(build, expected=expected, histories=3)


@pytest.mark.slow
@pytest.mark.chaos
@pytest.mark.parametrize("query", QUERIES.values(), ids=lambda query: query.name)
def test_it_is_exact_when_task_managers_are_killed(query: Query, cache: Path) -> None:
    told, problems = killed_case(query, Model(1, rate=1_000), kills=2, seed=1, cache=cache)
    assert problems == []
    assert told["killed"] == 2
