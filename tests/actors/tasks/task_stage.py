"""A Task on a stage: no dispatcher, no sockets. Tests tell it messages, let it step, and look at what it says.

What a task asks its context for is done at once, and what it pipes to itself waits for `settle`.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pykka

from understudy.actors.actor import Step
from understudy.actors.flow.elements import Element
from understudy.actors.flow.key_selector import KeySelector
from understudy.actors.operators.operator import Operator
from understudy.actors.tasks.job_program import JobProgram, ProgramOperator
from understudy.actors.tasks.task import Task
from understudy.actors.tasks.task_setup import TaskServices
from understudy.actors.tasks.task_state import StateServices
from understudy.messages import (
    ChannelDescriptor,
    ChannelId,
    CheckpointId,
    ExecutionAttemptId,
    InputDescriptor,
    JobId,
    OperatorDescription,
    OperatorId,
    OutputDescriptor,
    Partitioning,
    SlotIndex,
    SubtaskIndex,
    TaskDeployment,
    TaskManagerId,
    TaskMetrics,
    VertexId,
)
from understudy.state import CheckpointStorage, backend_named

ATTEMPT = ExecutionAttemptId("attempt")
JOB = JobId("job")
FIGURES = TaskMetrics(
    attempt_id=ATTEMPT,
    vertex_id=VertexId("v"),
    vertex_name="v",
    subtask_index=SubtaskIndex(0),
    records_in=2,
    records_out=1,
    batches_in=1,
    backpressured_ms=0,
    busy_ms=1,
    status="finished",
)
MAX_STEPS = 1000


class Wire:
    """Both ends of a channel, with all the credit in the world, or none."""

    def __init__(self) -> None:
        self.elements: deque[Element] = deque()
        self.has_credit = True

    def poll(self) -> Element | None:
        return self.elements.popleft() if self.elements else None

    def is_available(self) -> bool:
        return self.has_credit

    def send(self, element: Element) -> None:
        self.elements.append(element)

    def close(self) -> None: ...

    bytes_passed = 0
    usage = 0.0


class Wires:
    """A data plane by channel id."""

    endpoint = "nowhere"

    def __init__(self) -> None:
        self.wires: dict[ChannelId, Wire] = {}

    def open_output(self, descriptor: ChannelDescriptor, _wake: Callable[[], None]) -> Wire:
        return self.wires.setdefault(descriptor.channel_id, Wire())

    def open_input(self, descriptor: ChannelDescriptor, _wake: Callable[[], None], channels: int = 1) -> Wire:
        return self.open_output(descriptor, _wake)


class Heard:
    """Whom the task reports to."""

    address = "owner"

    def __init__(self) -> None:
        self.messages: list[Any] = []

    def tell(self, message: Any) -> None:
        self.messages.append(message)

    def ask(self, message: Any, *, timeout_ms: float | None = None) -> pykka.Future[Any]:
        raise AssertionError(f"a task asks nobody, found {message!r} within {timeout_ms} ms")


class StageContext:
    """A task's context: blocking work is done at once, its outcome comes with the next message."""

    def __init__(self) -> None:
        self.inbox: deque[object] = deque()
        self.clock = self
        self.random = random.Random(0)
        self.ms = 0.0

    def now_ms(self) -> float:
        return self.ms

    def wall_ms(self) -> int:
        return int(self.ms)

    def wake(self) -> None: ...

    def promise(self) -> pykka.Future[Any]:
        return pykka.ThreadingFuture()

    def run_blocking(self, function: Callable[..., Any], *args: Any) -> pykka.Future[Any]:
        future: pykka.Future[Any] = pykka.ThreadingFuture()
        try:
            future.set(function(*args))
        except Exception:  # noqa: BLE001 - the task is to hear of it
            future.set_exception()
        return future

    def pipe_to_self(
        self, future: pykka.Future[Any], success: Callable[[Any], object], failure: Callable[[BaseException], object]
    ) -> None:
        try:
            self.inbox.append(success(future.get()))
        except Exception as error:  # noqa: BLE001 - the same
            self.inbox.append(failure(error))


