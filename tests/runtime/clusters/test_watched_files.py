"""Files that come while the job runs are read once each, when TaskManagers are killed and the job goes on from a
savepoint with another parallelism."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from understudy import FileSink, LocalCluster, StreamEnvironment

from .jobs import WAIT_S, Witness, environment, eventually, read_records, visible_files

ROWS = 50


class Folder:
    """What somebody else writes into."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows = 0
        path.mkdir()

    def write(self, files: int) -> None:
        for _ in range(files):
            numbers = range(self.rows, self.rows + ROWS)
            hidden = self.path / f".{self.rows}.parquet"
            pq.write_table(pa.table({"n": numbers}), hidden, row_group_size=20)
            hidden.rename(self.path / hidden.name[1:])
            self.rows += ROWS


def job_on(env: StreamEnvironment, folder: Folder, out: Path) -> StreamEnvironment:
    files = env.from_parquet(str(folder.path), watch_ms=50, settle_ms=0, schema=pa.schema([("n", pa.int64())]))
    files.sink_to(FileSink(str(out), "jsonl"), name="out")
    return env


def found(out: Path) -> Counter[int]:
    return Counter(record["n"] for path in visible_files(out) for record in read_records(path, "jsonl"))


def has_all(out: Path, folder: Folder) -> bool:
    return set(found(out)) >= set(range(folder.rows))


@pytest.mark.chaos
def test_each_file_is_read_once_through_kills_and_a_savepoint(shared_cluster: LocalCluster, tmp_path: Path) -> None:
    folder, out = Folder(tmp_path / "in"), tmp_path / "out"
    settings = {"checkpoint_dir": str(tmp_path / "checkpoints"), "batch_rows": 7}
    job = shared_cluster.submit(job_on(environment(parallelism=2, **settings), folder, out))
    witness = Witness(job)
    for _ in range(2):
        folder.write(5)
        eventually(lambda: found(out), "the first records")
        folder.write(5)
        witness.kill(random.choice(list(witness.pids(2).values())))
        eventually(lambda: has_all(out, folder), "what was written")
    folder.write(5)
    savepoint = job.stop_with_savepoint().result(timeout=WAIT_S)
    assert job.wait(timeout=WAIT_S).restarts == 2
    folder.write(5)
    env = job_on(environment(parallelism=1, **settings), folder, out)
    after = shared_cluster.submit(env, from_savepoint=savepoint)
    eventually(lambda: has_all(out, folder), "what was written")
    after.stop().result()
    after.wait(timeout=WAIT_S)
    assert found(out) == Counter(range(folder.rows))
