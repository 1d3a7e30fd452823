"""A StreamGraph and a cluster's size become a JobGraph and a JobProgram. Flink: StreamingJobGraphGenerator."""

from __future__ import annotations

import copy
import logging
import math
import os
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote

from ...actors.job_graph import slots_needed, validate
from ...actors.operators.assign_timestamps import AssignTimestamps
from ...actors.operators.operator import Operator, described_states
from ...actors.operators.two_phase_commit_sink import TwoPhaseCommitSink
from ...actors.tasks.job_program import JobProgram, NotShippable, ProgramOperator
from ...actors.unrun import result_of
from ...messages import (
    CheckpointConfig,
    CheckpointRetention,
    JobEdge,
    JobGraph,
    JobId,
    JobSubmitted,
    JobVertex,
    OperatorDescription,
    OwnedOutput,
    RecordTypes,
    RestartStrategyConfig,
    VertexId,
    record_types_of_script,
)
from ...state import InvalidState
from ...state.keyring import Keyring
from ..connectors import CollectionSource, CollectSink, OutletSink
from ..connectors.spark.stream_query import SparkStream
from ..connectors.spark.stream_source import SparkStreamSource
from . import never_submitted
from .async_settings import settings_of
from .chaining import Size, chains_of, key_sinks, partitioning_of, sizes_of
from .checks import refused_record, text
from .environment import StreamEnvironment
from .errors import ClusterTooSmall, InvalidOperator, InvalidProgram, NotPicklable, OperatorCheckFailed
from .event_time import check_assigners, check_event_times
from .null_keys import warn_of_null_keys
from .older_definitions import warn_of_older_definitions
from .optimizer import optimized
from .other_jobs import UNNAMED, warn_of_other_jobs
from .own_output import check_own_output, check_sinks_apart, check_transactional_ids, warn_of_file_names
from .pickling import LARGE_BYTES, check_picklable, warn_of_large
from .spark_sources import local
from .stream_graph import StreamEdge, StreamNode
from .submitted import check_environment
from .surprises import warn_of_surprises

log = logging.getLogger(__name__)

Chain = Sequence[StreamNode]


@dataclass(frozen=True, slots=True)
class DataFrameBinding:
    """A DataFrame, to be read as `parallelism` partitions: partition i by TaskManager `first_task_manager + i`."""

    vertex_id: VertexId
    source_name: str
    dataframe: Any
    first_task_manager: int
    parallelism: int


@dataclass(frozen=True, slots=True)
class QueryBinding:
    """A query of Spark that runs beside the job, and the spool that its batches go to."""

    source_name: str
    spool: str
    stream: SparkStream


@dataclass(frozen=True, slots=True)
class Translation:
    """One job, ready to be submitted."""

    graph: JobGraph
    program: JobProgram
    dataframes: tuple[DataFrameBinding, ...]
    queries: tuple[QueryBinding, ...]
    sinks: Mapping[str, Operator]
    """By name, as they are shipped; the handle knows from them where the results are."""
    operators: Mapping[str, Operator]
    """All of them, by name."""
    record_types: RecordTypes = field(default_factory=dict)
    """Those of the script or notebook, as they are at the submit: they may be replaced later."""

    def check_operators(self, on_this_machine: bool) -> None:
        """Let each operator say what would make it fail; raises OperatorCheckFailed, naming the operator."""
        for name, operator in self.operators.items():
            try:
                result_of(operator, "check_at_submit", on_this_machine)
            except Exception as error:
                raise OperatorCheckFailed(f"operator {name!r} ({type(operator).__name__}): {error}") from error

    def warn(self, submitted: JobSubmitted, on_this_machine: bool, jobs_here: Collection[JobId] | None = None) -> bool:
        """Of what its user may not expect of the job that was just submitted. `jobs_here`: all of its cluster, whose
        folders the JobManager has looked at; None: TaskManagers outlive their jobs, so others cannot be seen.

        Whether another job may still write into one of its folders.
        """
        if submitted.left_behind:
            left_behind = ", ".join(submitted.left_behind)
            log.warning("job %r leaves the state of operators behind: %s", self.graph.name, left_behind)
        for note in submitted.restore_notes:
            log.warning("job %r goes on from a savepoint: %s", self.graph.name, note)
        collected = ", ".join(repr(name) for name, sink in self.sinks.items() if isinstance(sink, CollectSink))
        if collected and submitted.restored_from is not None:
            log.warning(
                "job %r goes on from checkpoint %d: what it collects as %s holds what it commits from there, and not "
                "what was collected before; a FileSink, or an outlet, keeps what all runs commit",
                self.graph.name,
                submitted.restored_from.checkpoint_id,
                collected,
            )
        return warn_of_other_jobs(self.graph, self.sinks, submitted, jobs_here, on_this_machine=on_this_machine)


