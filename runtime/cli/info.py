"""`understudy info`: the plan of a program, and nothing runs. Flink: the CLI's info."""

from __future__ import annotations

from typing import Any

import click

from ...actors.job_graph import slots_needed
from ...messages import CheckpointConfig, JobGraph, JobVertex
from ...messages.counted import counted
from ..api.translation import translate
from .hosting import Hosting, hosting_options
from .output import print_json, told
from .program import load_program


@click.command()
@click.argument("spec", metavar="MODULE:BUILD")
@click.argument("arguments", nargs=-1, metavar="[-- ARGUMENTS]")
@click.option("--name", help="What the job would be called.  [default: the module]")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@hosting_options
@told
def info(spec: str, arguments: tuple[str, ...], name: str | None, as_json: bool, hosting: Hosting) -> None:
    """The plan of a program: vertices, operators, parallelism, states and edges.

    No operator runs. Sources are looked at as far as building the program does, such as the heads of files; sinks are
    not: whether databases, brokers and folders can be used is seen when the program is run or submitted.
    """
    program = load_program(spec)
    with hosting.spark() as spark:
        env = hosting.adapt(program.environment(arguments, spark))
        task_managers = hosting.task_managers_for(env)
        graph = translate(
            env,
            name=name or program.name,
            default_parallelism=task_managers * hosting.slots,
            task_managers=task_managers,
            work_dir="",
            slots=hosting.slots,
        ).graph
    plan = _plan(graph, task_managers)
    if as_json:
        print_json(plan)
    else:
        click.echo("\n".join([_headline(plan), *_text(graph)]))


def _plan(graph: JobGraph, task_managers: int) -> dict[str, Any]:
    return {
        "name": graph.name,
        "tasks": sum(vertex.parallelism for vertex in graph.vertices),
        "slots": slots_needed(graph),
        "task_managers": task_managers,
        "state_backend": graph.state_backend,
        "checkpoints": graph.checkpoints,
        "restart": graph.restart,
        "vertices": graph.vertices,
        "edges": graph.edges,
    }


def _headline(plan: dict[str, Any]) -> str:
    return (
        f"{plan['name']}: {counted(plan['tasks'], 'task')} in {counted(plan['slots'], 'slot')} "
        f"of {counted(plan['task_managers'], 'TaskManager')}, "
        f"state backend {plan['state_backend']}, {_checkpointing(plan['checkpoints'])}, "
        f"restart strategy {plan['restart'].kind.value}"
    )


def _checkpointing(config: CheckpointConfig) -> str:
    mode = "exactly once" if config.exactly_once else "at least once"
    how_often = "only at the end" if config.interval_ms is None else f"every {config.interval_ms} ms"
    return f"checkpoints {how_often} ({mode})"


def _text(graph: JobGraph) -> list[str]:
    lines: list[str] = []
    for vertex in graph.vertices:
        lines += ["", f"{vertex.name}  [{vertex.vertex_id}]", f"    parallelism {_parallelism(vertex)}"]
        for operator in vertex.operators:
            states = ", ".join(f"{state.name} ({state.kind})" for state in operator.states)
            lines.append(f"    {operator.kind} {operator.name}{f': state {states}' if states else ''}")
        for edge in graph.edges:
            if edge.source == vertex.vertex_id:
                more = f"{', second input' if edge.input_index else ''}{', feedback' if edge.feedback else ''}"
                lines.append(f"    -> {edge.target} ({edge.partitioning.value}{more})")
    return lines


def _parallelism(vertex: JobVertex) -> str:
    bound = f", on TaskManagers from {vertex.first_task_manager} on" if vertex.task_manager_bound else ""
    group = f", slot sharing group {vertex.slot_sharing_group}" if vertex.slot_sharing_group != "default" else ""
    return f"{vertex.parallelism} of at most {vertex.max_parallelism}{bound}{group}"
