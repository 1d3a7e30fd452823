"""ExecutionGraph: job status, attempts and their history, deployments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.actors.errors import IllegalTransition
from understudy.actors.job_graph import SubtaskKey, subtasks_of
from understudy.actors.jobs.execution import Execution, UpdateResult
from understudy.actors.jobs.execution_graph import ATTEMPTS_KEPT, JOB_TRANSITIONS, ExecutionGraph
from understudy.actors.jobs.slot_pool import SlotId
from understudy.actors.restore.restore_points import RegionRestore
from understudy.messages import (
    ChannelDescriptor,
    CheckpointId,
    ExecutionAttemptId,
    ExecutionState,
    JobGraph,
    JobStatus,
    Partitioning,
    SlotIndex,
    SubtaskIndex,
    SubtaskState,
    TaskDeployment,
    TaskManagerId,
    VertexId,
    decode,
    encode,
)

from ..graphs import edge, graph, source, vertex

S = ExecutionState
READ, COUNT, LONE = VertexId("read"), VertexId("count"), VertexId("lone")
PIPELINE = graph(source("read", 2), vertex("count", 3), source("lone"), edges=[edge("read", "count")])


def new_ids() -> Callable[[str], str]:
    numbers = count()
    return lambda prefix: f"{prefix}-{next(numbers)}"


def deploy(
    executions: ExecutionGraph, job: JobGraph, vertices: Collection[VertexId], new_id: Callable[[str], str]
) -> tuple[TaskDeployment, ...]:
    """Subtask i of every vertex on TaskManager i."""
    executions.new_attempts(vertices, new_id)
    subtasks = [subtask for one in job.vertices for subtask in subtasks_of(one)]
    placement = {s: SlotId(TaskManagerId(f"tm-{s.subtask_index}"), SlotIndex(0)) for s in subtasks}
    endpoints = {slot.task_manager_id: f"tcp://{slot.task_manager_id}" for slot in placement.values()}
    return executions.deployments(vertices, placement, endpoints)


def report(attempts: Collection[Execution], state: ExecutionState) -> None:
    for attempt in attempts:
        attempt.update(state)


class TestStatus:
    def test_the_table_names_every_status_and_leaves_no_terminal_one(self) -> None:
        assert set(JOB_TRANSITIONS) == set(JobStatus)
        for status, targets in JOB_TRANSITIONS.items():
            assert status.is_terminal == (not targets)

    @pytest.mark.parametrize(
        "path",
        [
            [JobStatus.RUNNING, JobStatus.FINISHED],
            [JobStatus.RUNNING, JobStatus.RESTARTING, JobStatus.RUNNING, JobStatus.FAILING, JobStatus.FAILED],
            [JobStatus.CANCELLING, JobStatus.CANCELED],
        ],
    )
    def test_a_job_lives(self, path: list[JobStatus]) -> None:
        executions = ExecutionGraph(PIPELINE)
        assert executions.status is JobStatus.CREATED
        for status in path:
            executions.move(status)
            assert executions.status is status

    def test_what_the_table_does_not_allow_is_refused(self) -> None:
        with pytest.raises(IllegalTransition, match="job 'test job' is created: it cannot become finished"):
            ExecutionGraph(PIPELINE).move(JobStatus.FINISHED)


class TestAttempts:
    def test_there_is_none_before_the_first(self) -> None:
        executions = ExecutionGraph(PIPELINE)
        assert executions.executions() == ()
        assert executions.current(READ, 0) is None
        assert not executions.all_running()
        assert not executions.all_finished()

    def test_each_subtask_gets_one_with_an_id_of_its_own(self) -> None:
        executions = ExecutionGraph(PIPELINE)
        attempts = executions.new_attempts([READ, COUNT], new_ids())

        assert [(a.vertex_id, a.subtask_index) for a in attempts] == [
            *((READ, 0), (READ, 1), (COUNT, 0), (COUNT, 1), (COUNT, 2))
        ]
        assert len({a.attempt_id for a in attempts}) == 5
        assert {a.state for a in attempts} == {S.SCHEDULED}
        assert executions.executions() == executions.executions([READ, COUNT]) == attempts
        assert executions.current(COUNT, 1) is executions.execution(attempts[3].attempt_id) is attempts[3]
        assert executions.executions([LONE]) == ()

    def test_all_running_and_all_finished_look_at_every_subtask(self) -> None:
        executions, new_id = ExecutionGraph(PIPELINE), new_ids()
        deploy(executions, PIPELINE, [READ, COUNT], new_id)
        report(executions.executions(), S.RUNNING)
        assert executions.all_running([READ, COUNT])
        assert not executions.all_running()

        deploy(executions, PIPELINE, [LONE], new_id)
        report(executions.executions([LONE]), S.FINISHED)
        assert not executions.all_finished()
        report(executions.executions(), S.FINISHED)
        assert executions.all_finished()

    def test_a_restart_replaces_them_and_remembers_the_old_ones(self) -> None:
        executions, new_id = ExecutionGraph(PIPELINE), new_ids()
        (old,) = executions.new_attempts([LONE], new_id)
        old.fail(None)
        (new,) = executions.new_attempts([LONE], new_id)

        assert (old.number, new.number) == (0, 1)
        assert executions.current(LONE, 0) is new
        assert executions.execution(old.attempt_id) is None
        assert executions.update(old.attempt_id, S.RUNNING) is UpdateResult.UNKNOWN
        assert executions.earlier(old.subtask) == (old,)

    def test_two_never_run_side_by_side(self) -> None:
        executions, new_id = ExecutionGraph(PIPELINE), new_ids()
        (running,) = executions.new_attempts([LONE], new_id)
        with pytest.raises(IllegalTransition, match="has not ended: no new attempt may begin"):
            executions.new_attempts([READ, LONE], new_id)
        assert executions.executions() == (running,)

    def test_history_is_bounded(self) -> None:
        executions, new_id = ExecutionGraph(PIPELINE), new_ids()
        for _ in range(ATTEMPTS_KEPT + 5):
            for attempt in executions.new_attempts([LONE], new_id):
                attempt.cancel()
        kept = executions.earlier(SubtaskKey(LONE, SubtaskIndex(0)))
        assert [attempt.number for attempt in kept] == list(range(4, ATTEMPTS_KEPT + 4))

    def test_a_report_about_an_unknown_attempt_is_named_so(self) -> None:
        assert ExecutionGraph(PIPELINE).update(ExecutionAttemptId("x"), S.RUNNING) is UpdateResult.UNKNOWN


def test_regions_are_found_by_vertex() -> None:
    executions = ExecutionGraph(PIPELINE)
    assert executions.regions() == (frozenset({READ, COUNT}), frozenset({LONE}))
    assert executions.region_of(COUNT) == frozenset({READ, COUNT})


def ends(channels: Collection[ChannelDescriptor]) -> list[tuple[int, int]]:
    return [(channel.producer_subtask, channel.consumer_subtask) for channel in channels]


class TestDeployments:
    def test_say_what_a_task_manager_must_know(self) -> None:
        executions = ExecutionGraph(PIPELINE)
        attempts = executions.new_attempts([LONE], new_ids())
        key, state = SubtaskKey(LONE, SubtaskIndex(0)), SubtaskState({})
        slot = SlotId(TaskManagerId("tm-9"), SlotIndex(3))

        (deployment,) = executions.deployments([LONE], {key: slot}, {}, RegionRestore(CheckpointId(5), {key: (state,)}))

        assert deployment == TaskDeployment(
            job_id=PIPELINE.job_id,
            vertex_id=LONE,
            vertex_name="lone",
            subtask_index=SubtaskIndex(0),
            parallelism=1,
            max_parallelism=128,
            attempt_id=attempts[0].attempt_id,
            attempt_number=0,
            slot=SlotIndex(3),
            inputs=(),
            outputs=(),
            operators=PIPELINE.vertices[2].operators,
            restored_checkpoint_id=CheckpointId(5),
            restored=(state,),
        )
        assert decode(encode(deployment)) == deployment
        assert (attempts[0].state, attempts[0].slot) == (S.DEPLOYING, slot)

    def test_a_channel_names_both_ends_and_where_to_connect(self) -> None:
        deployments = deploy(ExecutionGraph(PIPELINE), PIPELINE, [READ, COUNT], new_ids())
        channel = deployments[4].inputs[0].channels[1]
        assert ends([channel]) == [(1, 2)]
        assert (channel.producer_task_manager, channel.consumer_task_manager) == ("tm-1", "tm-2")
        assert channel.producer_endpoint == "tcp://tm-1"

    def test_a_forward_edge_joins_equal_indexes(self) -> None:
        job = graph(source("a", 2), vertex("b", 2), edges=[edge("a", "b", Partitioning.FORWARD)])
        deployments = deploy(ExecutionGraph(job), job, [VertexId("a"), VertexId("b")], new_ids())
        assert [ends(d.outputs[0].channels) for d in deployments[:2]] == [[(0, 0)], [(1, 1)]]
        assert [ends(d.inputs[0].channels) for d in deployments[2:]] == [[(0, 0)], [(1, 1)]]

    @pytest.mark.parametrize("partitioning", [Partitioning.HASH, Partitioning.REBALANCE, Partitioning.BROADCAST])
    def test_any_other_edge_joins_each_with_each_in_subtask_order(self, partitioning: Partitioning) -> None:
        joined = edge("a", "b", partitioning, output_tag="late", input_index=1)
        job = graph(source("a", 2), vertex("b", 3), edges=[joined])
        deployments = deploy(ExecutionGraph(job), job, [VertexId("a"), VertexId("b")], new_ids())

        (output,), (input_,) = deployments[1].outputs, deployments[3].inputs
        assert ends(output.channels) == [(1, 0), (1, 1), (1, 2)]
        assert ends(input_.channels) == [(0, 1), (1, 1)]
        assert (output.edge, output.partitioning, output.output_tag) == (0, partitioning, "late")
        assert (input_.edge, input_.input_index) == (0, 1)

    def test_a_restart_never_uses_a_channel_id_again(self) -> None:
        executions, new_id = ExecutionGraph(PIPELINE), new_ids()
        seen: set[int] = set()
        for _ in range(3):
            deployments = deploy(executions, PIPELINE, [READ, COUNT], new_id)
            ids = {c.channel_id for d in deployments for output in d.outputs for c in output.channels}
            assert len(ids) == 6
            assert not ids & seen
            seen |= ids
            report(executions.executions(), S.FAILED)

    @given(data=st.data())
    def test_producers_and_consumers_are_told_the_same_channels(self, data: st.DataObject) -> None:
        sizes = data.draw(st.lists(st.integers(1, 4), min_size=2, max_size=4))
        vertices = [source("v0", sizes[0]), *(vertex(f"v{n}", size) for n, size in enumerate(sizes[1:], start=1))]
        edges = [
            edge(f"v{one}", f"v{other}", data.draw(st.sampled_from(kinds)))
            for other in range(1, len(sizes))
            for one in data.draw(st.lists(st.integers(0, other - 1), min_size=1, max_size=3))
            for kinds in [list(Partitioning) if sizes[one] == sizes[other] else list(Partitioning)[1:]]
        ]
        job = graph(*vertices, edges=edges)
        deployments = deploy(ExecutionGraph(job), job, [v.vertex_id for v in vertices], new_ids())

        sent = Counter(c for d in deployments for output in d.outputs for c in output.channels)
        received = Counter(c for d in deployments for input_ in d.inputs for c in input_.channels)
        assert sent == received
        assert len({channel.channel_id for channel in sent}) == sent.total()
