"""A LedgerSink into a real database, in jobs whose TaskManagers are killed. The kit tries each moment of one sink."""

from __future__ import annotations

import random
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from understudy import LedgerSink, LocalCluster, Marker, MarkerMoved

from .jobs import WAIT_S, Counts, Gate, Witness, counted, counting, environment

COUNT, RATE = 3000, 1500


class Booked(LedgerSink):
    takes = "records"

    def __init__(self, path: str) -> None:
        self.path = path

    def open(self) -> None:
        self.db = sqlite3.connect(self.path, isolation_level=None, timeout=1)
        self.db.execute("CREATE TABLE IF NOT EXISTS rows (key, number, id)")
        self.db.execute("CREATE TABLE IF NOT EXISTS markers (writer PRIMARY KEY, sequence)")

    def close(self) -> None:
        self.db.close()

    def apply(self, batches: list[Any], marker: Marker) -> None:
        with self.db:
            self.db.execute("BEGIN IMMEDIATE")
            if not marker.after:
                self.db.execute("INSERT OR IGNORE INTO markers VALUES (?, 0)", (marker.writer,))
            moved = self.db.execute(
                "UPDATE markers SET sequence = ? WHERE writer = ? AND sequence = ?",
                (marker.sequence, marker.writer, marker.after),
            )
            if not moved.rowcount:
                raise MarkerMoved(marker.writer, marker.after)
            rows = [row for batch in batches for row in batch]
            self.db.executemany("INSERT INTO rows VALUES (:key, :number, :index)", rows)

    def last_marker(self, writer: str) -> int | None:
        self.db.rollback()
        row = self.db.execute("SELECT sequence FROM markers WHERE writer = ?", (writer,)).fetchone()
        return None if row is None else int(row[0])


def rows_in(path: Path) -> Counts:
    db = sqlite3.connect(path)
    try:
        return Counter(db.execute("SELECT key, number, id FROM rows").fetchall())
    finally:
        db.close()


@pytest.mark.chaos
def test_rows_are_exact_when_task_managers_are_killed(shared_cluster: LocalCluster, tmp_path: Path) -> None:
    chance, gate, path = random.Random(), Gate(tmp_path), tmp_path / "rows.db"
    env = environment()
    counting(env, COUNT, RATE, gate=gate).sink_to(Booked(str(path)), parallelism=2)
    job = shared_cluster.submit(env)
    witness = Witness(job)
    for _ in range(2):
        witness.checkpoints(chance.randint(1, 4))
        witness.kill(chance.choice(list(witness.pids(2).values())))
    gate.open()
    assert job.wait(timeout=WAIT_S).restarts >= 1
    assert rows_in(path) == counted(COUNT)


def test_a_stop_with_a_savepoint_applies_all_and_the_next_job_goes_on(
    shared_cluster: LocalCluster, tmp_path: Path
) -> None:
    gate, path = Gate(tmp_path), tmp_path / "rows.db"
    env = environment(checkpoint_dir=str(tmp_path / "checkpoints"))
    counting(env, COUNT, RATE, gate=gate).sink_to(Booked(str(path)), name="booked", parallelism=2)
    job = shared_cluster.submit(env)
    Witness(job).checkpoints(2)
    savepoint = job.stop_with_savepoint().result(WAIT_S)
    job.wait(timeout=WAIT_S)
    so_far = rows_in(path)
    assert so_far
    assert so_far <= counted(COUNT)
    gate.open()
    again = environment(checkpoint_dir=str(tmp_path / "checkpoints"))
    counting(again, COUNT, RATE, gate=gate).sink_to(Booked(str(path)), name="booked", parallelism=1)
    shared_cluster.submit(again, from_savepoint=savepoint).wait(timeout=WAIT_S)
    assert rows_in(path) == counted(COUNT)