def translate(
    environment: StreamEnvironment,
    *,
    default_parallelism: int,
    task_managers: int,
    work_dir: str,
    slots: int | None = None,
    name: str = UNNAMED,
    job_id: JobId | None = None,
    restart: RestartStrategyConfig | None = None,
) -> Translation:
    """Raises InvalidProgram, naming the operator that is wrong.

    `work_dir`: where checkpoints go when the environment names no folder. `slots`: per TaskManager; None leaves it to
    the JobManager to find that there are too few. `restart`: the cluster's strategy, for an environment without
    one of its own.
    """
    never_submitted.used()
    check_environment(environment)
    text("submit: name", name)
    runnable = environment.graph.runnable()
    check_event_times(runnable)
    nodes = optimized(runnable)
    sizes = sizes_of(
        nodes,
        default=environment.parallelism or default_parallelism,
        maximum=environment.max_parallelism,
        task_managers=task_managers,
    )
    key_sinks(nodes, sizes)
    chains = chains_of(nodes, sizes)
    check_assigners(chains, sizes)
    edges = _edges_between(chains)
    job_id = job_id or JobId(f"job-{uuid.uuid4().hex}")
    checkpoints = _checkpoints(environment.checkpoints, work_dir)
    operators = {node.position: _placed(node, checkpoints.directory, job_id) for node in nodes}
    place = quote(name if environment.checkpoints.directory else job_id, safe="", errors="surrogatepass")
    queries = tuple(
        _query(node, operators, f"{checkpoints.directory}/spark-streams/{place}") for node in nodes if node.spark_stream
    )
    graph = JobGraph(
        job_id=job_id,
        name=name,
        vertices=tuple(_vertex(chain, sizes, environment.max_parallelism) for chain in chains),
        edges=tuple(_job_edge(edge, consumer, chains, sizes) for edge, consumer in edges),
        checkpoints=checkpoints,
        restart=restart if restart is not None and environment.restart_is_default else environment.restart,
        max_same_failures=environment.max_same_failures,
        state_backend=environment.state_backend,
        local_state=environment.local_state,
        buffer_timeout_ms=environment.buffer_timeout_ms,
        slow_step_ms=environment.slow_step_ms,
        watermark_warn_ms=environment.watermark_warn_ms,
        outputs=_owned_outputs(nodes, operators),
    )
    _check(graph, nodes)
    record_types = record_types_of_script()
    _check_collections(nodes, record_types)
    warn_of_null_keys(runnable)
    warn_of_surprises(graph, nodes, sizes, operators)
    if slots is not None:
        _check_slots(graph, task_managers, slots)
    return Translation(
        graph=graph,
        program=_program(chains, operators, edges, environment.max_parallelism),
        dataframes=tuple(_binding(chain[0], sizes) for chain in chains if chain[0].dataframe is not None),
        queries=queries,
        sinks={node.name: operators[node.position] for node in nodes if node.role == "sink"},
        operators={node.name: operators[node.position] for node in nodes},
        record_types=record_types,
    )


