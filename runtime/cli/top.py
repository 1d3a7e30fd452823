"""`understudy top`: jobs, their vertices and TaskManagers at a glance, again each second; once without a terminal."""

from __future__ import annotations

import time
from collections.abc import Mapping

import click
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ...messages import ClusterMetrics, JobId, JobMetrics
from ...messages.counted import counted
from ..clusters.remote_cluster import RemoteCluster
from .connection import connect, connection_options
from .figures import short, table_of
from .jobs import JSON, duration, plain_table
from .output import print_json, told


@click.command()
@click.argument("job", required=False)
@click.option("--once", is_flag=True, help="Print it once, and end.")
@click.option("--subtasks", is_flag=True, help="A line per subtask.")
@click.option("--interval", type=click.FloatRange(0.1, 3600), default=1.0, show_default=True, metavar="SECONDS")
@JSON
@connection_options
@told
def top(
    job: str | None,
    once: bool,
    subtasks: bool,
    interval: float,
    as_json: bool,
    jobmanager: str | None,
    key_file: str | None,
    timeout: float | None,
) -> None:
    """What JOB does, or all jobs of a JobManager: where the time of each vertex goes, records in a second, checkpoints,
    restarts, and their TaskManagers. Ctrl-C ends it.
    """
    with connect(jobmanager, key_file, timeout) as cluster:
        job_id = None if job is None else cluster.find(job).job_id
        console = Console(highlight=False)
        if as_json:
            print_json(cluster.metrics(job_id))
        elif once or not console.is_terminal:
            Console(width=200, highlight=False).print(screen(cluster.metrics(job_id), subtasks))
        else:
            _watch(cluster, job_id, console, subtasks, interval)


def _watch(cluster: RemoteCluster, job_id: JobId | None, console: Console, subtasks: bool, interval: float) -> None:
    with Live(screen(cluster.metrics(job_id), subtasks), console=console, screen=True, auto_refresh=False) as live:
        while True:
            time.sleep(interval)
            live.update(screen(cluster.metrics(job_id), subtasks), refresh=True)


def screen(metrics: ClusterMetrics, subtasks: bool) -> Group:
    """All of a snapshot; of jobs that have ended only how."""
    values = metrics.values
    parts: list[Text | Table] = [Text(in_words(values))]
    for job in metrics.jobs:
        parts += [Text(), _title(job)]
        if not job.status.is_terminal:
            parts.append(table_of(job, with_subtasks=subtasks))
    if metrics.task_managers:
        parts += [Text(), _task_managers(metrics)]
    return Group(*parts)


def in_words(values: Mapping[str, float]) -> str:
    """How many jobs, TaskManagers and slots a JobManager has."""
    jobs, managers = int(values["numRunningJobs"]), int(values["numRegisteredTaskManagers"])
    free, slots = int(values["taskSlotsAvailable"]), int(values["taskSlotsTotal"])
    work = "no job runs" if not jobs else f"{counted(jobs, 'job')} run{'s' if jobs == 1 else ''}"
    if not managers:
        return f"{work}; no TaskManager"
    use = f"{free} of them free" if free else "all in use"
    return f"{work}; {counted(managers, 'TaskManager')} with {counted(slots, 'slot')}, {use}"


def _title(job: JobMetrics) -> Text:
    values = job.values
    text = Text()
    text.append(job.name, style="bold")
    style = "green" if job.status.value == "running" else "yellow" if not job.status.is_terminal else ""
    text.append(f"  {job.status.value}", style=style)
    text.append(f"  {duration(values['runningTime'] / 1000)}")
    if values["numRestarts"]:
        text.append(f"  {counted(int(values['numRestarts']), 'restart')}", style="yellow")
    text.append(f"  {counted(int(values['numberOfCompletedCheckpoints']), 'checkpoint')}")
    if "lastCheckpointDuration" in values:
        size = short(values["lastCheckpointSize"])
        text.append(f", the last in {values['lastCheckpointDuration']:.0f} ms with {size} bytes")
    if values["numberOfFailedCheckpoints"]:
        text.append(f", {values['numberOfFailedCheckpoints']:.0f} failed", style="yellow")
    return text


def _task_managers(metrics: ClusterMetrics) -> Table:
    columns = ("TaskManager", "host", "process", "slots", "processor", "memory", "threads", "last heartbeat")
    table = plain_table(columns, numbers=columns[2:])
    for each in metrics.task_managers:
        values = each.values
        table.add_row(
            each.task_manager_id,
            each.host,
            str(each.pid),
            str(each.slots),
            f"{values.get('Status.Process.CPU.Load', 0):.0%}",
            short(values.get("Status.Process.Memory.Used", 0)),
            f"{values.get('Status.Process.Threads.Count', 0):.0f}",
            f"{each.silent_ms / 1000:.1f} s ago",
        )
    return table
