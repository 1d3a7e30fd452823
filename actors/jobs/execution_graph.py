"""ExecutionGraph: a job as it runs: its status, and for each parallel subtask the current attempt and those before.

The job's JobMaster owns it and decides; the graph keeps the books, refuses what its transition tables do not allow, and
writes the deployments. A region is a connected component of the JobGraph. Flink: ExecutionGraph, ExecutionVertex.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import chain, count
from types import MappingProxyType

from ...messages import (
    ChannelDescriptor,
    ChannelId,
    ExecutionAttemptId,
    ExecutionState,
    FailureCause,
    InputDescriptor,
    JobEdge,
    JobGraph,
    JobStatus,
    OutputDescriptor,
    Partitioning,
    SubtaskIndex,
    TaskDeployment,
    TaskManagerId,
    VertexId,
)
from ...state.checkpoints.attempt_numbers import NO_ATTEMPT, AttemptNumbers, StandaloneAttemptNumbers
from ..errors import IllegalTransition
from ..idle_groups import idle_groups
from ..job_graph import (
    Region,
    SubtaskKey,
    all_subtasks,
    loop_edges,
    pointwise_producers,
    regions,
    subtasks_of,
    vertex_of,
    vertices_in_rounds,
)
from ..restore.restore_points import NO_RESTORE, RegionRestore
from .adoption import AdoptedTask, next_channel_id
from .execution import Execution, UpdateResult
from .slot_pool import SlotId

ATTEMPTS_KEPT = 16
"""Earlier attempts remembered per subtask. Flink: job manager option `max-attempts-history-size`."""

_S = JobStatus

JOB_TRANSITIONS: Mapping[JobStatus, frozenset[JobStatus]] = MappingProxyType(
    {
        _S.CREATED: frozenset({_S.RUNNING, _S.RESTARTING, _S.FAILING, _S.CANCELLING}),
        _S.RUNNING: frozenset({_S.RESTARTING, _S.FAILING, _S.CANCELLING, _S.FINISHED}),
        _S.RESTARTING: frozenset({_S.RUNNING, _S.FAILING, _S.CANCELLING}),
        _S.FAILING: frozenset({_S.FAILED}),
        _S.CANCELLING: frozenset({_S.CANCELED}),
        _S.FINISHED: frozenset(),
        _S.CANCELED: frozenset(),
        _S.FAILED: frozenset(),
    }
)


class ExecutionGraph:
    """The books of one job. Built from a valid JobGraph; no subtask has an attempt yet."""

    def __init__(self, graph: JobGraph, numbers: AttemptNumbers | None = None) -> None:
        self._graph = graph
        self._numbers = numbers or StandaloneAttemptNumbers()
        self._status = JobStatus.CREATED
        self._regions = regions(graph)
        self._region_of = {vertex_id: region for region in self._regions for vertex_id in region}
        self._subtasks = all_subtasks(graph)
        self._loop_edges, self._in_rounds = loop_edges(graph), vertices_in_rounds(graph)
        self._idle_groups = idle_groups(graph)
        self._current: dict[SubtaskKey, Execution] = {}
        self._by_id: dict[ExecutionAttemptId, Execution] = {}
        self._in_order: tuple[Execution, ...] | None = None
        """All current attempts; None: to be collected again."""
        self._earlier: dict[SubtaskKey, deque[Execution]] = {s: deque(maxlen=ATTEMPTS_KEPT) for s in self._subtasks}
        self._channel_ids = count()
        self.wall_ms = 0
        """The time of the event that is handled now."""

    # -- the job

    @property
    def status(self) -> JobStatus:
        return self._status

    def move(self, status: JobStatus) -> None:
        """Give the job another status; raises IllegalTransition."""
        if status not in JOB_TRANSITIONS[self._status]:
            name, current = self._graph.name, self._status.value
            raise IllegalTransition(f"job {name!r} is {current}: it cannot become {status.value}")
        self._status = status

    def regions(self) -> tuple[Region, ...]:
        return self._regions

    def region_of(self, vertex_id: VertexId) -> Region:
        return self._region_of[vertex_id]

    # -- attempts

    def current(self, vertex_id: VertexId, subtask_index: int) -> Execution | None:
        """The current attempt of one subtask; None before the first."""
        return self._current.get(SubtaskKey(vertex_id, SubtaskIndex(subtask_index)))

    def execution(self, attempt_id: ExecutionAttemptId) -> Execution | None:
        """The current attempt with this id; None for one that was replaced, or never was."""
        return self._by_id.get(attempt_id)

    def executions(self, vertices: Collection[VertexId] | None = None) -> tuple[Execution, ...]:
        """Current attempts, of these vertices or of all; vertex by vertex in topological order."""
        if vertices is not None:
            return self._executions(vertices)
        if self._in_order is None:
            self._in_order = self._executions(None)
        return self._in_order

    def all_earlier(self) -> Iterator[Execution]:
        """Of all subtasks, each one's oldest first."""
        return chain.from_iterable(self._earlier.values())

    def earlier(self, subtask: SubtaskKey) -> tuple[Execution, ...]:
        """The attempts before the current one, oldest first; at most ATTEMPTS_KEPT."""
        return tuple(self._earlier[subtask])

    def all_running(self, vertices: Collection[VertexId] | None = None) -> bool:
        """Whether every subtask, of these vertices or of all, has an attempt that runs."""
        return self._all_are({ExecutionState.RUNNING}, vertices)

    def all_finished(self) -> bool:
        """Whether every subtask has an attempt that finished."""
        return self._all_are({ExecutionState.FINISHED})

    def all_running_or_finished(self) -> bool:
        """Whether every subtask has an attempt that runs or has finished: nothing has yet to start."""
        return self._all_are({ExecutionState.RUNNING, ExecutionState.FINISHED})

    def new_attempts(self, vertices: Collection[VertexId], new_id: Callable[[str], str]) -> tuple[Execution, ...]:
        """Begin a new attempt of each subtask of these vertices; it waits for its deployment.

        `new_id` makes a fresh id with a prefix. Raises IllegalTransition when an earlier attempt has not ended: two
        attempts of one subtask never run side by side.
        """
        subtasks = tuple(self._subtasks_in(vertices))
        for subtask in subtasks:
            known = self._current.get(subtask)
            if known is not None and not known.state.is_terminal:
                raise IllegalTransition(f"{known!r} has not ended: no new attempt may begin")
        return tuple(self._begin(subtask, ExecutionAttemptId(new_id("attempt"))) for subtask in subtasks)

    def adopt(self, tasks: Collection[AdoptedTask]) -> tuple[Execution, ...]:
        """Take in attempts that run already, deployed by another JobManager: one of each subtask."""
        for each in tasks:
            execution = self._begin(each.subtask, each.task.attempt_id, each.task.attempt_number)
            execution.deploy(each.slot)
            execution.update(ExecutionState.RUNNING)
        self._channel_ids = count(next_channel_id(tasks))
        return self.executions()

    def update(
        self, attempt_id: ExecutionAttemptId, state: ExecutionState, failure: FailureCause | None = None
    ) -> UpdateResult:
        """Take a report about an attempt; see `Execution.update`."""
        execution = self._by_id.get(attempt_id)
        return UpdateResult.UNKNOWN if execution is None else execution.update(state, failure)

    # -- deployment

    def deployments(
        self,
        vertices: Collection[VertexId],
        placement: Mapping[SubtaskKey, SlotId],
        endpoints: Mapping[TaskManagerId, str],
        restore: RegionRestore = NO_RESTORE,
    ) -> tuple[TaskDeployment, ...]:
        """Put the new attempts of whole regions into their slots, and write what their TaskManagers must know.

        In the order of `executions(vertices)`. `endpoints` are the data endpoints of all TaskManagers of the
        placement. Every channel gets an id that was never used in this job.
        """
        executions = self.executions(vertices)
        for execution in executions:
            execution.deploy(placement[execution.subtask])
        wiring = _Wiring(self._graph, self._loop_edges, self._idle_groups)
        for index, edge in enumerate(self._graph.edges):
            if edge.source in vertices:
                self._wire(wiring, index, placement, endpoints)
        return tuple(self._deployment(execution, wiring, restore) for execution in executions)

    def _wire(
        self,
        wiring: _Wiring,
        index: int,
        placement: Mapping[SubtaskKey, SlotId],
        endpoints: Mapping[TaskManagerId, str],
    ) -> None:
        """Make all channels of one edge: one to one, or each to each."""
        edge = self._graph.edges[index]
        source, target = vertex_of(self._graph, edge.source), vertex_of(self._graph, edge.target)
        for producer in subtasks_of(source):
            for consumer in subtasks_of(target):
                if edge.partitioning is Partitioning.FORWARD and producer.subtask_index not in pointwise_producers(
                    source.parallelism, target.parallelism, consumer.subtask_index
                ):
                    continue
                wiring.add(
                    ChannelDescriptor(
                        channel_id=ChannelId(next(self._channel_ids)),
                        edge=index,
                        producer_subtask=producer.subtask_index,
                        consumer_subtask=consumer.subtask_index,
                        producer_task_manager=placement[producer].task_manager_id,
                        consumer_task_manager=placement[consumer].task_manager_id,
                        producer_endpoint=endpoints[placement[producer].task_manager_id],
                        feedback=edge.feedback,
                    )
                )

    def _deployment(self, execution: Execution, wiring: _Wiring, restore: RegionRestore) -> TaskDeployment:
        vertex = vertex_of(self._graph, execution.vertex_id)
        assert execution.slot is not None, f"{execution!r} has no slot"
        return TaskDeployment(
            job_id=self._graph.job_id,
            vertex_id=vertex.vertex_id,
            vertex_name=vertex.name,
            subtask_index=execution.subtask_index,
            parallelism=vertex.parallelism,
            max_parallelism=vertex.max_parallelism,
            attempt_id=execution.attempt_id,
            attempt_number=execution.number,
            slot=execution.slot.slot_index,
            inputs=wiring.inputs_of(execution.subtask),
            outputs=wiring.outputs_of(execution.subtask),
            operators=vertex.operators,
            in_rounds=vertex.vertex_id in self._in_rounds,
            restored_checkpoint_id=restore.checkpoint_id,
            restored=restore.states.get(execution.subtask, ()),
            restored_root=restore.root,
            restored_savepoint=restore.is_savepoint,
            is_failover=restore.is_failover,
            earlier_inlets=restore.earlier_inlets,
            finishing=restore.finishing,
        )

    # -- helpers

    def _executions(self, vertices: Collection[VertexId] | None) -> tuple[Execution, ...]:
        found = (self._current.get(subtask) for subtask in self._subtasks_in(vertices))
        return tuple(execution for execution in found if execution is not None)

    def _subtasks_in(self, vertices: Collection[VertexId] | None) -> Iterator[SubtaskKey]:
        return (subtask for subtask in self._subtasks if vertices is None or subtask.vertex_id in vertices)

    def _all_are(self, states: Collection[ExecutionState], vertices: Collection[VertexId] | None = None) -> bool:
        attempts = (self._current.get(subtask) for subtask in self._subtasks_in(vertices))
        return all(execution is not None and execution.state in states for execution in attempts)

    def _begin(self, subtask: SubtaskKey, attempt_id: ExecutionAttemptId, number: int | None = None) -> Execution:
        """`number`: that of an attempt which has one; else it is the next."""
        previous = self._current.get(subtask)
        if number is None:
            number = self._numbers.next_after(NO_ATTEMPT if previous is None else previous.number)
        if previous is not None:
            del self._by_id[previous.attempt_id]
            self._earlier[subtask].append(previous)
        execution = Execution(subtask, number, attempt_id, lambda: self.wall_ms)
        execution.schedule()
        self._current[subtask] = self._by_id[attempt_id] = execution
        self._in_order = None
        return execution