def channel(number: int) -> ChannelDescriptor:
    here, there = TaskManagerId("tm-0"), TaskManagerId("tm-1")
    return ChannelDescriptor(ChannelId(number), 0, SubtaskIndex(number), SubtaskIndex(0), here, there, "nowhere")


def deployment(inputs: int = 0, **fields: Any) -> TaskDeployment:
    """One subtask with a chain of one operator, with so many input channels, and one output channel: number 9."""
    wires = tuple(channel(number) for number in range(inputs))
    settings: dict[str, Any] = {
        "job_id": JOB,
        "vertex_id": VertexId("v"),
        "vertex_name": "v",
        "subtask_index": SubtaskIndex(0),
        "parallelism": 1,
        "max_parallelism": 128,
        "attempt_id": ATTEMPT,
        "attempt_number": 0,
        "slot": SlotIndex(0),
        "inputs": (InputDescriptor(0, 0, wires),) if inputs else (),
        "outputs": (OutputDescriptor(1, Partitioning.REBALANCE, (channel(9),)),),
        "operators": (OperatorDescription(OperatorId("op"), "op", "operator"),),
    }
    return TaskDeployment(**settings | fields)


class TaskStage:
    """One attempt, started and restored. It sends each batch as it comes, unless it is given a buffer timeout.

    A chain of several operators has the ids "op", "op-1", ...
    """

    def __init__(
        self,
        operator: Operator | Sequence[Operator],
        deployed: TaskDeployment,
        directory: str,
        buffer_timeout_ms: int = 0,
        *,
        key: str | None = None,
        edge_key: str | None = None,
        watermark_warn_ms: int | None = None,
    ) -> None:
        """`key`: of the first operator's input; `edge_key`: by which a hash edge deals out."""
        operators = [operator] if isinstance(operator, Operator) else operator
        ids = [OperatorId(f"op-{place}" if place else "op") for place in range(len(operators))]
        selectors = () if key is None else (KeySelector(key),)
        chain = [ProgramOperator(each, one, selectors) for each, one in zip(ids, operators, strict=True)]
        deployed = replace(deployed, operators=tuple(OperatorDescription(each, each, "operator") for each in ids))
        edge_selectors = {} if edge_key is None else {1: KeySelector(edge_key)}
        program = JobProgram.of({VertexId("v"): chain}, edge_selectors, 128)
        self.owner, self.plane, self.context = Heard(), Wires(), StageContext()
        state = StateServices(CheckpointStorage(directory), backend_named("memory"), 1024)
        services = TaskServices(
            program, self.plane, state, True, buffer_timeout_ms, {}, "tm-1", watermark_warn_ms=watermark_warn_ms
        )
        self.task = Task(deployed, services, self.owner)
        self.task.context = self.context  # type: ignore[assignment]  # what a task uses of it, and no more
        self.task.on_start()
        self.settle()

    def tell(self, *messages: Any) -> None:
        for message in messages:
            self.task.on_receive(message)
            self.settle()

    def settle(self) -> None:
        """Hand the task what came back to it, and let it step until it has nothing to do."""
        for _ in range(MAX_STEPS):
            if self.context.inbox:
                self.task.on_receive(self.context.inbox.popleft())
            elif self.task.step() is not Step.BUSY and not self.context.inbox:
                return
        raise AssertionError(f"the task is still busy after {MAX_STEPS} steps")

    def arrives(self, wire: int, *elements: Element) -> None:
        """Elements on an input channel, which the task takes."""
        self.plane.wires[ChannelId(wire)].elements.extend(elements)
        self.settle()

    def passes(self, ms: float) -> None:
        """Time passes, and the task looks what there is to do."""
        self.context.ms += ms
        self.settle()

    def emitted(self) -> list[Element]:
        """What has been sent on since it was last looked at."""
        wire = self.plane.wires[ChannelId(9)]
        found = list(wire.elements)
        wire.elements.clear()
        return found

    @property
    def watermark_ms(self) -> int:
        """How far event time has come in the task."""
        return self.task._own_loop().time.watermarks.current_ms

    def said(self, kind: type[Any]) -> list[Any]:
        return [message for message in self.owner.messages if isinstance(message, kind)]


def checkpoint(number: int) -> CheckpointId:
    return CheckpointId(number)
