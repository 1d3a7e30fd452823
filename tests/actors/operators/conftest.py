"""Runs one operator as its task would: with a context, keyed state and a key selector, but without a task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import cloudpickle
import pytest

from understudy.actors.flow.key_selector import KeySelector
from understudy.actors.operators.aggregate import ColumnarAggregate
from understudy.actors.operators.assign_timestamps import AssignTimestamps
from understudy.actors.operators.collector import Collector
from understudy.actors.operators.keyed_operator import KeyedOperator
from understudy.actors.operators.operator import Operator
from understudy.actors.operators.operator_context import OperatorContext
from understudy.actors.operators.timers import Timers
from understudy.messages import ExecutionAttemptId, JobId, KeyedStateHandle, OperatorId, SubtaskIndex
from understudy.state import HeapBackend, OperatorStateBackend, bind_states, handle_reader

O = TypeVar("O", bound=Operator)  # noqa: E741 - an operator


class NoClock:
    def now_ms(self) -> float:
        raise AssertionError("these operators do not look at the clock")

    wall_ms = now_ms


class StillClock:
    def now_ms(self) -> float:
        return 0.0

    def wall_ms(self) -> int:
        return 0


def context() -> OperatorContext:
    return OperatorContext(
        job_id=JobId("job"),
        operator_id=OperatorId("operator-1"),
        name="the-operator",
        vertex_name="vertex",
        subtask_index=SubtaskIndex(0),
        parallelism=1,
        max_parallelism=16,
        attempt_id=ExecutionAttemptId("attempt"),
        attempt_number=0,
        restored=False,
        clock=NoClock(),  # type: ignore[arg-type]
        wake=lambda: None,
        resources={},
    )


@pytest.fixture(scope="session")
def opened() -> Callable[..., Any]:
    """An operator that has travelled to its task, has restored `handles`, and is open; `key` for a keyed one."""

    def open_operator(operator: O, *key: Any, handles: Sequence[KeyedStateHandle] = ()) -> O:
        arrived: O = cloudpickle.loads(cloudpickle.dumps(operator))
        arrived.context = context()
        if isinstance(arrived, AssignTimestamps):  # it looks for how long there was nothing
            arrived.context.clock = StillClock()
        if isinstance(arrived, ColumnarAggregate):
            arrived.keyed_state.restore(handles, handle_reader(None))
        if isinstance(arrived, KeyedOperator):
            backend = HeapBackend(0, 15, 16)
            bind_states(arrived, backend, OperatorStateBackend(), arrived.context.name)
            arrived._backend, arrived._selectors = backend, (KeySelector(*key),)
            arrived.timers = Timers(backend)
        elif not isinstance(arrived, ColumnarAggregate):
            bind_states(arrived, None, OperatorStateBackend(), arrived.context.name)
        arrived.open()
        return arrived

    return open_operator


@pytest.fixture(scope="session")
def run() -> Callable[..., list[Any]]:
    """What an operator emits for these batches, batch by batch."""

    def run_batches(operator: Operator, *batches: Any) -> list[Any]:
        out = Collector()
        for batch in batches:
            operator.process_batch(batch, out)
        return out.drain()

    return run_batches