def _check(graph: JobGraph, nodes: Sequence[StreamNode]) -> None:
    """The job as a whole. Raises InvalidJobGraph or InvalidProgram."""
    validate(graph)
    check_own_output(nodes)
    warn_of_file_names(nodes)
    warn_of_older_definitions(nodes)
    check_sinks_apart(nodes)
    check_transactional_ids(nodes)
    _check_intervals(nodes, graph.checkpoints)


def _check_collections(nodes: Sequence[StreamNode], types: RecordTypes) -> None:
    """Raises InvalidOperator where a collection holds records of a class that has been replaced since. Others that
    cannot travel are for `from_collection` to refuse: between operators of one chain they need not.
    """
    for node in nodes:
        records = node.operator.records if isinstance(node.operator, CollectionSource) else ()
        if (why := refused_record(records, types)) and not refused_record(records, None):
            raise InvalidOperator(f"operator {node.name!r}: {why}")


def _check_intervals(nodes: Sequence[StreamNode], checkpoints: CheckpointConfig) -> None:
    """Raises InvalidProgram where a sink's transactions would be given up before their checkpoint completes."""
    for node in nodes:
        if isinstance(node.operator, TwoPhaseCommitSink):
            try:
                node.operator.check_interval(checkpoints.interval_ms)
            except ValueError as error:
                raise InvalidProgram(f"sink {node.name!r} ({type(node.operator).__name__}): {error}") from error


def _checkpoints(config: CheckpointConfig, work_dir: str) -> CheckpointConfig:
    """The cluster's own folder goes with the cluster: nothing in it can be kept for later."""
    if (keys := Keyring.of(os.environ)) is not None:
        config = replace(config, encryption_key=keys.current)
    if config.directory:
        return config
    return replace(config, directory=f"{work_dir}/checkpoints", retention=CheckpointRetention.NEVER)


def _placed(node: StreamNode, directory: str, job_id: JobId) -> Operator:
    """The node's operator; a copy of a CollectSink without a directory, and of an OutletSink, with one of this job."""
    operator = node.operator
    if isinstance(operator, CollectSink) and not operator.path:
        collects = copy.copy(operator)
        collects.path = f"{directory}/collected/{job_id}/{node.operator_id}"
        return collects
    if isinstance(operator, OutletSink):
        lets_out = copy.copy(operator)
        lets_out.root = directory
        return lets_out
    return operator


def _owned_outputs(nodes: Sequence[StreamNode], operators: Mapping[int, Operator]) -> tuple[OwnedOutput, ...]:
    return tuple(OwnedOutput(node.name, place) for node in nodes if (place := operators[node.position]._owned_place))


def _vertex_id(chain: Chain) -> VertexId:
    return VertexId(chain[0].operator_id)


def _vertex(chain: Chain, sizes: Mapping[int, Size], max_parallelism: int) -> JobVertex:
    head = chain[0]
    size = sizes[head.position]
    return JobVertex(
        vertex_id=_vertex_id(chain),
        name=" -> ".join(node.name for node in chain),
        parallelism=size.parallelism,
        max_parallelism=max_parallelism,
        operators=tuple(_description(node) for node in chain),
        slot_sharing_group=head.slot_sharing_group,
        task_manager_bound=head.dataframe is not None,
        first_task_manager=size.first_task_manager,
        bounded=head.bounded,
        says_idle=any(isinstance(node.operator, AssignTimestamps) for node in chain),
    )


def _description(node: StreamNode) -> OperatorDescription:
    try:
        states = described_states(node.operator)
    except InvalidState as error:
        raise InvalidOperator(f"operator {node.name!r}: {error}") from error
    operator = node.operator
    ends, is_async = operator._emits_at_end, operator._is_async
    rate = settings_of(operator).rate_per_second
    keys = tuple(_key_columns(edge) for edge in node.inputs if edge.selector is not None)
    return OperatorDescription(node.operator_id, node.name, node.role, states, ends, rate, is_async, keys)


