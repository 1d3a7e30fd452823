"""Which order holds: the table of docs/order.md, one class a part of it, each line a test."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from understudy import (
    Collector,
    FileSink,
    IdempotentSink,
    KeyedOperator,
    LocalCluster,
    Operator,
    StreamEnvironment,
    ValueState,
)
from understudy.runtime.api.stream import DataStream

from .jobs import WAIT_S, environment

RECORDS = list(range(600))
KEYS = 7
PAGE = Path(__file__).resolve().parents[3] / "docs" / "order.md"


class Tag(Operator):
    """Says which subtask has taken a record, and by which input."""

    def process_batch(self, batch: list[Any], out: Collector) -> None:
        out.emit([(self.context.subtask_index, record) for record in batch])


class TagBoth(Operator):
    inputs = 2

    def process_batch(self, batch: list[Any], out: Collector) -> None:
        out.emit([((self.context.subtask_index, "first"), record) for record in batch])

    def process_batch_2(self, batch: list[Any], out: Collector) -> None:
        out.emit([((self.context.subtask_index, "second"), record) for record in batch])


class Numbered(KeyedOperator):
    """Numbers each key's records, from 0."""

    seen = ValueState(int, default=0)

    def process(self, record: Any, out: Collector) -> None:
        out.collect((self.key, (self.seen.value(), record)))
        self.seen.update(self.seen.value() + 1)


class Rows(IdempotentSink):
    """A file for each subtask, of what it has upserted."""

    key = "key"
    takes = "records"

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def upsert(self, batch: Any) -> None:
        with (self.folder / f"{self.context.subtask_index}").open("a") as file:
            file.writelines(f"{record['n']}\n" for record in batch)


def by_key(number: int) -> int:
    return number % KEYS


def run(
    cluster: LocalCluster, env: StreamEnvironment, stream: DataStream, *, parallelism: int | None = None
) -> list[Any]:
    """The results of the stream, as they are given. `parallelism`: of the sink, the same as that of what it reads."""
    stream.collect(name="out", parallelism=parallelism)
    job = cluster.submit(env)
    job.wait(timeout=WAIT_S)
    return job.results("out")


def told_apart(results: Iterable[tuple[Any, Any]]) -> dict[Any, list[Any]]:
    """By subtask, or key, what it took, in order."""
    found: dict[Any, list[Any]] = defaultdict(list)
    for who, record in results:
        found[who].append(record)
    return dict(found)


@pytest.fixture
def env() -> StreamEnvironment:
    """Small batches, each sent by itself, so that there is something to mix."""
    return StreamEnvironment(batch_rows=10, buffer_timeout_ms=0)


class TestSources:
    def test_a_collection_comes_in_its_order(self, shared_cluster: LocalCluster, env: StreamEnvironment) -> None:
        assert run(shared_cluster, env, env.from_collection(RECORDS)) == RECORDS

    def test_a_collection_is_dealt_out_in_turn(self, shared_cluster: LocalCluster, env: StreamEnvironment) -> None:
        found = run(shared_cluster, env, env.from_collection(RECORDS, parallelism=2).process(Tag))
        assert told_apart(found) == {0: RECORDS[0::2], 1: RECORDS[1::2]}

    def test_a_generator_is_dealt_out_in_turn(self, shared_cluster: LocalCluster, env: StreamEnvironment) -> None:
        found = run(shared_cluster, env, env.generate(lambda index: index, len(RECORDS)).process(Tag))
        assert told_apart(found) == {0: RECORDS[0::2], 1: RECORDS[1::2]}

    def test_files_are_dealt_out_in_splits(
        self, shared_cluster: LocalCluster, env: StreamEnvironment, tmp_path: Path
    ) -> None:
        for name, numbers in (("b", RECORDS[300:]), ("a", RECORDS[:300])):
            pq.write_table(pa.table({"n": numbers}), tmp_path / f"{name}.parquet", row_group_size=100)
        rows = env.from_parquet(str(tmp_path)).map(lambda row: row.n)
        splits = [RECORDS[start : start + 100] for start in range(0, 600, 100)]
        found = told_apart(run(shared_cluster, env, rows.process(Tag)))
        assert found == {0: [*splits[0], *splits[2], *splits[4]], 1: [*splits[1], *splits[3], *splits[5]]}


