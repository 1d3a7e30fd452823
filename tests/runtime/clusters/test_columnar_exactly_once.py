"""A columnar aggregation from Parquet files, and one per window, give the exact answer whatever is killed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from understudy import (
    Count,
    FileSink,
    LocalCluster,
    Max,
    Sum,
    bounded_out_of_orderness,
    session,
    sliding,
    tumbling,
)
from understudy.runtime.connectors import FileSource

from ...state.columnar.window_model import Row, sessions_of, windows_of
from ...state.columnar.window_model import sliding as model_sliding
from ...state.columnar.window_model import tumbling as model_tumbling
from .jobs import WAIT_S, Gate, Gated, Witness, environment

ROWS, KEYS, GROUP_ROWS, RATE = 600_000, 5_000, 20_000, 300_000


class GatedFileSource(Gated, FileSource):
    def __init__(self, gate: Gate, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.gate = gate


Answer = dict[int, tuple[int, int]]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Answer]:
    """A folder of two files, and the count and sum of each key."""
    random = np.random.default_rng(11)
    keys, values = random.integers(0, KEYS, ROWS) ** 2, random.integers(-1000, 1000, ROWS)
    folder = tmp_path_factory.mktemp("rows")
    for half in range(2):
        table = pa.table({"key": keys[half::2], "other": values[half::2] + 1, "value": values[half::2]})
        pq.write_table(table, folder / f"{half}.parquet", row_group_size=GROUP_ROWS)
    answer: Answer = {}
    for key, value in zip(keys.tolist(), values.tolist(), strict=True):
        count, total = answer.get(key, (0, 0))
        answer[key] = (count + 1, total + value)
    return folder, answer


@pytest.fixture(scope="module")
def rows_by_key(rows: tuple[Path, Answer], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Answer]:
    """The same in one file, by key, with a time that rises by row: most keys stay as they are from one checkpoint to
    the next.
    """
    folder, answer = rows
    by_key = tmp_path_factory.mktemp("rows-by-key")
    table = pq.read_table(folder).sort_by("key").append_column("time", pa.array(range(ROWS)))
    pq.write_table(table, by_key / "rows.parquet", row_group_size=GROUP_ROWS)
    return by_key, answer


def last_of_each_key(out: Path) -> tuple[Answer, int]:
    """The row of the highest count of each key, and how many rows there are in all."""
    table = pq.read_table(out).sort_by([("key", "ascending"), ("count", "ascending")])
    columns: list[list[Any]] = [table[name].to_pylist() for name in ("key", "count", "sum")]
    return {key: (count, total) for key, count, total in zip(*columns, strict=True)}, table.num_rows


@pytest.mark.chaos
@pytest.mark.parametrize("emit", ["end", "updates"])
def test_counts_and_sums_are_exact_when_task_managers_are_killed(
    shared_cluster: LocalCluster, rows: tuple[Path, Answer], tmp_path: Path, emit: str
) -> None:
    (folder, answer), out = rows, tmp_path / "out"
    env, gate = environment(), Gate(tmp_path)
    stream = env.from_source(GatedFileSource(gate, str(folder), records_per_second=RATE))
    stream.key_by("key").aggregate(emit, count=Count(), sum=Sum("value")).sink_to(FileSink(str(out)))
    job = shared_cluster.submit(env)
    witness = Witness(job)
    for index in (1, 0):
        witness.checkpoints(2)
        witness.kill(witness.pids(2)[index])
    gate.open()
    assert job.wait(timeout=WAIT_S).restarts == 2
    found, count = last_of_each_key(out)
    assert found == answer
    if emit == "end":
        assert count == len(answer)


@pytest.mark.chaos
def test_counts_and_sums_are_exact_when_checkpoints_are_incremental(
    shared_cluster: LocalCluster, rows_by_key: tuple[Path, Answer], tmp_path: Path
) -> None:
    (folder, answer), out = rows_by_key, tmp_path / "out"
    env, gate = environment(incremental_checkpoints=True), Gate(tmp_path)
    stream = env.from_source(GatedFileSource(gate, str(folder), records_per_second=RATE))
    stream.key_by("key").aggregate("end", count=Count(), sum=Sum("value")).sink_to(FileSink(str(out)))
    job = shared_cluster.submit(env)
    witness = Witness(job)
    for index in (1, 0):
        witness.checkpoints(4)
        witness.kill(witness.pids(2)[index])
    gate.open()
    assert job.wait(timeout=WAIT_S).restarts == 2
    assert last_of_each_key(out)[0] == answer


@pytest.mark.chaos
def test_joins_and_sessions_are_exact_when_their_checkpoints_are_runs(
    shared_cluster: LocalCluster, rows_by_key: tuple[Path, Answer], tmp_path: Path
) -> None:
    (folder, answer), kept = rows_by_key, tmp_path / "checkpoints"
    env, gate = environment(incremental_checkpoints=True, checkpoint_dir=str(kept)), Gate(tmp_path)
    stream = env.from_source(GatedFileSource(gate, str(folder), records_per_second=RATE))
    names = pa.table({"id": list(answer), "name": [f"name {key}" for key in answer]})
    named = env.from_arrow(names).key_by("id")
    stream.key_by("key").join(named, name="joined").sink_to(FileSink(str(tmp_path / "joined")))
    timed = stream.assign_timestamps("time", bounded_out_of_orderness(0)).key_by("key")
    sessions = timed.window(session(ROWS)).aggregate(count=Count(), name="sessions")
    sessions.sink_to(FileSink(str(tmp_path / "sessions")))
    job = shared_cluster.submit(env)
    witness = Witness(job)
    for index in (1, 0):
        witness.checkpoints(4)
        stored = [path.name for path in kept.rglob("shared/*")]
        for operator in ("joined-0", "joined-1", "sessions"):
            assert any(operator in name for name in stored), f"no run of {operator} in {stored}"
        witness.kill(witness.pids(2)[index])
    gate.open()
    assert job.wait(timeout=WAIT_S).restarts == 2
    found = pq.read_table(tmp_path / "joined", columns=["key", "value", "name"])
    assert found["name"].to_pylist() == [f"name {key}" for key in found["key"].to_pylist()]
    totals = found.group_by("key").aggregate([("value", "count"), ("value", "sum")]).to_pylist()
    assert {row["key"]: (row["value_count"], row["value_sum"]) for row in totals} == answer
    counted = pq.read_table(tmp_path / "sessions").to_pylist()
    assert sorted((row["key"], row["count"]) for row in counted) == sorted((key, n) for key, (n, _) in answer.items())


@pytest.fixture(scope="module")
def timed_rows(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Row]]:
    """A folder of a file in which times rise but for 2 s, and all rows."""
    random = np.random.default_rng(12)
    keys, values = random.integers(0, 500, ROWS), random.integers(-1000, 1000, ROWS)
    times = np.arange(ROWS) // 2 - random.integers(0, 2_000, ROWS)
    folder = tmp_path_factory.mktemp("timed-rows")
    table = pa.table({"key": keys, "value": values, "time": times})
    pq.write_table(table, folder / "rows.parquet", row_group_size=GROUP_ROWS)
    rows = zip(map(str, keys.tolist()), values.tolist(), times.tolist(), strict=True)
    return folder, [Row(*row) for row in rows]


WINDOWS: dict[str, tuple[Any, Any]] = {
    "tumbling": (tumbling(10_000), lambda rows: windows_of(rows, model_tumbling(10_000))),
    "sliding": (sliding(20_000, 10_000), lambda rows: windows_of(rows, model_sliding(20_000, 10_000))),
    "session": (session(300), lambda rows: sessions_of(rows, 300)),
}


@pytest.mark.chaos
@pytest.mark.parametrize("kind", WINDOWS)
def test_windows_are_exact_when_task_managers_are_killed(
    shared_cluster: LocalCluster, timed_rows: tuple[Path, list[Row]], tmp_path: Path, kind: str
) -> None:
    (folder, rows), out, (assigner, by_definition) = timed_rows, tmp_path / "out", WINDOWS[kind]
    env, gate = environment(), Gate(tmp_path)
    stream = env.from_source(GatedFileSource(gate, str(folder), records_per_second=RATE))
    keyed = stream.assign_timestamps("time", bounded_out_of_orderness(2_000)).key_by("key")
    counted = keyed.window(assigner).aggregate(rows=Count(), total=Sum("value"), most=Max("value"))
    counted.sink_to(FileSink(str(out)))
    job = shared_cluster.submit(env)
    witness = Witness(job)
    for index in (1, 0):
        witness.checkpoints(2)
        witness.kill(witness.pids(2)[index])
    gate.open()
    assert job.wait(timeout=WAIT_S).restarts == 2
    found = pq.read_table(out)
    columns = [found[name].to_pylist() for name in found.schema.names]
    columns[0] = list(map(str, columns[0]))
    assert sorted(zip(*columns, strict=True)) == sorted(by_definition(rows))
