"""`understudy chaos`: a real job whose processes are killed and frozen, whose connections are cut and slowed and whose
disks are filled, and which must end exactly right and leave nothing behind.
"""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from ..chaos import Counts, Options, ProxiedCluster, ProxiedLocalCluster, ProxiedSparkCluster, run
from ..clusters.spark_session import spark_session

FAULTS = click.IntRange(0)
HEARTBEATS = {"heartbeat_interval_ms": 200, "heartbeat_timeout_ms": 5_000}


@click.command()
@click.option("--cluster", default="local", show_default=True, type=click.Choice(["local", "spark"]))
@click.option("--kills", default=10, show_default=True, type=FAULTS, help="TaskManagers killed with SIGKILL.")
@click.option(
    "--freezes",
    default=0,
    show_default=True,
    type=FAULTS,
    help="TaskManagers stopped with SIGSTOP, and woken by SIGCONT a while later.",
)
@click.option("--cuts", default=0, show_default=True, type=FAULTS, help="Links whose connections are reset.")
@click.option("--stalls", default=0, show_default=True, type=FAULTS, help="Links that are silent for a while.")
@click.option("--slow", default=0, show_default=True, type=FAULTS, help="Links that are slow for a while.")
@click.option("--full-disks", default=0, show_default=True, type=FAULTS, help="Small disks, full for a while.")
@click.option("--task-managers", default=2, show_default=True, type=click.IntRange(1, 8))
@click.option("--seed", type=int, help="Fixes the faults, their order and their pauses; printed in any case.")
@click.option("--json", "json_path", type=click.Path(dir_okay=False), help="Write the report to this file.")
def chaos(
    cluster: str,
    kills: int,
    freezes: int,
    cuts: int,
    stalls: int,
    slow: int,
    full_disks: int,
    task_managers: int,
    seed: int | None,
    json_path: str | None,
) -> None:
    """Inject faults into a job on real processes, and check that its output is exact and nothing is left behind."""
    if find_spec("psutil") is None:
        raise click.ClickException("chaos runs need psutil, not installed here: pip install 'understudy[testing]'")
    console = Console(highlight=False, soft_wrap=True)

    def say(what: str, style: str) -> None:
        console.print(what, style=style, markup=False)

    seed = random.randrange(2**32) if seed is None else seed
    counts = Counts(kills, freezes, cuts, stalls, slow, full_disks)
    say(f"seed {seed}", "bold")
    report = run(Options(counts, seed, cluster, task_managers), _on_spark if cluster == "spark" else _local, say)
    for what, style in report.lines():
        say(what, style)
    if json_path:
        Path(json_path).write_text(json.dumps(report.as_json(), indent=2) + "\n")
    raise SystemExit(0 if report.ok else 1)


@contextlib.contextmanager
def _local(_folder: Path, task_managers: int) -> Iterator[ProxiedCluster]:
    with ProxiedLocalCluster(task_managers, **HEARTBEATS) as cluster:
        yield cluster


@contextlib.contextmanager
def _on_spark(folder: Path, task_managers: int) -> Iterator[ProxiedCluster]:
    """On a session of its own, whose JVM ends with it."""
    with spark_session(f"local[{task_managers}]", folder) as spark:
        gateway: Any = spark.sparkContext._gateway
        with ProxiedSparkCluster(spark, task_managers, **HEARTBEATS) as cluster:
            yield cluster
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()
