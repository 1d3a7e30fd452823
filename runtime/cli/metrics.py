"""`understudy metrics`, `back-pressure` and `flame-graph`: figures of a job that runs elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

import click

from ...messages import SampledFrame
from ..clusters.job_figures import FLAME_KINDS, FlameKind
from .connection import connect_to_job, connection_options
from .figures import in_full, table_of
from .jobs import JSON, plain_table, print_table
from .output import note, print_json, told


@click.command()
@click.argument("job")
@click.option("--subtasks", is_flag=True, help="A line per subtask.")
@click.option("--all", "-a", "everything", is_flag=True, help="Every figure by its name.")
@JSON
@connection_options
@told
def metrics(
    job: str,
    subtasks: bool,
    everything: bool,
    as_json: bool,
    jobmanager: str | None,
    key_file: str | None,
    timeout: float | None,
) -> None:
    """Figures of JOB (an id, its first characters, or a name), as of the last heartbeats: where the time of each vertex
    goes, records and bytes in a second, how far event time is behind.
    """
    with connect_to_job(job, jobmanager, key_file, timeout) as (cluster, found):
        measured = cluster.metrics(found.job_id).jobs[0]
    if as_json:
        print_json(measured)
    elif everything:
        for name, value in sorted(measured.values.items()):
            click.echo(f"{name} {in_full(value)}")
        for vertex in measured.vertices:
            for subtask in vertex.subtasks:
                for name, value in sorted(subtask.values.items()):
                    click.echo(f"{vertex.name}[{subtask.subtask_index}] {name} {in_full(value)}")
    else:
        print_table(table_of(measured, with_subtasks=subtasks))
        note(f"the job is {measured.status.value}; --all lists every figure")


@click.command()
@click.argument("job")
@click.argument("vertices", nargs=-1)
@JSON
@connection_options
@told
def back_pressure(
    job: str,
    vertices: tuple[str, ...],
    as_json: bool,
    jobmanager: str | None,
    key_file: str | None,
    timeout: float | None,
) -> None:
    """Back-pressure: how often the tasks of JOB wait for those behind them, by 100 samples of each in five seconds.

    VERTICES are names or ids of vertices or operators; without any, all.
    """
    with connect_to_job(job, jobmanager, key_file, timeout) as (cluster, found):
        wanted = vertices or tuple(each.vertex_id for each in cluster.metrics(found.job_id).jobs[0].vertices)
        for vertex in wanted:  # let all be sampled at the same time
            cluster.back_pressure(found.job_id, vertex, wait=False)
        reports = [cluster.back_pressure(found.job_id, vertex) for vertex in wanted]
    if as_json:
        print_json(reports)
        return
    table = plain_table(("vertex", "subtask", "level", "held back", "busy", "idle"), numbers=("subtask", "held back"))
    for report in reports:
        for each in report.subtasks:
            times = ("" if ratio is None else f"{ratio:.0%}" for ratio in (each.busy_ratio, each.idle_ratio))
            table.add_row(report.vertex_name, str(each.subtask_index), each.level.upper(), f"{each.ratio:.0%}", *times)
    print_table(table)


@click.command()
@click.argument("job")
@click.argument("vertex")
@click.option("--subtask", type=click.IntRange(0), help="Only of this one.")
@click.option("--kind", type=click.Choice(FLAME_KINDS), default="full", show_default=True)
@JSON
@connection_options
@told
def flame_graph(
    job: str,
    vertex: str,
    subtask: int | None,
    kind: FlameKind,
    as_json: bool,
    jobmanager: str | None,
    key_file: str | None,
    timeout: float | None,
) -> None:
    """What runs in the tasks of VERTEX of JOB, by the samples of five seconds: folded stacks, a line each with its
    number of samples, as flamegraph.pl and speedscope read them.
    """
    with connect_to_job(job, jobmanager, key_file, timeout) as (cluster, found):
        graph = cluster.flame_graph(found.job_id, vertex, subtask=subtask, kind=kind)
    if as_json:
        print_json(graph)
    else:
        for line in folded(graph.frames):
            click.echo(line)


def folded(frames: Sequence[SampledFrame]) -> list[str]:
    """Each stack with the samples that ended there: those of its frame without those of the frames that it called."""
    own = [each.samples for each in frames]
    stacks: list[str] = []
    for each in frames:
        name = each.function.replace(";", ",")
        stacks.append(name if each.parent == -1 else f"{stacks[each.parent]};{name}")
        if each.parent != -1:
            own[each.parent] -= each.samples
    return [f"{stack} {count}" for stack, count in zip(stacks, own, strict=True) if count > 0]
