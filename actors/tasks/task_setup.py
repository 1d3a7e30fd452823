"""Builds one attempt's parts from its deployment: operators with their context, channels, gate, outputs, state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...messages import Message, OperatorId, OutputDescriptor, Partitioning, TaskDeployment
from ..async_calls.factory import async_calls
from ..barriers.barrier_buffer import BarrierBuffer
from ..barriers.barrier_tracker import BarrierTracker
from ..barriers.input_gate import AlignmentClock, GateChannel, InputGate
from ..compiled import equip
from ..context import ActorContext, Clock
from ..flow.channels import DataPlane, InputChannel
from ..flow.known_keys_input import KnownKeysInput
from ..flow.numbered_by_key import NumberedByKey
from ..flow.output_buffer import OutputBuffer
from ..flow.outputs import OutputEdge, TaskOutputs
from ..flow.partitioner import Partitioner, make_partitioner
from ..operators.aggregate import ColumnarAggregate, LocalAggregate
from ..operators.collector import Collector
from ..operators.operator import Operator
from ..operators.operator_context import OperatorContext, unheard
from ..operators.outlasting_threads import OtherThreads, no_threads
from ..operators.task_access import TaskAccess
from ..stacks import NO_STACKS, Stacks
from .job_program import JobProgram
from .operator_chain import OperatorChain, plain_collector
from .task_state import StateServices, TaskState

WhenFailed = Callable[[BaseException], None]
Report = Callable[[Message], None]


def ignore_failure(error: BaseException) -> None:
    """Failures are reported to the JobManager in any case."""


def leave_garbage() -> None:
    """Python looks for it now and then in any case."""


@dataclass(frozen=True, slots=True)
class TaskServices:
    """What a TaskManager lends to its tasks."""

    program: JobProgram
    data_plane: DataPlane
    state: StateServices
    exactly_once: bool
    buffer_timeout_ms: int
    """How long a task may keep what it emits to send it in larger batches; 0: it sends each at once."""
    resources: dict[str, Any]
    task_manager_name: str
    when_failed: WhenFailed = ignore_failure
    """Called with what fails an attempt, before that is reported; what it raises itself goes to the dispatcher."""
    stacks: Stacks = NO_STACKS
    process_figures: Callable[[], dict[str, float]] = dict
    """What is known of the process, by name."""
    watermark_warn_ms: int | None = None
    """Event time that stands still for so long while records come is logged; None: it is not."""
    make_collector: Callable[[Operator], Collector] = plain_collector
    threads: OtherThreads = no_threads
    collect_garbage: Callable[[], object] = leave_garbage
    """Called when tasks have ended: what they had may be in reference cycles."""


@dataclass(frozen=True, slots=True)
class TaskParts:
    """The parts of a running task."""

    chain: OperatorChain
    gate: InputGate
    outputs: TaskOutputs
    state: TaskState


def build_task(deployment: TaskDeployment, services: TaskServices, context: ActorContext, report: Report) -> TaskParts:
    """Open the channels and put everything together; nothing is restored or opened for records yet. `report` takes what
    operators say to the job.
    """
    operators = services.program.chain(deployment.vertex_id)
    access = TaskAccess(
        services.state.storage,
        services.state.open_storage,
        deployment.restored_root,
        deployment.restored_savepoint,
        deployment.earlier_inlets,
        partial(_run_aside, context),
        context.promise,
    )
    clock, wake, resources = context.clock, context.wake, services.resources
    place(
        operators,
        deployment,
        clock=clock,
        wake=wake,
        resources=resources,
        access=access,
        report=report,
        threads=services.threads,
    )
    outputs = _outputs(deployment, services, context, operators[-1])
    state = TaskState(deployment, by_id(operators), services.state)
    loop, chance = services.state.call_loop, context.random
    state.give_calls(
        lambda operator, backend: async_calls(
            operator, backend, loop(), lambda retry, tries: retry.delay_ms(tries, chance)
        )
    )
    return TaskParts(
        chain=OperatorChain(
            operators, outputs.emit, outputs.send_watermark, services.make_collector, in_rounds=deployment.in_rounds
        ),
        gate=_gate(deployment, services, context, operators[0]),
        outputs=outputs,
        state=state,
    )


def place(
    operators: Sequence[Operator],
    deployment: TaskDeployment,
    *,
    clock: Clock,
    wake: Callable[[], None],
    resources: dict[str, Any],
    access: TaskAccess | None = None,
    report: Report = unheard,
    threads: OtherThreads = no_threads,
) -> None:
    """Tell the operators of the deployment's chain where they run, and equip those that are compiled."""
    for operator, description in zip(operators, deployment.operators, strict=True):
        operator.context = OperatorContext(
            job_id=deployment.job_id,
            operator_id=description.operator_id,
            name=description.name,
            vertex_name=deployment.vertex_name,
            subtask_index=deployment.subtask_index,
            parallelism=deployment.parallelism,
            max_parallelism=deployment.max_parallelism,
            attempt_id=deployment.attempt_id,
            attempt_number=deployment.attempt_number,
            restored=deployment.restored_checkpoint_id is not None,
            clock=clock,
            wake=wake,
            resources=resources,
            task=access,
            is_failover=deployment.is_failover,
            report=report,
            threads=threads,
        )
        equip(operator)


