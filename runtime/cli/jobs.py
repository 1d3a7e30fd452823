"""`understudy list`, `cancel` and `checkpoints`: questions and orders to a JobManager that runs elsewhere."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Sequence
from datetime import datetime

import click
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

from ...actors.checkpoints.reason_words import in_words
from ...messages import CheckpointHistory, JobStatus, JobSummary, printable
from ..clusters.remote_errors import OF_PROGRAMS
from .connection import connect, connect_to_job, connection_options
from .output import note, print_json, told
from .waiting import await_end, await_savepoint, conclude, waits_for

WIDE = 1_000
"""Characters in a line; in a narrower terminal it goes on in the next one."""
SHORT = 120
"""Characters of a failure that is over; `understudy logs` has all of it."""
SHORTEST = 40
"""Of one in a terminal that has no room for it."""
GAP = 2
"""Between two columns."""
LAST = "path or failure"
DELETED = "deleted"
"""In place of the path of a checkpoint that nothing can start from any more."""
LAST_FAILURE = "last failure"
_NO_JOB = (
    "no job yet. Of jobs from before the JobManager was started it knows only those that had not ended, with "
    "recovery.mode, and those of history_dir; the checkpoints that others have left are where they were: "
    "--from-savepoint, or --resume latest, goes on from them"
)

JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.command("list")
@click.option("--all", "-a", "everything", is_flag=True, help="Also the last ones that have ended.")
@JSON
@connection_options
@told
def list_jobs(
    everything: bool, as_json: bool, jobmanager: str | None, key_file: str | None, timeout: float | None
) -> None:
    """The jobs of a JobManager, in the order of their submission."""
    with connect(jobmanager, key_file, timeout) as cluster:
        jobs = [job for job in cluster.jobs() if everything or not job.status.is_terminal]
    if as_json:
        print_json(jobs)
    elif jobs:
        print_table(_job_table(jobs, width=terminal_width()))
    else:
        note(_NO_JOB if everything else f"no job runs; --all lists those that have ended too. {OF_PROGRAMS}")


@click.command()
@click.argument("job")
@click.option(
    "--with-savepoint",
    is_flag=False,
    flag_value="",
    metavar="[DIR]",
    help="Take a savepoint first, in DIR below the savepoints' root; if it fails, the job goes on.",
)
@JSON
@connection_options
@told
def cancel(
    job: str,
    with_savepoint: str | None,
    as_json: bool,
    jobmanager: str | None,
    key_file: str | None,
    timeout: float | None,
) -> None:
    """End JOB (an id, its first characters, or a name) at once, and wait until it has ended.

    With --with-savepoint the savepoint's path is printed on a line of its own.
    """
    path = None
    with connect_to_job(job, jobmanager, key_file, timeout) as (cluster, found):
        if with_savepoint is None:
            before = cluster.cancel(found.job_id)
        else:
            reply = cluster.cancel_with_savepoint(found.job_id, with_savepoint or None)
            path = await_savepoint(cluster, found.job_id, reply)
            before = None
            if not as_json:
                click.echo(path)
        status, why = await_end(cluster, found.job_id, before, otherwise="canceled")
    if as_json:
        print_json({"job_id": found.job_id, "name": found.name, "status": status, "savepoint_path": path})
    conclude(found.name, found.job_id, status, "canceled", why)


@click.command()
@click.argument("job")
@JSON
@connection_options
@told
def checkpoints(job: str, as_json: bool, jobmanager: str | None, key_file: str | None, timeout: float | None) -> None:
    """Statistics of the last checkpoints of JOB (an id, its first characters, or a name), the newest first."""
    with connect_to_job(job, jobmanager, key_file, timeout) as (cluster, found):
        history = cluster.checkpoints(found.job_id)
        kept = cluster.details(found.job_id).retained_checkpoint_path if found.status.is_terminal else ""
    if as_json:
        print_json(history)
        return
    print_table(_checkpoint_table(history))
    restored = f"; restored from checkpoint {history.restored_checkpoint_id}" if history.restored_checkpoint_id else ""
    note(f"{history.triggered} triggered, {history.completed} completed, {history.failed} failed{restored}")
    if found.last_failure:
        note(f"the job is {found.status.value}; {LAST_FAILURE}: {found.last_failure}")
    if kept:
        note(f"its checkpoint is kept; to go on from there: --from-savepoint {kept}")


def print_table(table: Table) -> None:
    """On standard output, as wide as it needs to be: an id that is cut off is none."""
    Console(width=WIDE, markup=False, highlight=False, emoji=False).print(table, crop=False)


def plain_table(columns: Sequence[str], *, numbers: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in columns:
        table.add_column(name, justify="right" if name in numbers else "left", no_wrap=True)
    return table


def terminal_width() -> int | None:
    """In characters; None: no terminal shows it, and who reads it gets all of it."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _job_table(jobs: Sequence[JobSummary], *, width: int | None = None) -> Table:
    """`width`: failures are cut so that a line fits, as far as they leave a few words."""
    columns = ("job", "name", "status", "started", "runs for", "tasks", "restarts", LAST_FAILURE)
    table = plain_table(columns, numbers=("tasks", "restarts"))
    rows = [_job_row(job) for job in jobs]
    others = sum(max(map(cell_len, each)) + GAP for each in zip(columns[:-1], *rows, strict=False))
    for job, row in zip(jobs, rows, strict=True):
        failure = job.last_failure or _latest_failure(job)
        table.add_row(*row, failure if width is None else shortened(failure, max(width - others, SHORTEST)))
    return table