def _key_columns(edge: StreamEdge) -> str:
    parts = () if edge.selector is None else edge.selector.parts
    if any(map(callable, parts)):
        return ""
    names = () if edge.schema is None else edge.schema.names
    return ", ".join(names[part] if isinstance(part, int) and part < len(names) else str(part) for part in parts)


def _edges_between(chains: Sequence[Chain]) -> list[tuple[StreamEdge, StreamNode]]:
    """The edges into the head of each chain, with that head. A JobEdge's index is its place here."""
    return [(edge, chain[0]) for chain in chains for edge in (*chain[0].inputs, *chain[0].feedback)]


def _job_edge(edge: StreamEdge, consumer: StreamNode, chains: Sequence[Chain], sizes: Mapping[int, Size]) -> JobEdge:
    producers = {chain[-1].position: _vertex_id(chain) for chain in chains}
    return JobEdge(
        source=producers[edge.source.position],
        target=VertexId(consumer.operator_id),
        partitioning=partitioning_of(edge, consumer, sizes),
        input_index=edge.input_index,
        output_tag=edge.output_tag,
        feedback=edge.feedback,
        by_round=edge.by_round,
    )


def _program(
    chains: Sequence[Chain],
    operators: Mapping[int, Operator],
    edges: Sequence[tuple[StreamEdge, StreamNode]],
    max_parallelism: int,
) -> JobProgram:
    parts = {
        _vertex_id(chain): [
            ProgramOperator(node.operator_id, operators[node.position], node.selectors) for node in chain
        ]
        for chain in chains
    }
    selectors = {
        index: edge.selector.of_operator(consumer.name)
        for index, (edge, consumer) in enumerate(edges)
        if edge.selector is not None
    }
    try:
        program = JobProgram.of(parts, selectors, max_parallelism)
    except NotShippable as error:
        raise NotPicklable(str(error)) from error
    except Exception as error:  # noqa: BLE001 - an object may raise anything when it is pickled
        failure = error
    else:
        for chain in (each for each in chains if len(program.chains[_vertex_id(each)]) > LARGE_BYTES):
            for node in chain:
                warn_of_large(node.name, operators[node.position])
        return program
    for node in (node for chain in chains for node in chain):
        check_picklable(node.name, node.operator, node.selectors)
    raise failure


def _binding(source: StreamNode, sizes: Mapping[int, Size]) -> DataFrameBinding:
    size = sizes[source.position]
    return DataFrameBinding(
        VertexId(source.operator_id), source.name, source.dataframe, size.first_task_manager, size.parallelism
    )


def _query(node: StreamNode, operators: dict[int, Operator], folder: str) -> QueryBinding:
    """Puts a copy of the source, which knows its spool, among the operators."""
    source = copy.copy(operators[node.position])
    assert isinstance(source, SparkStreamSource)
    assert node.spark_stream is not None
    source.spool = source.spool or f"{local(folder)}/{node.operator_id}"
    operators[node.position] = source
    return QueryBinding(node.name, source.spool, node.spark_stream)


def _check_slots(graph: JobGraph, task_managers: int, slots: int) -> None:
    needed, offered = slots_needed(graph), task_managers * slots
    if needed > offered:
        widest = max(graph.vertices, key=lambda vertex: vertex.parallelism)
        managers = f"{task_managers} TaskManager{'s' * (task_managers > 1)}"
        each = f"{slots} slot{'s' * (slots > 1)}{' each' * (task_managers > 1)}"
        raise ClusterTooSmall(
            f"the job needs {needed} slots, and the cluster has {offered} ({managers} with {each}): start it with "
            f"task_managers={math.ceil(needed / slots)} or more, or lower the parallelism, which is "
            f"{widest.parallelism} in {widest.name!r}"
        )