@dataclass(frozen=True, slots=True)
class DoneAside:
    """To the task itself: what a source had done off its thread has come to this."""

    then: Callable[[Any], object]
    outcome: Any


def _run_aside(
    context: ActorContext,
    work: Callable[[], Any],
    done: Callable[[Any], object],
    failed: Callable[[BaseException], object],
) -> None:
    context.pipe_to_self(context.run_blocking(work), partial(DoneAside, done), partial(DoneAside, failed))


def by_id(operators: Sequence[Operator]) -> dict[OperatorId, Operator]:
    """Operators that have been placed, as TaskState wants them."""
    return {operator.context.operator_id: operator for operator in operators}


def _gate(deployment: TaskDeployment, services: TaskServices, context: ActorContext, first: Operator) -> InputGate:
    count = sum(len(edge.channels) for edge in deployment.inputs)
    channels = [
        GateChannel(
            _read_by(first, services.data_plane.open_input(descriptor, context.wake, count)),
            edge.input_index,
            edge.edge,
            descriptor.producer_subtask,
            edge.in_loop,
            descriptor.feedback,
            group,
        )
        for edge in deployment.inputs
        for descriptor, group in zip(edge.channels, edge.idle_groups or [None] * len(edge.channels), strict=True)
    ]
    if not channels:
        return InputGate((), None)
    feedback = frozenset(index for index, each in enumerate(channels) if each.feedback)
    is_aligned = services.exactly_once or feedback  # records on their way round a loop are in the snapshot or lost
    handler = BarrierBuffer(len(channels), feedback) if is_aligned else BarrierTracker(len(channels))
    return InputGate(channels, handler, AlignmentClock(context.clock.now_ms))


def _read_by(operator: Operator, channel: InputChannel) -> InputChannel:
    if isinstance(operator, ColumnarAggregate) and operator.takes_partials:
        return KnownKeysInput(channel, operator.known_keys)
    return channel


def _partitioner(
    edge: OutputDescriptor, deployment: TaskDeployment, services: TaskServices, local: frozenset[int], by_number: bool
) -> Partitioner:
    made = make_partitioner(
        edge.partitioning,
        channels=len(edge.channels),
        selector=services.program.edge_selector(edge.edge),
        max_parallelism=services.program.max_parallelism,
        subtask_index=deployment.subtask_index,
        local=local,
    )
    return NumberedByKey(made, len(edge.channels)) if by_number else made


def _may_number_keys(deployment: TaskDeployment) -> bool:
    """Whether there is one edge, by key. In a loop rows have rounds, which their slots do not say."""
    edges = [(edge.partitioning, edge.in_loop) for edge in deployment.outputs]
    return edges == [(Partitioning.HASH, False)] and not deployment.in_rounds


def _outputs(deployment: TaskDeployment, services: TaskServices, context: ActorContext, last: Operator) -> TaskOutputs:
    local_of = {
        edge.edge: frozenset(index for index, channel in enumerate(edge.channels) if channel.is_local)
        for edge in deployment.outputs
    }
    by_number = isinstance(last, LocalAggregate) and _may_number_keys(deployment)
    if isinstance(last, LocalAggregate):
        last.emits_slots = by_number
    edges = [
        OutputEdge(
            _partitioner(edge, deployment, services, local_of[edge.edge], by_number),
            tuple(services.data_plane.open_output(descriptor, context.wake) for descriptor in edge.channels),
            OutputBuffer(len(edge.channels), services.buffer_timeout_ms),
            producer=deployment.operators[-1].name,
            keyed=edge.keyed_operator,
            output_tag=edge.output_tag,
            local=local_of[edge.edge],
            in_loop=edge.in_loop,
            feedback=any(channel.feedback for channel in edge.channels),
        )
        for edge in deployment.outputs
    ]
    return TaskOutputs(edges, context.clock)