def _job_row(job: JobSummary) -> tuple[str, ...]:
    """Without its failure."""
    seconds = (job.ended_ms or time.time() * 1000) - job.started_ms
    return (
        job.job_id,
        printable(job.name),
        status_in_words(job),
        _moment(job.started_ms),
        duration(seconds / 1000),
        f"{job.tasks_running}/{job.tasks_total}",
        str(job.restarts),
    )


def status_in_words(job: JobSummary) -> str:
    """Its status; of one that does not run yet what it waits for, if that is known."""
    if job.is_taken_over:
        return "being taken over"
    is_down = job.status in (JobStatus.CREATED, JobStatus.RESTARTING)
    return f"{job.status.value}, waits for slots" if is_down and job.task_managers_awaited else job.status.value


def _latest_failure(job: JobSummary) -> str:
    """Of a job that runs again: in short, and how long ago it was."""
    if not job.latest_failure:
        return ""
    ago = duration((job.ended_ms or time.time() * 1000) / 1000 - job.latest_failure_ms / 1000)
    return f"{ago} {'before its end' if job.ended_ms else 'ago'}: {shortened(job.latest_failure)}"


def shortened(text: str, length: int = SHORT) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _checkpoint_table(history: CheckpointHistory) -> Table:
    columns = ("id", "kind", "status", "triggered", "ms", "bytes", "subtasks", "sync ms", "async ms", "alignment ms")
    numbers = [name for name in columns if name not in ("kind", "status")]
    table = plain_table((*columns, LAST), numbers=numbers)
    for each in history.checkpoints:
        metrics = [subtask.metrics for subtask in each.subtasks]
        table.add_row(
            str(each.checkpoint_id),
            each.kind,
            each.status.replace("_", " "),
            _moment(each.timestamp_ms),
            str(each.duration_ms),
            f"{each.state_size_bytes:,}",
            f"{len(metrics)}/{each.subtasks_total}",
            f"{max((one.sync_ms for one in metrics), default=0):.1f}",
            f"{max((one.async_ms for one in metrics), default=0):.1f}",
            f"{max((one.alignment_ms for one in metrics), default=0):.1f}",
            " ".join((in_words(each.failure) or waits_for(each) or (DELETED if each.discarded else each.path)).split()),
        )
    return table


def _moment(wall_ms: int) -> str:
    return datetime.fromtimestamp(wall_ms / 1000).strftime("%Y-%m-%d %H:%M:%S")


def duration(seconds: float) -> str:
    minutes, rest = divmod(max(0, int(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"
