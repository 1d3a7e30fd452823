"""A columnar aggregation from Parquet files gives the exact answer whatever is killed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from understudy import Count, FileSink, LocalCluster, Sum
from understudy.runtime.connectors import FileSource

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
