"""Tables of lakes are exact when TaskManagers are killed, and when jobs go on with another parallelism."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from understudy import LocalCluster, StreamEnvironment

from ..connectors.lakes.lake import SCHEMA, DeltaLake, IcebergLake, Lake, rows
from .jobs import WAIT_S, Gate, Witness, counted, counting, counts_of, environment, eventually

COUNT, RATE = 3000, 1500
COUNTS = pa.schema([("key", pa.int64()), ("number", pa.int64()), ("index", pa.int64())])
KINDS = pytest.mark.parametrize("make", [DeltaLake, IcebergLake])
StartCluster = Callable[..., LocalCluster]


@pytest.fixture(autouse=True)
def _readers_end() -> Iterator[None]:
    """The threads that PyIceberg reads with in this process."""
    yield
    from pyiceberg.utils.concurrent import ExecutorFactory

    executor, ExecutorFactory._instance = ExecutorFactory._instance, None
    if executor is not None:
        executor.shutdown()


@pytest.mark.chaos
@KINDS
def test_a_table_is_exact_when_task_managers_are_killed(
    shared_cluster: LocalCluster, tmp_path: Path, make: Callable[[Path], Lake]
) -> None:
    lake, gate = make(tmp_path / "lake"), Gate(tmp_path)
    env = environment()
    counting(env, COUNT, RATE, gate=gate).sink_to(lake.sink(schema=COUNTS, partition_by="key"), name="out")
    job = shared_cluster.submit(env)
    witness = Witness(job)
    for _ in range(2):
        witness.checkpoints(2)
        witness.kill(random.choice(list(witness.pids(2).values())))
    gate.open()
    assert job.wait(timeout=WAIT_S).restarts >= 1
    assert counts_of(lake.read().to_pylist()) == counted(COUNT)


@pytest.mark.chaos
@pytest.mark.slow
@KINDS
def test_a_table_is_exact_after_many_kills(
    start_cluster: StartCluster, tmp_path: Path, make: Callable[[Path], Lake]
) -> None:
    lake, gate = make(tmp_path / "lake"), Gate(tmp_path)
    env = environment()
    counting(env, 12_000, 1500, gate=gate).sink_to(lake.sink(schema=COUNTS, evolve=True), name="out")
    job = start_cluster(3).submit(env)
    witness = Witness(job)
    for _ in range(10):
        witness.checkpoints(random.randint(0, 2))
        witness.kill(random.choice(list(witness.pids(1).values())))
    gate.open()
    job.wait(timeout=WAIT_S)
    assert counts_of(lake.read().to_pylist()) == counted(12_000)


@pytest.mark.chaos
@pytest.mark.slow
@KINDS
def test_files_are_in_a_table_once_after_fifty_kills(
    start_cluster: StartCluster, tmp_path: Path, make: Callable[[Path], Lake]
) -> None:
    lake, folder, count = make(tmp_path / "lake"), tmp_path / "files", 60_000
    folder.mkdir()
    for part in range(6):
        lines = (json.dumps(row) for row in rows(range(part, count, 6)))
        (folder / f"{part}.jsonl").write_text("\n".join(lines))
    env = environment()
    stream = env.from_jsonl(str(folder), records_per_second=500, schema=SCHEMA)
    stream.sink_to(lake.sink(schema=SCHEMA), name="out")
    job = start_cluster(3).submit(env)
    witness = Witness(job)
    for number in range(50):
        witness.checkpoints(random.randint(0, 2))
        witness.kill(random.choice(list(witness.pids(1).values())))
        print(f"{number + 1} kills, {job.status}")
    job.wait(timeout=4 * WAIT_S)
    assert lake.keys() == list(range(count))


def copying(env: StreamEnvironment, of: Lake, into: Lake) -> StreamEnvironment:
    env.from_source(of.source(watch_ms=50)).sink_to(into.sink(), name="copy")
    return env


@pytest.mark.chaos
@pytest.mark.parametrize("make", [DeltaLake, pytest.param(IcebergLake, marks=pytest.mark.slow)])
def test_a_table_that_is_followed_is_read_once_through_a_kill_and_a_rescale(
    shared_cluster: LocalCluster, tmp_path: Path, make: Callable[[Path], Lake]
) -> None:
    """From a table of either format to one of Delta."""
    of, into = make(tmp_path / "from"), DeltaLake(tmp_path / "to")
    of.make()
    into.make()
    settings = {"checkpoint_dir": str(tmp_path / "checkpoints"), "batch_rows": 3}
    job = shared_cluster.submit(copying(environment(parallelism=2, **settings), of, into))
    witness = Witness(job)
    written = write(of, 0, 5)
    witness.checkpoints(1)
    witness.kill(random.choice(list(witness.pids(2).values())))
    written += write(of, len(written), 5)
    eventually(lambda: set(into.keys()) >= set(written), "the rows before the savepoint")
    written += write(of, len(written), 5)
    savepoint = job.stop_with_savepoint().result(timeout=WAIT_S)
    job.wait(timeout=WAIT_S)
    written += write(of, len(written), 5)
    after = shared_cluster.submit(copying(environment(parallelism=1, **settings), of, into), from_savepoint=savepoint)
    eventually(lambda: set(into.keys()) >= set(written), "the rows behind the savepoint")
    after.stop().result()
    after.wait(timeout=WAIT_S)
    assert Counter(into.keys()) == Counter(written)


def write(lake: Lake, first: int, versions: int) -> list[int]:
    """Ten rows each."""
    for start in range(first, first + 10 * versions, 10):
        lake.append(rows(range(start, start + 10)))
    return list(range(first, first + 10 * versions))
