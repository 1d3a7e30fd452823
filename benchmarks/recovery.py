"""How long a job takes to come back: from the SIGKILL of a TaskManager to the first batch processed after the restore.

Two TaskManagers count records by key, and every record goes from one to the other's channels. A saboteur kills one of
them at random moments, again and again; in the end every record must have been counted exactly once.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import click
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from understudy import FileSink, KeyedOperator, LocalCluster, StreamEnvironment, ValueState, fixed_delay
from understudy.runtime.api import DataStream
from understudy.runtime.cli.saboteur import Recovery, Saboteur
from understudy.runtime.cli.spark_session import spark_session
from understudy.runtime.clusters import Cluster

from .report import deliver, provenance, shared_options, spread

TASK_MANAGERS = 2
KEYS = 1_000
RECORDS_PER_SECOND = 20_000
CHECKPOINT_INTERVAL_MS = 250
PAUSE_S = (0.05, 0.5)
"""From a checkpoint to the next kill."""
SECONDS = {"local": (3.0, 1.5), "spark": (4.0, 2.5)}
"""How long a job is made to take: so much, and so much for each kill."""

COUNTED = pa.schema([("id", pa.int64()), ("key", pa.int64()), ("number", pa.int64())])


@dataclass(frozen=True)
class Options:
    cluster: str
    master: str
    kills: int
    seed: int


@dataclass(frozen=True)
class Stage:
    """What all runs share: the cluster and a folder. `spark` is the session of a Spark cluster."""

    cluster: Cluster
    folder: Path
    spark: Any = None


@dataclass(frozen=True)
class Outcome:
    """One job, over. `killed`: how many kills there were; `output`: the folder of what it committed."""

    rows: int
    killed: int
    recoveries: list[Recovery]
    output: Path


class Count(KeyedOperator):
    """Numbers each key's records: 1, 2, 3, …"""

    number = ValueState(int, default=0)

    def process(self, record: Any, out: Any) -> None:
        number = self.number.value() + 1
        self.number.update(number)
        out.collect((record.id, self.key, number))


def records(start: int, rows: int) -> pa.RecordBatch:
    """Records `start` and following."""
    ids = range(start, start + rows)
    return pa.RecordBatch.from_pydict({"id": list(ids), "key": [one % KEYS for one in ids]})


@contextlib.contextmanager
def setup(options: Options) -> Iterator[Stage]:
    """A cluster of two TaskManagers per job, and a folder that goes with it."""
    with tempfile.TemporaryDirectory(prefix="understudy-benchmark-") as name:
        folder = Path(name)
        if options.cluster == "local":
            with LocalCluster(task_managers=TASK_MANAGERS) as cluster:
                yield Stage(cluster, folder)
        else:
            from understudy import SparkCluster

            with spark_session(options.master, folder) as spark, SparkCluster(spark, TASK_MANAGERS) as on_spark:
                yield Stage(on_spark, folder, spark)


def run(stage: Stage, options: Options, number: int) -> Outcome:
    """One job, with all its kills."""
    base, per_kill = SECONDS[options.cluster]
    rows = int(RECORDS_PER_SECOND * (base + per_kill * options.kills))
    output = stage.folder / f"out-{number}"
    env = StreamEnvironment(
        checkpoint_interval_ms=CHECKPOINT_INTERVAL_MS,
        checkpoint_dir=str(stage.folder / "checkpoints"),
        restart_strategy=fixed_delay(attempts=options.kills + 10, delay_ms=0),
    )
    counted = _source(stage, env, rows).key_by("key").process(Count, name="count")
    counted.sink_to(FileSink(str(output), format="parquet", schema=COUNTED), name="counted")
    saboteur = Saboteur(options.kills, seed=options.seed + number, pause_s=PAUSE_S)
    job = stage.cluster.submit(env, name=f"recovery-{number}")
    job.on_event(saboteur.on_event)
    try:
        job.wait()
    finally:
        saboteur.stop()
    return Outcome(rows, saboteur.killed, saboteur.recoveries, output)


