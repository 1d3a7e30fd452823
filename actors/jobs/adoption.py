"""Adoption: whether the tasks of a job that an earlier leader has deployed still run, all of them, and make one graph.

A value machine: offers of TaskManagers in, a verdict out. A job is adopted as a whole, or not at all: where anything
is missing, has ended, is about to end or does not fit, it is started again from its newest checkpoint, which is always
right. Flink restarts all jobs of a JobManager that is lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ...messages import (
    ChannelDescriptor,
    CheckpointId,
    ExecutionState,
    JobGraph,
    OfferedTask,
    RegisterTaskManager,
    TaskManagerId,
)
from ...state.checkpoints.completed_checkpoints import CompletedCheckpoint
from ..job_graph import SubtaskKey, all_subtasks
from .slot_pool import SlotId

ABORTED_AT_MOST = 16
"""Of checkpoints that may have been under way."""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a job cannot go on as it runs."""

    why: str
    may_pass: bool = False
    """Whether later offers may say otherwise."""


@dataclass(frozen=True, slots=True)
class AdoptedTask:
    """One task that runs, and where."""

    task_manager_id: TaskManagerId
    task: OfferedTask

    @property
    def subtask(self) -> SubtaskKey:
        return SubtaskKey(self.task.vertex_id, self.task.subtask_index)

    @property
    def slot(self) -> SlotId:
        return SlotId(self.task_manager_id, self.task.slot)


class Adoption:
    """Of one job, until it is decided."""

    def __init__(self, graph: JobGraph, newest: CompletedCheckpoint | None) -> None:
        """`newest`: the checkpoint that it would be restored from."""
        self._graph = graph
        self._newest = newest
        self._offers: dict[int, RegisterTaskManager] = {}

    @property
    def offers(self) -> tuple[RegisterTaskManager, ...]:
        """The latest of each TaskManager, by its index."""
        return tuple(self._offers[index] for index in sorted(self._offers))

    def offer(self, message: RegisterTaskManager) -> None:
        """A TaskManager of the job is here. It may come again, with what has changed."""
        self._offers[message.index] = message

    def obstacle(self) -> Obstacle | None:
        """Why the job cannot go on as it runs; None: it can."""
        tasks = list(adopted_tasks(self._offers.values()))
        found, wanted = Counter(each.subtask for each in tasks), all_subtasks(self._graph)
        if any(each.task.is_stopping for each in tasks) or (self._newest is not None and self._newest.is_final):
            return Obstacle("it was about to end")
        if missing := [subtask for subtask in wanted if not found[subtask]]:
            return Obstacle(f"{len(missing)} of its {len(wanted)} tasks have not reported", may_pass=True)
        if any(each.task.state is not ExecutionState.RUNNING for each in tasks):
            return Obstacle("not all of its tasks were running", may_pass=True)
        if len(tasks) > len(wanted):
            return Obstacle(f"it has {len(wanted)} tasks, and {len(tasks)} are there")
        return None if _fit_together(tasks) else Obstacle("its tasks were not deployed together")


def adopted_tasks(offers: Iterable[RegisterTaskManager]) -> Iterator[AdoptedTask]:
    return (AdoptedTask(offer.task_manager_id, task) for offer in offers for task in offer.tasks)


def next_channel_id(tasks: Iterable[AdoptedTask]) -> int:
    """Behind all that have been used in what runs."""
    return max((each.channel_id for task in tasks for each in _inputs(task)), default=-1) + 1


def given_up(tasks: Iterable[AdoptedTask], newest_complete: CheckpointId) -> Iterator[CheckpointId]:
    """Checkpoints that may have been under way: nobody will complete them."""
    newest = max((each.task.newest_checkpoint for each in tasks), default=0)
    first = max(newest_complete + 1, newest - ABORTED_AT_MOST + 1)
    return (CheckpointId(each) for each in range(first, newest + 1))


def _fit_together(tasks: list[AdoptedTask]) -> bool:
    """Whether each channel has both its ends, and they run where each takes the other to be."""
    into = {(each, task.task_manager_id) for task in tasks for each in _inputs(task)}
    out_of = {(each, task.task_manager_id) for task in tasks for each in _outputs(task)}
    return (
        {each for each, _ in into} == {each for each, _ in out_of}
        and all(each.consumer_task_manager == where for each, where in into)
        and all(each.producer_task_manager == where for each, where in out_of)
    )


def _inputs(task: AdoptedTask) -> Iterator[ChannelDescriptor]:
    return (channel for each in task.task.inputs for channel in each.channels)


def _outputs(task: AdoptedTask) -> Iterator[ChannelDescriptor]:
    return (channel for each in task.task.outputs for channel in each.channels)
