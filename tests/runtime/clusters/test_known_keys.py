"""Partials that go by the numbers of their keys, between processes: in flight at a checkpoint, and after a kill."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

from understudy import Count, LocalCluster, Operator, Sum
from understudy.actors.operators.collector import Collector
from understudy.actors.operators.operator import Takes
from understudy.messages import CheckpointCompleted
from understudy.state import CheckpointStorage
from understudy.state.checkpoints.checkpoint_metadata import decode_metadata

from .jobs import WAIT_S, Gate, Witness, environment, hold

KEYS, ROWS, BATCH_ROWS = 20, 6_000, 20


class Slow(Operator):
    """What it is behind of takes ten batches a second."""

    takes: ClassVar[Takes] = "columns"

    def process_batch(self, batch: Any, out: Collector) -> None:
        time.sleep(0.1)
        out.emit(batch)


def rows(start: int, count: int) -> pa.RecordBatch:
    ids = np.arange(start, start + count)
    names = [f"key {each}" for each in (ids % KEYS).tolist()]
    return pa.RecordBatch.from_pydict({"key": names, "value": ids})


@pytest.mark.chaos
def test_a_job_that_is_killed_with_partials_in_flight_is_exact(shared_cluster: LocalCluster, tmp_path: Path) -> None:
    env = environment(
        batch_rows=BATCH_ROWS,
        checkpoint_dir=str(tmp_path),
        checkpoint_interval_ms=300,
        retained_checkpoints=100,
        alignment_timeout_ms=0,
    )
    made = env.generate(rows, ROWS, schema=rows(0, 1).schema, records_per_second=1_000)
    totals = made.key_by("key").aggregate("updates", count=Count(), sum=Sum("value"))
    totals.process(Slow()).collect(name="all")
    hold(env, gate := Gate(tmp_path))
    job = shared_cluster.submit(env)
    witness = Witness(job)

    def has_in_flight(event: CheckpointCompleted) -> bool:
        metadata = decode_metadata(CheckpointStorage(str(tmp_path)).read_sealed(event.path), event.path)
        return any(state.channels for state in metadata.states())

    witness.wait(lambda: any(map(has_in_flight, witness.of(CheckpointCompleted))), "partials in flight")
    witness.kill(witness.pids(2)[1])
    gate.open()
    assert job.wait(timeout=WAIT_S).restarts == 1
    last = {row["key"]: row for row in sorted(job.results("all"), key=lambda row: row["count"])}
    ids = np.arange(ROWS)
    assert {key: (row["count"], row["sum"]) for key, row in last.items()} == {
        f"key {key}": (ROWS // KEYS, int(ids[ids % KEYS == key].sum())) for key in range(KEYS)
    }