def check(outcome: Outcome, options: Options) -> list[str]:
    """What is wrong with the answer, and nothing when it is exact."""
    problems = []
    if outcome.killed < options.kills:
        problems.append(f"only {outcome.killed} of {options.kills} kills happened before the job ended")
    if len(outcome.recoveries) < outcome.killed:
        problems.append(f"{len(outcome.recoveries)} recoveries from {outcome.killed} kills")
    found = pq.read_table(outcome.output)
    ids, keys, numbers = (found[name].to_numpy() for name in COUNTED.names)
    every = np.arange(outcome.rows)
    if not np.array_equal(np.sort(ids), every):
        problems.append(f"{len(ids)} records, {len(np.unique(ids))} of them distinct; wanted {outcome.rows}")
    elif not np.array_equal(ids % KEYS, keys):
        problems.append("records were counted for keys that are not theirs")
    elif not np.array_equal(numbers[np.lexsort((numbers, keys))], _numbered(np.sort(keys))):
        problems.append("the records of a key are not numbered 1, 2, 3, ...")
    return problems


def report(outcomes: list[Outcome], options: Options, wall_s: float, problems: list[str]) -> dict[str, Any]:
    recoveries = [recovery for outcome in outcomes for recovery in outcome.recoveries]
    took = [recovery.took_ms for recovery in recoveries]
    return {
        "workload": "recovery",
        "cluster": options.cluster if options.cluster == "local" else f"spark {options.master}",
        "task_managers": TASK_MANAGERS,
        "runs": len(outcomes),
        "rows": sum(outcome.rows for outcome in outcomes),
        "kills": sum(outcome.killed for outcome in outcomes),
        "recovery_ms": took,
        **spread("ms", took),
        "phases_ms": _phases(recoveries),
        "checked": not problems,
        "seed": options.seed,
        "wall_s": round(wall_s, 2),
        **provenance(),
    }


@click.command()
@click.option("--cluster", default="local", show_default=True, type=click.Choice(["local", "spark"]))
@click.option("--master", default="local[2]", show_default=True, help="Spark master of this machine.")
@click.option("--kills", default=5, show_default=True, type=click.IntRange(1), help="Kills in each job.")
@click.option("--seed", default=1, show_default=True, help="Fixes the moments and victims of the kills.")
@shared_options
def recovery(cluster: str, master: str, kills: int, seed: int, runs: int, json_path: str | None) -> None:
    """From the SIGKILL of a TaskManager to the first batch processed after the restore."""
    options = Options(cluster, master, kills, seed)
    started = time.monotonic()
    with setup(options) as stage:
        outcomes = [run(stage, options, number) for number in range(runs)]
        problems = [problem for outcome in outcomes for problem in check(outcome, options)]
    deliver(report(outcomes, options, time.monotonic() - started, problems), problems, json_path)


def _source(stage: Stage, env: StreamEnvironment, rows: int) -> DataStream:
    if stage.spark is None:
        schema = records(0, 0).schema
        return env.generate(records, rows, schema=schema, records_per_second=RECORDS_PER_SECOND, name="records")
    numbers = stage.spark.range(0, rows, 1, TASK_MANAGERS).selectExpr("id", f"id % {KEYS} AS key")
    return env.from_dataframe(numbers, records_per_second=RECORDS_PER_SECOND, name="records")


def _numbered(keys: Any) -> Any:
    """1, 2, 3, … for each run of equal keys."""
    starts = np.searchsorted(keys, keys)
    return np.arange(len(keys)) - starts + 1


def _phases(recoveries: list[Recovery]) -> dict[str, float]:
    """Medians: from the kill to its detection, to the next TaskManager's registration, to the first batch."""
    steps = [
        {
            "detect": one.lost_ms - one.killed_ms,
            "restart": one.registered_ms - one.lost_ms,
            "restore": one.first_batch_ms - one.registered_ms,
        }
        for one in recoveries
        if one.lost_ms and one.registered_ms
    ]
    return {phase: median(step[phase] for step in steps) for phase in (steps[0] if steps else ())}
