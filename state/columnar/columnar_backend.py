"""ColumnarBackend: a ColumnarTable as keyed state: snapshotted by key group as Arrow IPC, restored by key group.

A snapshot is a header and, for each key group that holds something, one Arrow record batch message of partials, with
integers in as few bytes as will do. The table is made when the first batch, or a restored snapshot, tells the types of
the columns.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...messages import CheckpointId, KeyedStateHandle, MalformedMessage
from ..backends.backend import KeyedSnapshot, ReadState, SnapshotTarget
from ..backends.group_parts import lay_out
from ..backends.run_ledger import PlannedRuns, write_runs
from ..backends.stored_runs import runs_of
from ..backends.timer_queue import TimerQueues
from ..columns.column_values import narrowed
from ..errors import CorruptState, InvalidState
from ..keys.key_groups import KeyGroupRange, key_groups_of
from ..keys.key_index import keys_in
from ..keys.word_table import Slots
from ..kinds.aggregates import Aggregate
from ..kinds.aggregation_fit import describe_aggregation
from ..kinds.state_declaration import KeyedStateDeclaration
from .columnar_table import ColumnarTable, FrozenRows, FrozenTable
from .group_sections import read_header, read_sections, sections_handle, sections_of, write_sections
from .kept_sections import KeptSections, can_be_kept
from .slot_groups import Groups, Share, check_owned, shares_of
from .table_backend import TableBackend, check_same

S = TypeVar("S", bound=KeyedStateDeclaration)

_FORMAT = 2
_FORMATS_READ = (1, _FORMAT)
"""The first had all columns in their own types."""


@dataclass(frozen=True, slots=True)
class _Layout:
    """The order in which the keys of this number of slots are stored."""

    slots: Slots
    """Sorted by key group."""
    keys: Sequence[pa.Array]
    """The key columns in that order, as they are stored."""
    shares: Sequence[Share]
    """In that order."""


class ColumnarBackend(TableBackend[ColumnarTable]):
    """The keyed state of one subtask of a columnar aggregation."""

    _layout: _Layout | None = None

    def __init__(
        self, keys: Sequence[str], aggregates: Mapping[str, Aggregate], key_groups: KeyGroupRange, max_parallelism: int
    ) -> None:
        super().__init__(keys, aggregates, key_groups, max_parallelism)
        self._kept: list[KeptSections] = []
        """The bytes of the last snapshot, unless another one has them."""

    def table_for(self, schema: pa.Schema, *, partials: bool = False) -> ColumnarTable:
        """The table; made for batches, or partials, with these columns if there is none yet."""
        if self.table is None:
            self.table = self._make_table(schema, partials)
        return self.table

    def expect(self, schema: pa.Schema, *, partials: bool = False) -> None:
        """Have a table for columns known beforehand. Raises StateIncompatible if a restored one has other types."""
        expected = self._make_table(schema, partials)
        if self.table is not None:
            check_same(self._described(expected.partial_schema), self._described(self.table.partial_schema))
        else:
            self.table = expected

    def _make_table(self, schema: pa.Schema, partials: bool) -> ColumnarTable:
        make = ColumnarTable.for_partials if partials else ColumnarTable.for_input
        return make(self._keys, self._aggregates, schema)

    def state(self, declaration: S) -> S:
        raise InvalidState(
            f"state {declaration.name!r}: a columnar aggregation holds its aggregates and no other state"
        )

    def timers(self) -> TimerQueues:
        raise InvalidState("a columnar aggregation has no timers")

    def snapshot(self, checkpoint_id: CheckpointId) -> KeyedSnapshot:
        if self._runs is not None:
            self._runs.start_over()
        return self._frozen(self.table, None) if self.table else lambda target: None

    def changed(self, slots: Slots) -> None:
        """These slots have taken something in: to be said of each batch."""
        if self._runs is not None and self.table is not None:
            self._runs.changed(slots, len(slots), len(self.table))

    def increment(self, checkpoint_id: CheckpointId) -> KeyedSnapshot:
        table, ledger = self.table, self._runs
        assert ledger is not None, "changes are tracked"
        if not table:
            return lambda target: None
        plan, groups = ledger.plan(checkpoint_id, len(table)), self._key_groups.groups
        write = None if plan.new is None else self._frozen(table, plan.new.slots)
        planned = [PlannedRuns(plan, ledger.owner, write)]
        return lambda target: write_runs(planned, groups, target)

    def restore(self, handles: Sequence[KeyedStateHandle], read: ReadState) -> None:
        assert self.table is None, "a backend is restored before it is used"
        for handle in handles:
            for number, (run, data) in enumerate(runs_of(handle, read)):
                self._restore(run, data, replaces=number > 0)

    def _restore(self, handle: KeyedStateHandle, data: bytes, *, replaces: bool) -> None:
        """`replaces`: the rows take the place of older ones of the same keys."""
        path = handle.handle.path or "inline state"
        try:
            header = read_header(data, handle)
            self._check_header(header, _FORMATS_READ, self._described(None))
            for partials in read_sections(data, handle, header, self._key_groups):
                table = self.table_for(partials.schema, partials=True)
                if replaces:
                    table.replace(partials)
                else:
                    table.merge(partials)
        except (MalformedMessage, LookupError, TypeError, ValueError, OSError) as error:
            raise CorruptState(path, "a columnar snapshot", f"{type(error).__name__}: {error}") from error

    def keys(self, state_name: str = "", namespace: Hashable = ()) -> Collection[Any]:
        if not self.table:
            return []
        return keys_in(self.table.results(self.table.all_slots()).columns[: len(self._keys)])

    def _frozen(self, table: ColumnarTable, some: Slots | None) -> KeyedSnapshot:
        """What all slots hold, or some."""
        if some is None:
            frozen = table.frozen()
            return lambda target: self._write(frozen, target)
        rows, count = table.frozen_rows(some), len(table)
        return lambda target: self._write_rows(rows, count)

    def _write(self, frozen: FrozenTable, target: SnapshotTarget | None) -> KeyedStateHandle:
        layout, columns = self._layout_of(frozen), frozen.columns()
        try:
            if target is None or target.when_stored is None or not can_be_kept(columns):
                sections = self._sections(frozen.schema, columns, layout)
                return sections_handle(self._key_groups, lay_out(sections[0]))
            kept = self._taken_kept()
            if kept is not None and kept.fits(layout.slots, columns):
                kept.put(columns)
            else:
                sections = self._sections(frozen.schema, columns, layout)
                kept = KeptSections(*sections, len(self._keys), layout.slots, layout.shares)
        finally:
            del columns
            frozen.give_back()
        target.when_stored.append(lambda: self._keep(kept))
        return sections_handle(self._key_groups, kept.handle())

    def _sections(
        self, schema: pa.Schema, columns: Sequence[pa.Array], layout: _Layout
    ) -> tuple[dict[int, Any], pa.Schema]:
        """The bytes, section by section, and the schema of the rows in them."""
        order = pa.array(layout.slots)
        taken = {id(each): pc.take(each, order, boundscheck=False) for each in columns}
        values = [taken[id(each)] for each in columns]
        stored = pa.RecordBatch.from_arrays([*layout.keys, *values], names=schema.names)
        return sections_of(self._header(), schema, stored, layout.shares), stored.schema

    def _taken_kept(self) -> KeptSections | None:
        with suppress(IndexError):
            return self._kept.pop()
        return None

    def _keep(self, kept: KeptSections) -> None:
        """Its bytes are stored: the next snapshot may have it, if there is no newer one."""
        layout = self._layout
        if not self._kept and layout is not None and kept.slots is layout.slots:
            self._kept.append(kept)

    def _write_rows(self, rows: FrozenRows, count: int) -> KeyedStateHandle:
        """Of some of the first `count` slots."""
        order, shares = shares_of(self._groups_of(rows, count)[rows.slots])
        partials = rows.partials(order)
        stored = pa.RecordBatch.from_arrays([narrowed(each) for each in partials.columns], names=partials.schema.names)
        return write_sections(self._key_groups, self._header(), partials.schema, stored, shares)

    def _layout_of(self, frozen: FrozenTable) -> _Layout:
        """The one of the last snapshot if there are no new keys since. Two writers at a time make it twice."""
        layout = self._layout
        if layout is None or len(layout.slots) != len(frozen):
            layout = self._layout = self._new_layout(frozen)
        return layout

    def _new_layout(self, frozen: FrozenTable) -> _Layout:
        groups = self._groups_of(frozen, len(frozen))
        slots, shares = shares_of(groups)
        return _Layout(slots, [narrowed(key) for key in frozen.keys(slots)], shares)

    def _groups_of(self, frozen: FrozenTable | FrozenRows, count: int) -> Groups:
        """The key groups of the first slots. Raises StateNotStorable."""

        def groups_of(start: int, end: int) -> npt.NDArray[Any]:
            groups = key_groups_of(frozen.keys(np.arange(start, end)), self._max_parallelism)
            check_owned(groups, self._key_groups, self._keys)
            return groups

        return self._groups.first(count, None, groups_of)

    def _header(self) -> dict[str, Any]:
        described = {what: self._described(None)[what] for what in ("keys", "aggregates")}
        return {"format": _FORMAT, "max_parallelism": self._max_parallelism, **described}

    def _described(self, schema: pa.Schema | None) -> dict[str, Any]:
        return cast("dict[str, Any]", describe_aggregation(self._keys, self._aggregates, schema).schema)
