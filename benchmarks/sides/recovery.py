"""One job whose TaskManagers are killed again and again: records are numbered by key, one by one or in columns.

Where there are many keys, the source first gives each of them a record as fast as it can, and is paced from then on.
The first kill waits until all of that has been taken in, so each of them finds the whole state in the checkpoint.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from benchmarks.side import Order, answer, received_order
from understudy import (
    Cluster,
    Count,
    DataStream,
    FileSink,
    JobHandle,
    KeyedOperator,
    LocalCluster,
    SparkCluster,
    StreamEnvironment,
    Sum,
    ValueState,
    fixed_delay,
)
from understudy.messages import CheckpointCompleted, FirstBatchProcessed, VertexId
from understudy.runtime.chaos.saboteur import Recovery, Saboteur
from understudy.runtime.clusters.spark_session import spark_session
from understudy.runtime.connectors import GeneratorSource

from . import job

TASK_MANAGERS = 2
NAME = "count"
PAUSE_S = (0.05, 0.5)
"""From a checkpoint to the next kill."""
ASKED_EVERY_S = 0.2
NUMBERED = pa.schema([("id", pa.int64()), ("key", pa.int64()), ("number", pa.int64())])


class Number(KeyedOperator):
    """Numbers each key's records: 1, 2, 3, …"""

    number = ValueState(int, default=0)

    def process(self, record: Any, out: Any) -> None:
        number = self.number.value() + 1
        self.number.update(number)
        out.collect((record.id, self.key, number))


