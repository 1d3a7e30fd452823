"""`understudy submit`: a program to a cluster of processes that stand alone. Flink: the CLI's run --detached."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from ..api.environment import StreamEnvironment
from ..clusters.job_errors import JobCanceled, JobFailed
from ..clusters.job_handle import JobHandle
from ..clusters.resuming import RESUME
from ..connectors import CollectSink, PrintSink
from ..hosts.settings_sources import LoadedSettings
from ..hosts.standalone_cluster import StandaloneCluster
from .cluster_settings import settings_options
from .connection import SECONDS
from .option_values import POSITIVE
from .output import note, print_json, with_option
from .program import load_program

LOOK_SECONDS = 1.0
"""How often a job that does not run yet is asked why."""


@click.command()
@click.argument("spec", metavar="MODULE:BUILD")
@click.argument("arguments", nargs=-1, metavar="[-- ARGUMENTS]")
@click.option("-s", "--from-savepoint", metavar="PATH", help="Begin with the state of this savepoint or checkpoint.")
@click.option(
    "-n", "--allow-non-restored-state", is_flag=True, help="Leave state behind whose operator is not in the program."
)
@click.option(
    "--resume",
    type=click.Choice(RESUME),
    help="Own the job's name, and go on from its newest checkpoint; savepoint: from --from-savepoint.",
)
@click.option("--name", help="The job's name.  [default: the module]")
@click.option("-p", "--parallelism", type=POSITIVE, help="Parallelism of operators that set none.")
@click.option(
    "--task-managers", type=POSITIVE, help="Number of TaskManagers of the job.  [default: as many as it needs]"
)
@click.option("--slots", default=1, show_default=True, type=POSITIVE, help="Slots of each of them.")
@click.option("--py-files", multiple=True, metavar="PATH", help="A Python file or package to ship with it; repeatable.")
@click.option("--ready", is_flag=True, help="Stay until all its tasks run.")
@click.option("--wait", is_flag=True, help="Stay until it has ended; exit code 1 if it has not finished.")
@click.option(
    "--timeout",
    type=SECONDS,
    metavar="SECONDS",
    default=30.0,
    show_default=True,
    help="How long to wait for an answer.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@settings_options
def submit(
    loaded: LoadedSettings,
    spec: str,
    arguments: tuple[str, ...],
    from_savepoint: str | None,
    allow_non_restored_state: bool,
    resume: str | None,
    name: str | None,
    parallelism: int | None,
    task_managers: int | None,
    slots: int,
    py_files: tuple[str, ...],
    ready: bool,
    wait: bool,
    timeout: float,
    as_json: bool,
) -> None:
    """Submit a program to the cluster that the settings name, and print the job's id.

    MODULE:BUILD, or path/to/file.py:BUILD, names a function that returns a StreamEnvironment, or one. A module has to
    be installed on the hosts, or shipped with --py-files; a file is shipped. ARGUMENTS after -- are passed to it as
    text.
    """
    if allow_non_restored_state and from_savepoint is None and resume is None:
        raise click.UsageError("--allow-non-restored-state needs --from-savepoint or --resume")
    program = load_program(spec)
    env = program.environment(arguments)
    if parallelism is not None:
        env.parallelism = parallelism
    with StandaloneCluster(loaded.settings, answer_timeout_ms=1000 * timeout) as cluster:
        try:
            job = cluster.submit(
                env,
                name or program.name,
                task_managers=task_managers,
                slots_per_task_manager=slots,
                py_files=[*_own_file(spec), *py_files],
                from_savepoint=from_savepoint,
                allow_non_restored_state=allow_non_restored_state,
                resume=resume,
            )
        except (ValueError, FileNotFoundError) as error:
            raise click.ClickException(str(error)) from error
        if as_json:
            print_json({"job_id": job.job_id, "name": job.name, "jobmanager": cluster.address})
        else:
            click.echo(job.job_id)
        note(f"job {job.name!r} is submitted to the JobManager at {cluster.address}")
        for line in _where_results_are(env, loaded.settings.log_dir):
            note(line)
        try:
            if ready or wait:
                _until_ready(cluster, job)
            if ready:
                note(f"job {job.name!r} runs")
            if wait:
                job.wait()
                note(f"job {job.name!r} has finished")
        except (JobFailed, JobCanceled) as error:
            raise click.ClickException(with_option(str(error), error.details)) from error


def _until_ready(cluster: StandaloneCluster, job: JobHandle) -> None:
    """Says what it waits for, when that takes a while, and again when that is something else. Raises JobFailed,
    JobCanceled, JobLost.
    """
    ready, said = job.ready(), ""
    while True:
        try:
            ready.result(timeout=LOOK_SECONDS)
        except TimeoutError:
            said, before = cluster.why_waiting(job.job_id) or said, said
            if said != before:
                note(f"job {job.name!r} is {said}")
        else:
            return


def _where_results_are(env: StreamEnvironment, log_dir: str) -> Iterator[str]:
    """Of what a program would see that runs its job itself."""
    sinks = {node.name: node.operator for node in env.graph.nodes}
    if any(isinstance(each, PrintSink) for each in sinks.values()):
        yield f"what it prints goes to {log_dir}/taskmanager-*.out, on the hosts where its tasks run"
    if collected := [repr(name) for name, each in sinks.items() if isinstance(each, CollectSink)]:
        yield (
            f"what {', '.join(collected)} collects is for a program that submits the job by StandaloneCluster, or for "
            "`understudy run`: sink_to(FileSink(...)) writes it to files"
        )


def _own_file(spec: str) -> list[Path]:
    """The program's own file, if it was named as one."""
    where = spec.rpartition(":")[0]
    return [Path(where)] if where.endswith(".py") else []
