"""StoredTable: one state of one operator, as savepoints hold it: what it is called, and how it was written."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...state.backends.timer_queue import KIND as TIMERS
from ...state.kinds.schema_fit import Schema


@dataclass(slots=True)
class StoredTable:
    """One state of one operator, in all its snapshots."""

    name: str
    kind: str
    schemas: list[Schema] = field(default_factory=list)
    """Those that it was written under, each once: after an upgrade a state may be carried along under its old one."""
    is_arrow: bool = False
    keys: tuple[str, ...] = ()
    """The key columns, of a table that is Arrow."""

    @property
    def is_timers(self) -> bool:
        return self.kind == TIMERS

    @property
    def has_ttl(self) -> bool:
        return any(isinstance(schema, dict) and "ttl" in schema for schema in self.schemas)