class FilledThenPaced(GeneratorSource):
    """Not paced before record `fill`. After a restore it is paced at once: no kill comes before that."""

    def __init__(self, fill: int, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._fill = fill
        self._is_filling = fill > 0

    def poll(self) -> Any:
        if not self._is_filling:
            return super().poll()
        batch: Any = self.read(self.batch_rows)
        self._is_filling = isinstance(batch, pa.RecordBatch) and batch["id"][-1].as_py() < self._fill
        return batch

    def seek(self, offset: dict[str, Any]) -> None:
        super().seek(offset)
        self._is_filling = False


class Witness:
    """Stands between a job's events and its saboteur, who hears only of checkpoints that were begun when the state was
    whole, and only of first batches of the tasks that hold it. `first_batches`: of these tasks, (subtask, attempt,
    milliseconds since the epoch).
    """

    def __init__(self, saboteur: Saboteur) -> None:
        self._saboteur = saboteur
        self._vertex: VertexId | None = None
        self._whole_ms = float("inf")
        """Since when the state is whole."""
        self.first_batches: list[tuple[int, int, int]] = []
        self.checkpoints: list[CheckpointCompleted] = []
        """Those begun since the state was whole."""

    def on_event(self, event: Any) -> None:
        match event:
            case CheckpointCompleted() if event.timestamp_ms - event.duration_ms <= self._whole_ms:
                return
            case CheckpointCompleted():
                self.checkpoints.append(event)
            case FirstBatchProcessed() if event.vertex_id != self._vertex:
                return
            case FirstBatchProcessed():
                self.first_batches.append((event.subtask_index, event.attempt_number, event.timestamp_ms))
        self._saboteur.on_event(event)

    def whole(self, vertex: VertexId, now_ms: float) -> None:
        """From now on the tasks of this vertex hold the whole state."""
        self._vertex, self._whole_ms = vertex, now_ms

    def wait_for_state(self, handle: JobHandle, keys: int) -> None:
        """Until the tasks that hold the state have taken a record, or partial, for each key."""
        while not handle.status.is_terminal:
            holders = [task for task in handle.details().tasks if task.vertex_name.split(" -> ")[0] == NAME]
            if sum(task.records_in for task in holders) >= keys:
                self.whole(holders[0].vertex_id, time.time() * 1000)
                return
            time.sleep(ASKED_EVERY_S)


def rows_of(keys: int) -> Any:
    """The generator's function: record i is of key i modulo the number of keys."""

    def make(start: int, rows: int) -> pa.RecordBatch:
        ids = np.arange(start, start + rows)
        return pa.RecordBatch.from_pydict({"id": ids, "key": ids % keys})

    return make


def source(env: StreamEnvironment, options: dict[str, Any], spark: Any) -> DataStream:
    """A DataFrame on Spark, unless keys are to be filled in first: it has one pace."""
    keys, rows, pace = options["keys"], options["rows"], options["records_per_second"]
    if spark is not None and not options["fill"]:
        numbers = spark.range(0, rows, 1, TASK_MANAGERS).selectExpr("id", f"id % {keys} AS key")
        return env.from_dataframe(numbers, records_per_second=pace, name="records")
    make = rows_of(keys)
    return env.from_source(FilledThenPaced(options["fill"], make, rows, pace, schema=make(0, 0).schema), name="records")


def build(rows: DataStream, order: Order) -> None:
    keyed, output = rows.key_by("key"), str(order.out / "counted")
    if order.options["state"] == "records":
        keyed.process(Number, name=NAME).sink_to(FileSink(output, format="parquet", schema=NUMBERED), name="counted")
    else:
        counted = keyed.aggregate("updates", name=NAME, number=Count(), ids=Sum("id"))
        counted.sink_to(FileSink(output, format="parquet"), name="counted")


@contextlib.contextmanager
def cluster_of(options: dict[str, Any], folder: Path) -> Iterator[tuple[Cluster, Any]]:
    """The cluster, and its Spark session if it is one of Spark."""
    if options["cluster"] == "local":
        with LocalCluster(task_managers=TASK_MANAGERS) as cluster:
            yield cluster, None
    else:
        with spark_session(options["master"], folder) as spark, SparkCluster(spark, TASK_MANAGERS) as on_spark:
            yield on_spark, spark


def run(order: Order) -> None:
    options = order.options
    with cluster_of(options, order.out) as (cluster, spark):
        env = StreamEnvironment(
            checkpoint_interval_ms=options["checkpoint_interval_ms"],
            checkpoint_dir=str(order.out / "checkpoints"),
            restart_strategy=fixed_delay(attempts=options["kills"] + 10, delay_ms=0),
        )
        build(source(env, options, spark), order)
        clock, saboteur = job.Clock(), Saboteur(options["kills"], seed=options["seed"], pause_s=PAUSE_S)
        witness = Witness(saboteur)
        handle, submitted_s = cluster.submit(env, name=order.workload), time.time()
        handle.on_event(clock.on_event)
        handle.on_event(witness.on_event)
        try:
            witness.wait_for_state(handle, options["keys"])
            handle.wait()
        finally:
            saboteur.stop()
        seconds = time.time() - (clock.deployed_s or submitted_s)
    tell(seconds, saboteur, witness, options["cluster"])


def tell(seconds: float, saboteur: Saboteur, witness: Witness, cluster: Literal["local", "spark"]) -> None:
    packages = job.PACKAGES if cluster == "local" else (*job.PACKAGES, "pyspark")
    answer(
        seconds,
        packages,
        killed=saboteur.killed,
        recoveries=[steps_of(one, witness.first_batches) for one in saboteur.recoveries],
        checkpoint_ms=[one.duration_ms for one in witness.checkpoints],
        state_bytes=max((one.state_size_bytes for one in witness.checkpoints), default=0),
    )


def steps_of(recovery: Recovery, first_batches: list[tuple[int, int, int]]) -> dict[str, int]:
    """Milliseconds from the kill to each step; 0 where it is not known. `all`: until every task that holds state has
    processed a batch.
    """
    of_this = next((attempt for _, attempt, at_ms in first_batches if at_ms == recovery.first_batch_ms), None)
    times = [at_ms for _, attempt, at_ms in first_batches if attempt == of_this]
    steps = {
        "lost": recovery.lost_ms,
        "registered": recovery.registered_ms,
        "first_batch": recovery.first_batch_ms,
        "all": max(times, default=0),
    }
    return {name: at_ms - recovery.killed_ms if at_ms else 0 for name, at_ms in steps.items()}


if __name__ == "__main__":
    run(received_order())
