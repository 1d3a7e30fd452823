"""`understudy checkpoint`, `savepoint` and `stop`, of a job that runs elsewhere. Flink: its CLI has the same."""

from __future__ import annotations

import click

from .connection import connect, connect_to_job, connection_options
from .jobs import JSON
from .output import note, print_json, told
from .waiting import await_end, await_reply, await_savepoint, conclude


@click.command()
@click.argument("job")
@click.option("--full", is_flag=True, help="Write all state, and refer to no files of earlier checkpoints.")
@JSON
@connection_options
@told
def checkpoint(
    job: str, full: bool, as_json: bool, jobmanager: str | None, key_file: str | None, timeout: float | None
) -> None:
    """Take a checkpoint of JOB (an id, its first characters, or a name) now, and print its path.

    It is removed like the checkpoints that the job takes by itself: to keep one, take a savepoint.
    """
    with connect_to_job(job, jobmanager, key_file, timeout) as (cluster, found):
        taken = await_reply(f"checkpoint of {found.job_id}", cluster.trigger_checkpoint(found.job_id, full=full))
    if as_json:
        names = {"job_id": found.job_id, "name": found.name}
        print_json({**names, "checkpoint_id": taken.checkpoint_id, "checkpoint_path": taken.path})
    else:
        click.echo(taken.path)


@click.command()
@click.argument("job", required=False)
@click.argument("directory", metavar="[DIR]", required=False)
@click.option("--dispose", metavar="PATH", help="Remove this savepoint instead of taking one.")
@JSON
@connection_options
@told
def savepoint(
    job: str | None,
    directory: str | None,
    dispose: str | None,
    as_json: bool,
    jobmanager: str | None,
    key_file: str | None,
    timeout: float | None,
) -> None:
    """Take a savepoint of JOB (an id, its first characters, or a name), which goes on, and print its path.

    DIR is a folder below the savepoints' root; the root itself without it.
    """
    if (job is None) == (dispose is None):
        raise click.UsageError("wanted either JOB, to take a savepoint, or --dispose PATH")
    if dispose is not None:
        with connect(jobmanager, key_file, timeout) as cluster:
            disposed = await_reply(f"disposing of {dispose}", cluster.dispose_savepoint(dispose))
        if as_json:
            print_json({"disposed": disposed})
        note(f"disposed of {disposed}")
        return
    assert job is not None
    with connect_to_job(job, jobmanager, key_file, timeout) as (cluster, found):
        path = await_savepoint(cluster, found.job_id, cluster.trigger_savepoint(found.job_id, directory))
    if as_json:
        print_json({"job_id": found.job_id, "name": found.name, "savepoint_path": path})
    else:
        click.echo(path)


@click.command()
@click.argument("job")
@click.option(
    "--savepoint",
    "directory",
    is_flag=False,
    flag_value="",
    metavar="[DIR]",
    help="A folder below the savepoints' root; the root itself without it.",
)
@click.option("--drain", is_flag=True, help="End the data first: final results are emitted, and nothing comes after.")
@JSON
@connection_options
@told
def stop(
    job: str,
    directory: str | None,
    drain: bool,
    as_json: bool,
    jobmanager: str | None,
    key_file: str | None,
    timeout: float | None,
) -> None:
    """Let JOB (an id, its first characters, or a name) take a savepoint and finish; print the savepoint's path.

    `run` and `submit --from-savepoint` go on from it. If the savepoint fails, the job goes on.
    """
    with connect_to_job(job, jobmanager, key_file, timeout) as (cluster, found):
        reply = cluster.stop_with_savepoint(found.job_id, directory or None, drain=drain)
        path = await_savepoint(cluster, found.job_id, reply)
        if not as_json:
            click.echo(path)
        status, why = await_end(cluster, found.job_id, None, otherwise="finished")
    if as_json:
        print_json({"job_id": found.job_id, "name": found.name, "savepoint_path": path, "status": status})
    conclude(found.name, found.job_id, status, "finished", why)
