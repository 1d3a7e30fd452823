"""`understudy watermarks`: how far event time is in a job that runs elsewhere, and who holds it back."""

from __future__ import annotations

import click

from .connection import connect_to_job, connection_options
from .jobs import JSON
from .output import print_json, told


@click.command()
@click.argument("job")
@click.option("--operator", metavar="NAME", help="Only of this one; else of the last operator of each task.")
@JSON
@connection_options
@told
def watermarks(
    job: str, operator: str | None, as_json: bool, jobmanager: str | None, key_file: str | None, timeout: float | None
) -> None:
    """How far event time is in JOB (an id, its first characters, or a name), by subtask, and why it is no further:
    which input holds it back, up to the split of the source, and what to do.
    """
    with connect_to_job(job, jobmanager, key_file, timeout) as (cluster, found):
        if operator is None:
            explained = cluster.explain_watermarks(found.job_id)
        else:
            explained = (cluster.explain_watermark(found.job_id, operator),)
    if as_json:
        print_json(explained)
    elif operator is None and all(each.has_no_event_time for each in explained):
        click.echo(
            f"job {found.name!r} has no event time: no stream in it has assign_timestamps, which windows and timers by "
            "event time need"
        )
    else:
        click.echo("\n\n".join(map(str, explained)))
