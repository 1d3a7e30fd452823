"""Runs one keyed operator by itself, compiled and interpreted, on the same batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from understudy.actors.compiled import emitted_schema, equip
from understudy.actors.flow.elements import Batch
from understudy.actors.flow.key_selector import KeySelector
from understudy.actors.flow.records import rows_of
from understudy.actors.operators.collector import Collector
from understudy.actors.operators.keyed_operator import KeyedOperator
from understudy.actors.operators.operator import OperatorContext
from understudy.messages import ExecutionAttemptId, JobId, OperatorId, SubtaskIndex
from understudy.state import HeapBackend, OperatorStateBackend, bind_states, declared_states

MAX_PARALLELISM = 128


class Stage:
    """One operator, open. `key`: as `key_by` takes it."""

    def __init__(self, operator: KeyedOperator, *key: Any, schema: pa.Schema | None = None) -> None:
        self.operator = operator
        operator.context = _context(type(operator).__name__)
        equip(operator)
        operator._selectors = (KeySelector(*(key or ("key",))),)
        if schema is not None:
            self.schema = emitted_schema(operator, schema)
        self.backend = operator.keyed_state or HeapBackend(0, MAX_PARALLELISM - 1, MAX_PARALLELISM)
        bind_states(operator, self.backend, OperatorStateBackend())
        operator._backend = self.backend
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


def _context(name: str) -> OperatorContext:
    return OperatorContext(
        job_id=JobId("job"),
        operator_id=OperatorId(name),
        name=name,
        vertex_name=name,
        subtask_index=SubtaskIndex(0),
        parallelism=1,
        max_parallelism=MAX_PARALLELISM,
        attempt_id=ExecutionAttemptId("attempt"),
        attempt_number=0,
        restored=False,
        clock=None,  # type: ignore[arg-type]
        wake=lambda: None,
        resources={},
    )
