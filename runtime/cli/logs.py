"""`understudy logs`: what the TaskManagers of a job that runs elsewhere have logged, and its JobManager about it."""

from __future__ import annotations

import time
from unicodedata import category

import click

from ...messages import JobLogs, LoggedRecord, LogRecords
from ...messages.counted import counted
from ..clusters.remote_cluster import RemoteCluster
from ..metrics.json_lines import JsonLines
from ..output.delivery import made_record
from .connection import connect_to_job, connection_options
from .output import note, told

LOOK_SECONDS = 0.5
"""How often `--follow` asks."""
NOTHING_YET = (
    "has logged nothing lately: its TaskManagers send what is logged at WARNING and above, or at the levels of the "
    "process that has submitted it (UNDERSTUDY_LOG=INFO for `run`; log.level for processes that stand alone)"
)


@click.command()
@click.argument("job")
@click.option("--follow", "-f", is_flag=True, help="Go on with what comes, until the job has ended.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
@connection_options
@told
def logs(
    job: str, follow: bool, as_json: bool, jobmanager: str | None, key_file: str | None, timeout: float | None
) -> None:
    """What the TaskManagers of JOB (an id, its first characters, or a name) have logged lately: the last 2,000 records,
    at the levels of the process that has submitted the job; and what the JobManager has logged of its failures,
    restarts and takeovers. Each line of an operator names subtask and attempt.
    """
    with connect_to_job(job, jobmanager, key_file, timeout) as (cluster, found):
        is_over = found.status.is_terminal or not follow
        answer = cluster.logs(found.job_id)
        _print(answer, as_json, is_first=True)
        if not answer.records:
            note(f"job {found.name} {NOTHING_YET}")
        while not is_over:
            time.sleep(LOOK_SECONDS)
            is_over = _is_over(cluster, found.job_id)
            answer = cluster.logs(found.job_id, after=answer.next_after)
            _print(answer, as_json)


def _is_over(cluster: RemoteCluster, job_id: str) -> bool:
    """Asked before the last look, so that nothing is missed."""
    return all(each.status.is_terminal for each in cluster.jobs() if each.job_id == job_id)


def _print(answer: JobLogs, as_json: bool, *, is_first: bool = False) -> None:
    if answer.missed and not is_first:
        note("(some records came faster than they can be read)")
    for message in answer.records:
        for record in message.records:
            click.echo(JsonLines().format(made_record(message, record)) if as_json else _line(message, record))
        if message.dropped:
            dropped = counted(message.dropped, "record")
            note(f"({message.task_manager_id} has dropped {dropped}: too many in a second)")


def _line(message: LogRecords, record: LoggedRecord) -> str:
    made = made_record(message, record)
    where = f" {record.operator}[{record.subtask_index}]#{record.attempt_number}" if record.operator else ""
    moment = time.strftime("%H:%M:%S", time.localtime(record.created_s))
    text = f"{moment} {made.levelname:7} {message.task_manager_id}{where} {record.logger}: {record.text}"
    lines = [text, *(f"    {line}" for line in record.error.splitlines())]
    return "\n".join(map(_harmless, lines))


def _harmless(text: str) -> str:
    """ESC and other control characters, which a terminal would obey, are written as Python writes them."""
    return "".join(
        ascii(each)[1:-1] if category(each) in ("Cc", "Cs") and each not in "\t\n" else each for each in text
    )
