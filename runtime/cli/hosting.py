"""Hosting: on which cluster a program runs, as the options of `run` and `info` say."""

from __future__ import annotations

import contextlib
import functools
import math
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from ...actors.job_graph import slots_needed
from ...state import CheckpointStorage, UnwritableRoot
from ..api.environment import StreamEnvironment
from ..api.translation import translate
from ..clusters.cluster import Cluster
from ..clusters.local_cluster import LocalCluster
from ..clusters.spark_session import spark_session
from .option_values import POSITIVE
from .output import note


@dataclass(frozen=True, slots=True)
class Hosting:
    """What the options say; None for what they leave open."""

    cluster: str
    master: str | None
    parallelism: int | None
    task_managers: int | None
    slots: int

    def adapt(self, env: StreamEnvironment) -> StreamEnvironment:
        """The environment with the parallelism that was asked for."""
        if self.parallelism is not None:
            env.parallelism = self.parallelism
        return env

    def task_managers_for(self, env: StreamEnvironment) -> int:
        """As asked for, or else as many as the program needs."""
        if self.task_managers is not None:
            return self.task_managers
        dataframes = [node for node in env.graph.nodes if node.dataframe is not None]
        fewest = max(1, sum(node.parallelism or 1 for node in dataframes))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what there is to warn of, the translation that counts says
            graph = translate(env, default_parallelism=1, task_managers=fewest, work_dir="").graph
        return max(fewest, math.ceil(slots_needed(graph) / self.slots))

    @contextlib.contextmanager
    def spark(self, quiet: bool = False) -> Iterator[Any]:
        """A SparkSession, or None for a local cluster. Spark takes seconds to start, so a line says so."""
        if self.cluster == "local":
            yield None
            return
        master = self.master or f"local[{max(2, self.task_managers or 0)}]"
        if not quiet:
            note(f"starting Spark at {master}")
        with (
            tempfile.TemporaryDirectory(prefix="understudy-spark-") as folder,
            spark_session(master, Path(folder)) as spark,
        ):
            yield spark

    def make_cluster(
        self, task_managers: int, config: dict[str, str], spark: Any, web_port: int | None = None
    ) -> Cluster:
        """Not yet started. Raises ValueError for a setting that does not fit."""
        if spark is None:
            return LocalCluster(task_managers, self.slots, config=config, web_port=web_port)
        from ..clusters.spark_cluster import SparkCluster

        return SparkCluster(spark, task_managers, self.slots, config=config, web_port=web_port)


def hosting_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options; the command takes them as `hosting`."""

    @functools.wraps(command)
    def run(
        cluster: str, master: str | None, parallelism: int | None, task_managers: int | None, slots: int, **rest: Any
    ) -> Any:
        if master is not None and cluster != "spark":
            raise click.UsageError("--master is Spark's: it needs --cluster spark")
        return command(hosting=Hosting(cluster, master, parallelism, task_managers, slots), **rest)

    decorated: Callable[..., Any] = run
    for option in (
        click.option("--master", metavar="URL", help="Spark's master.  [default: local[2], or a core per TaskManager]"),
        click.option(
            "--cluster",
            default="local",
            show_default=True,
            type=click.Choice(["local", "spark"]),
            help="Where it runs.",
        ),
        click.option("--slots", default=1, show_default=True, type=POSITIVE, help="Slots of each TaskManager."),
        click.option("--task-managers", type=POSITIVE, help="Number of TaskManagers.  [default: as many as it needs]"),
        click.option(
            "-p",
            "--parallelism",
            type=POSITIVE,
            help="Parallelism of operators that set none, in place of the program's.",
        ),
    ):
        decorated = option(decorated)
    return decorated


def check_directory(called: str, url: str) -> None:
    """Raises ClickException for one of a kind that fsspec does not know, or cannot open here."""
    try:
        CheckpointStorage(url or ".")
    except UnwritableRoot as error:
        raise click.ClickException(f"{called} {url!r} cannot be opened: {error.cause}") from error
