"""What is in the database is exact, whatever is killed: TaskManagers, and the server itself."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from understudy import DeltaSink, FileSink, LocalCluster, Operator
from understudy.runtime.connectors import GeneratorSource

from ....systems.kafka import KafkaBroker
from ....systems.postgresql import PostgreSQL
from ...clusters.jobs import WAIT_S, eventually, visible_files
from ..kafka.topics import put
from . import clusters
from .clusters import Killer, environment
from .databases import asked

pytestmark = [pytest.mark.processes, pytest.mark.chaos]

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])


def rows(start: int, number: int) -> pa.RecordBatch:
    ids = range(start, start + number)
    return pa.RecordBatch.from_arrays([pa.array(ids), pa.array([f"row {i}" for i in ids])], schema=SCHEMA)


@pytest.fixture(autouse=True, scope="module")
def _by_value(request: pytest.FixtureRequest) -> Iterator[None]:
    for module in (request.module, clusters):
        cloudpickle.register_pickle_by_value(module)
    yield
    for module in (request.module, clusters):
        cloudpickle.unregister_pickle_by_value(module)


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(2, heartbeat_interval_ms=200) as started:
        yield started


def appended(cluster: LocalCluster, url: str, count: int, rate: float) -> Any:
    asked(url, "CREATE TABLE t (id bigint, text text)")  # no key: nothing but the ledger keeps it exact
    env = environment()
    source = GeneratorSource(rows, count, rate, schema=SCHEMA)
    env.from_source(source, parallelism=2).to_sql(url, "t")
    return cluster.submit(env)


def assert_appended(url: str, count: int) -> None:
    ((found,),) = asked(url, "SELECT array[count(*), count(DISTINCT id), min(id), max(id)] FROM t")
    assert found == [count, count, 0, count - 1]


def test_appended_rows_are_exact_when_task_managers_and_the_server_are_killed(
    cluster: LocalCluster, postgresql: PostgreSQL, pg_url: str
) -> None:
    job = appended(cluster, pg_url, 20_000, 5000)
    killer = Killer(job)
    killer.checkpoints(2)
    killer.kill(2)
    postgresql.kill()
    postgresql.start()
    killer.kill()
    job.wait(timeout=WAIT_S)
    assert_appended(pg_url, 20_000)


@pytest.mark.slow
def test_appended_rows_are_exact_after_fifty_kills(cluster: LocalCluster, postgresql: PostgreSQL, pg_url: str) -> None:
    job = appended(cluster, pg_url, 200_000, 1000)
    killer = Killer(job)
    for number in range(50):
        if number % 10 == 9:
            postgresql.kill()
            postgresql.start()
        else:
            killer.kill()
    job.wait(timeout=10 * WAIT_S)
    assert_appended(pg_url, 200_000)


class Writer(threading.Thread):
    """Changes a table without pause, in transactions of several rows, until it is told to end; through all crashes."""

    def __init__(self, url: str, seed: int) -> None:
        super().__init__(name="writer", daemon=True)
        self._url, self._over = url, threading.Event()
        self._chance = random.Random(seed)
        self.transactions = 0

    def run(self) -> None:
        while not self._over.is_set():
            try:
                with psycopg.connect(self._url, connect_timeout=5) as connection:
                    while not self._over.wait(0.001):
                        with connection.transaction():
                            self._change(connection)
                        self.transactions += 1
            except psycopg.OperationalError:
                self._over.wait(0.05)

    def _change(self, connection: psycopg.Connection[Any]) -> None:
        chance = self._chance
        for _ in range(chance.randint(1, 4)):
            key = chance.randint(0, 3000)
            match chance.randint(0, 3):
                case 0:
                    connection.execute("DELETE FROM t WHERE id = %s", [key])
                case 1:
                    connection.execute(
                        "UPDATE t SET id = %s WHERE id = %s AND NOT EXISTS (SELECT FROM t WHERE id = %s)",
                        [key + 5000, key, key + 5000],
                    )
                case _:
                    connection.execute("INSERT INTO t VALUES (%s, 1) ON CONFLICT (id) DO UPDATE SET n = t.n + 1", [key])

    def end(self) -> int:
        self._over.set()
        self.join()
        return self.transactions


def place_of(change: dict[str, Any]) -> tuple[bool, int, int, bool]:
    """What was there first, then by commit; of an update the old row first."""
    place = change["commit_place"]
    return place is not None, change["commit_lsn"], place or 0, change["kind"] == "+U"


def replayed(changes: list[dict[str, Any]]) -> dict[int, int]:
    """The table that the changes make. Each must fit what is there: else one was lost, doubled or out of order."""
    table: dict[int, int] = {}
    for change in sorted(changes, key=place_of):
        match change["kind"]:
            case "+I":
                assert change["id"] not in table, f"there already: {change}"
                table[change["id"]] = change["n"]
            case "-D" | "-U":
                assert change["id"] in table, f"not there: {change}"
                del table[change["id"]]
            case "+U":
                if change["id"] in table:
                    assert change["n"] == table[change["id"]] + 1, f"of {table[change['id']]}: {change}"
                table[change["id"]] = change["n"]
    return table


class Files:
    def __init__(self, folder: Path) -> None:
        self._folder = folder / "out"

    def sink(self, _: pa.Schema | None) -> Operator:
        return FileSink(str(self._folder))

    def read(self) -> list[dict[str, Any]]:
        return [row for path in visible_files(self._folder) for row in pq.read_table(path).to_pylist()]


class Table:
    """Of Delta."""

    def __init__(self, folder: Path) -> None:
        self._path = str(folder / "table")

    def sink(self, schema: pa.Schema | None) -> Operator:
        return DeltaSink(self._path, schema=schema)

    def read(self) -> list[dict[str, Any]]:
        return DeltaTable(self._path).to_pyarrow_table().to_pylist() if DeltaTable.is_deltatable(self._path) else []


def followed(
    cluster: LocalCluster, postgresql: PostgreSQL, url: str, into: Files | Table, kills: int, server_kills: int
) -> None:
    asked(
        url, "CREATE TABLE t (id int PRIMARY KEY, n int)", "INSERT INTO t SELECT i, 1 FROM generate_series(1, 2000) i"
    )
    writer = Writer(url, clusters.SEED)
    writer.start()
    env = environment()
    changes = env.from_postgres_changes(url, "t", slot=url.rpartition("/")[2])
    changes.sink_to(into.sink(changes.schema), parallelism=1)
    job = cluster.submit(env)
    killer = Killer(job)
    for number in range(kills):
        killer.kill()
        if number == 1:
            eventually(lambda: into.read(), "the first changes")
        if number < server_kills:
            postgresql.kill()
            postgresql.start()
    killer.checkpoints(1)
    transactions = writer.end()
    ((end,),) = asked(url, "SELECT pg_current_wal_lsn()::text")
    slots = "SELECT 1 FROM pg_replication_slots WHERE slot_name = current_database()"
    confirmed = f"{slots} AND confirmed_flush_lsn >= '{end}'"
    eventually(lambda: asked(url, confirmed), "the last change to be confirmed")
    job.stop()
    job.wait(timeout=WAIT_S)  # a ledger's batch is applied when its checkpoint has completed, and was confirmed
    found = into.read()
    assert replayed(found) == dict(asked(url, "SELECT id, n FROM t"))
    assert transactions
    places = Counter(
        (row["commit_lsn"], row["commit_place"], row["kind"]) for row in found if row["commit_place"] is not None
    )
    assert set(places.values()) == {1}
    print(f"{kills} kills, {server_kills} of the server, {transactions} transactions, {len(found)} changes")


def test_changes_in_files_are_exact_when_task_managers_and_the_server_are_killed(
    cluster: LocalCluster, postgresql: PostgreSQL, pg_url: str, tmp_path: Path
) -> None:
    followed(cluster, postgresql, pg_url, Files(tmp_path), kills=3, server_kills=1)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Files, Table])
def test_changes_are_exact_after_fifty_kills(
    cluster: LocalCluster, postgresql: PostgreSQL, pg_url: str, tmp_path: Path, kind: type[Files | Table]
) -> None:
    followed(cluster, postgresql, pg_url, kind(tmp_path), kills=50, server_kills=5)


@pytest.mark.slow
def test_records_of_kafka_are_in_a_table_once_after_fifty_kills(
    cluster: LocalCluster, kafka: KafkaBroker, postgresql: PostgreSQL, pg_url: str
) -> None:
    """Three of the kills are the server's."""
    asked(pg_url, "CREATE TABLE t (id bigint, text text)")
    topic, env = kafka.create_topic(4), environment()
    env.from_kafka(topic, kafka.bootstrap, schema=SCHEMA, parallelism=2).to_sql(pg_url, "t")
    job = cluster.submit(env)
    killer, given = Killer(job), 0
    for number in range(50):
        put(kafka, topic, rows(given, 1000).to_pylist())
        given += 1000
        killer.kill()
        if number % 20 == 9:
            postgresql.kill()
            postgresql.start()
    eventually(lambda: asked(pg_url, "SELECT count(*) FROM t") >= [(given,)], "the last rows")
    job.stop()
    job.wait(timeout=WAIT_S)
    assert_appended(pg_url, given)