class _Wiring:
    """All channels of one deployment, by edge index and subtask index of either end. `inside`: the edges in loops."""

    def __init__(self, graph: JobGraph, inside: frozenset[int], groups: Mapping[SubtaskKey, int]) -> None:
        self._graph, self._inside, self._groups = graph, inside, groups
        self._into: defaultdict[tuple[int, SubtaskIndex], list[ChannelDescriptor]] = defaultdict(list)
        self._out_of: defaultdict[tuple[int, SubtaskIndex], list[ChannelDescriptor]] = defaultdict(list)

    def add(self, channel: ChannelDescriptor) -> None:
        self._into[channel.edge, channel.consumer_subtask].append(channel)
        self._out_of[channel.edge, channel.producer_subtask].append(channel)

    def inputs_of(self, subtask: SubtaskKey) -> tuple[InputDescriptor, ...]:
        vertex_id, at = subtask
        return tuple(
            InputDescriptor(
                index,
                edge.input_index,
                tuple(self._into[index, at]),
                vertex_of(self._graph, edge.source).name,
                index in self._inside,
                tuple(self._groups[SubtaskKey(edge.source, each.producer_subtask)] for each in self._into[index, at]),
            )
            for index, edge in enumerate(self._graph.edges)
            if edge.target == vertex_id
        )

    def outputs_of(self, subtask: SubtaskKey) -> tuple[OutputDescriptor, ...]:
        vertex_id, at = subtask
        return tuple(
            OutputDescriptor(
                index,
                edge.partitioning,
                tuple(self._out_of[index, at]),
                edge.output_tag,
                _keyed_operator(self._graph, edge),
                index in self._inside,
            )
            for index, edge in enumerate(self._graph.edges)
            if edge.source == vertex_id
        )


def _keyed_operator(graph: JobGraph, edge: JobEdge) -> str:
    """The name of the operator that takes an edge's records by key; empty for another edge."""
    if edge.partitioning is not Partitioning.HASH:
        return ""
    return next(vertex.operators[0].name for vertex in graph.vertices if vertex.vertex_id == edge.target)