class TestOperators:
    def test_a_chain_keeps_the_order(self, shared_cluster: LocalCluster, env: StreamEnvironment) -> None:
        doubled = env.from_collection(RECORDS).map(lambda n: 2 * n).filter(lambda n: n % 3).flat_map(lambda n: [n, -n])
        assert run(shared_cluster, env, doubled) == [m for n in RECORDS if 2 * n % 3 for m in (2 * n, -2 * n)]

    def test_a_forward_edge_keeps_the_order(self, shared_cluster: LocalCluster, env: StreamEnvironment) -> None:
        numbers = env.generate(lambda index: index, len(RECORDS))
        found = run(shared_cluster, env, numbers.process(Tag, slot_sharing_group="default", name="tag"))
        assert told_apart(found) == {0: RECORDS[0::2], 1: RECORDS[1::2]}

    def test_a_key_keeps_the_order_of_each_producer(self, shared_cluster: LocalCluster, env: StreamEnvironment) -> None:
        keyed = env.from_collection(RECORDS).key_by(by_key).process(Numbered, parallelism=2)
        found = told_apart(run(shared_cluster, env, keyed))
        assert found == {key: list(enumerate(RECORDS[key::KEYS])) for key in range(KEYS)}

    def test_a_key_mixes_what_two_producers_send(self, shared_cluster: LocalCluster, env: StreamEnvironment) -> None:
        keyed = env.from_collection(RECORDS, parallelism=2).key_by(by_key).process(Numbered)
        for key, numbered in told_apart(run(shared_cluster, env, keyed)).items():
            of_key = [record for _, record in sorted(numbered)]
            for producer in (0, 1):
                assert [n for n in of_key if n % 2 == producer] == [n for n in RECORDS[key::KEYS] if n % 2 == producer]

    def test_rebalance_deals_batches_out_in_turn(self, shared_cluster: LocalCluster, env: StreamEnvironment) -> None:
        found = told_apart(run(shared_cluster, env, env.from_collection(RECORDS).rebalance().process(Tag)))
        assert set(found) == {0, 1}
        assert sorted([*found[0], *found[1]]) == RECORDS
        assert all(part == sorted(part) for part in found.values())

    def test_a_sink_of_rows_keeps_the_order_of_a_key(
        self, shared_cluster: LocalCluster, env: StreamEnvironment, tmp_path: Path
    ) -> None:
        numbers = env.from_collection([{"key": n % KEYS, "n": n} for n in RECORDS])
        numbers.sink_to(Rows(tmp_path), parallelism=2)
        shared_cluster.submit(env).wait(timeout=WAIT_S)
        taken = [[int(line) for line in path.read_text().split()] for path in sorted(tmp_path.iterdir())]
        assert len(taken) == 2
        assert not {n % KEYS for n in taken[0]} & {n % KEYS for n in taken[1]}
        assert all(part == sorted(part) for part in taken)
        assert {*taken[0], *taken[1]} >= set(RECORDS[-KEYS:])

    def test_broadcast_keeps_the_order(self, shared_cluster: LocalCluster, env: StreamEnvironment) -> None:
        found = run(shared_cluster, env, env.from_collection(RECORDS).broadcast().process(Tag))
        assert told_apart(found) == {0: RECORDS, 1: RECORDS}

    def test_union_keeps_the_order_of_each_stream(self, shared_cluster: LocalCluster, env: StreamEnvironment) -> None:
        streams = [env.from_collection([(name, n) for n in RECORDS], name=name) for name in ("a", "b")]
        both = streams[0].union(streams[1])
        assert told_apart(run(shared_cluster, env, both, parallelism=1)) == {"a": RECORDS, "b": RECORDS}

    def test_connect_keeps_the_order_of_each_input(self, shared_cluster: LocalCluster, env: StreamEnvironment) -> None:
        first, second = (env.from_collection(RECORDS, name=name) for name in ("a", "b"))
        tagged = first.connect(second).process(TagBoth, parallelism=1)
        found = told_apart(run(shared_cluster, env, tagged, parallelism=1))
        assert found == {(0, "first"): RECORDS, (0, "second"): RECORDS}


class TestRestarts:
    def test_a_restart_changes_nothing_of_it(self, shared_cluster: LocalCluster, tmp_path: Path) -> None:
        env = environment(batch_rows=10)
        failed = tmp_path / "failed"

        def fail_once(number: int) -> int:
            if number == 400 and not failed.exists():
                failed.touch()
                raise RuntimeError("once")
            return number

        numbers = env.from_collection(RECORDS, records_per_second=1000).map(fail_once)
        keyed = numbers.key_by(by_key).process(Numbered, parallelism=2)
        found = told_apart(run(shared_cluster, env, keyed))
        assert failed.exists()
        assert found == {key: list(enumerate(RECORDS[key::KEYS])) for key in range(KEYS)}


class TestOutput:
    def test_results_come_by_subtask_and_then_in_order(
        self, shared_cluster: LocalCluster, env: StreamEnvironment
    ) -> None:
        found = run(shared_cluster, env, env.from_collection(RECORDS, parallelism=2).process(Tag))
        assert found == [(0, n) for n in RECORDS[0::2]] + [(1, n) for n in RECORDS[1::2]]

    def test_files_are_by_subtask_and_checkpoint(self, shared_cluster: LocalCluster, tmp_path: Path) -> None:
        env = environment(batch_rows=10)
        rows = env.from_collection([{"n": n} for n in RECORDS], records_per_second=3000, parallelism=2)
        rows.sink_to(FileSink(str(tmp_path / "out"), format="parquet"))
        shared_cluster.submit(env).wait(timeout=WAIT_S)
        found = defaultdict(list)
        for path in sorted((tmp_path / "out").glob("*.parquet")):
            numbers = pq.read_table(path)["n"].to_pylist()
            found[numbers[0] % 2].extend(numbers)
        assert found == {0: RECORDS[0::2], 1: RECORDS[1::2]}


def test_the_page_names_every_test_of_this_module() -> None:
    named = set(re.findall(r"`(test_\w+)`", PAGE.read_text()))
    kinds: list[type] = [TestSources, TestOperators, TestRestarts, TestOutput]
    assert {name for kind in kinds for name in vars(kind) if name.startswith("test_")} <= named
