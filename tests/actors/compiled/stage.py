"""Runs one keyed operator by itself, compiled and interpreted, on the same batches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from understudy.actors.compiled import emitted_schema, equip
from understudy.actors.flow.elements import Batch, TimedBatch
from understudy.actors.flow.key_selector import KeySelector
from understudy.actors.flow.records import rows_of
from understudy.actors.operators.collector import Collector
from understudy.actors.operators.keyed_operator import KeyedOperator
from understudy.actors.operators.operator_context import OperatorContext
from understudy.actors.operators.timers import Timers
from understudy.actors.tasks.operator_hooks import blame
from understudy.messages import CheckpointId, ExecutionAttemptId, JobId, KeyedStateHandle, OperatorId, SubtaskIndex
from understudy.state import HeapBackend, OperatorStateBackend, bind_states, declared_states
from understudy.state.checkpoints.assignment import cut_handle
from understudy.state.keys.key_groups import key_group_range

MAX_PARALLELISM = 128


class Stage:
    """One operator, open. `key`: as `key_by` takes it. `subtask`: its index, and how many there are.

    `restored`: what other stages' `snapshot` gave.
    """

    def __init__(
        self,
        operator: KeyedOperator,
        *key: Any,
        schema: pa.Schema | None = None,
        subtask: tuple[int, int] = (0, 1),
        restored: Iterable[KeyedStateHandle] = (),
    ) -> None:
        self.operator = operator
        operator.context = _context(type(operator).__name__, *subtask)
        equip(operator)
        operator._selectors = (KeySelector(*(key or ("key",))),)
        if schema is not None:
            self.schema = emitted_schema(operator, schema)
        own = key_group_range(MAX_PARALLELISM, subtask[1], subtask[0])
        groups = range(own[0], own[-1] + 1)
        self.groups = groups
        self.backend = operator.keyed_state or HeapBackend(groups[0], groups[-1], MAX_PARALLELISM)
        shares = [share for handle in restored if (share := cut_handle(handle, groups)) is not None]
        if shares:
            self.backend.restore(shares, lambda handle: handle.data or b"")
        bind_states(operator, self.backend, OperatorStateBackend())
        operator._backend = self.backend
        operator.timers = Timers(self.backend)
        operator.open()
        operator._opened()

    def process(self, *batches: Batch) -> list[Batch]:
        out = Collector()
        for batch in batches:
            self.operator.process_batch(batch, out)
        return out.drain()

    def records(self, *batches: Batch) -> list[Any]:
        """What is emitted for these batches, as records."""
        return [record for batch in self.process(*batches) for record in records_of(batch)]

    def timed(self, batch: Batch, times: Sequence[int] | None) -> list[tuple[Any, int | None]]:
        """What is emitted for these records with these event times, each with its own."""
        out = Collector()
        self.operator.timestamps = None if times is None else np.array(times, np.int64)
        with blame(self.operator):
            self.operator.process_batch(batch, out)
        self.operator.timestamps = None
        return stamped(out)

    def advance(self, watermark_ms: int, most: int | None = None) -> list[tuple[Any, int | None]]:
        """The same for what is due by this watermark, or for the first `most` parts of it."""
        out = Collector()
        self.operator.watermark = watermark_ms
        while self.operator._advance(watermark_ms, out) and most != 0:
            most = None if most is None else most - 1
        return stamped(out)

    def snapshot(self) -> list[KeyedStateHandle]:
        handle = self.backend.snapshot(CheckpointId(1))(None)  # type: ignore[arg-type]
        return [] if handle is None else [handle]

    def held(self) -> dict[str, dict[Any, Any]]:
        """All state: by the state's name, by key."""
        states = declared_states(type(self.operator))
        found: dict[str, dict[Any, Any]] = {}
        for attribute, declaration in states.items():
            accessor, found[declaration.name] = getattr(self.operator, attribute), {}
            for key in self.backend.keys(declaration.name):
                self.backend.current_key = key
                read = accessor.value if hasattr(accessor, "value") else accessor.get
                found[declaration.name][key] = read()
        return found


def interpreted(cls: type[KeyedOperator]) -> type[KeyedOperator]:
    """The same class, as Python runs it."""
    return type(cls.__name__, (cls,), {"compiled": False})


def records_of(batch: Batch) -> Sequence[Any]:
    return rows_of(batch) if isinstance(batch, pa.RecordBatch) else batch


def stamped(out: Collector) -> list[tuple[Any, int | None]]:
    """The records in a collector, with their event times."""
    found: list[tuple[Any, int | None]] = []
    for batch in out.drain():
        if isinstance(batch, TimedBatch):
            found += zip(records_of(batch.records), batch.times.tolist(), strict=True)
        else:
            found += ((record, None) for record in records_of(batch))
    return found


def _context(name: str, index: int, parallelism: int) -> OperatorContext:
    return OperatorContext(
        job_id=JobId("job"),
        operator_id=OperatorId(name),
        name=name,
        vertex_name=name,
        subtask_index=SubtaskIndex(index),
        parallelism=parallelism,
        max_parallelism=MAX_PARALLELISM,
        attempt_id=ExecutionAttemptId("attempt"),
        attempt_number=0,
        restored=False,
        clock=None,  # type: ignore[arg-type]
        wake=lambda: None,
        resources={},
    )
