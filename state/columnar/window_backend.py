"""WindowBackend: columnar windows as keyed state: snapshotted by key group, restored by key group.

A snapshot has the format of a columnar aggregation's (group_sections.py): rows of keys, places in time and parts, and a
header that also says what the windows are, and up to where they had fired.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import Any, Protocol, TypeVar, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...messages import CheckpointId, KeyedStateHandle, MalformedMessage, StateDescription
from ..backends.backend import KeyedSnapshot, ReadState
from ..backends.run_ledger import PlannedRuns, Run, RunLedger, write_runs
from ..backends.stored_runs import RunBytes, runs_of
from ..backends.timer_queue import TimerQueues
from ..columns.column_values import narrowed
from ..errors import CorruptState, InvalidState
from ..keys.key_groups import KeyGroupRange, key_groups_of
from ..keys.key_index import keys_in
from ..keys.word_table import Slots
from ..kinds.aggregates import Aggregate
from ..kinds.aggregation_fit import describe_aggregation
from ..kinds.state_declaration import KeyedStateDeclaration
from .group_progress import GroupProgress, Progress
from .group_sections import read_header, read_sections, schema_of, write_sections
from .section_runs import rows_left
from .slot_groups import Groups, Share, check_owned, shares_of
from .table_backend import TableBackend, check_same
from .window_rows import Stored, WindowRows
from .window_runs import RUN, about_run

S = TypeVar("S", bound=KeyedStateDeclaration)

_FORMAT = 1


class WindowTable(Protocol):
    """What holds the rows: a PaneTable or a SessionTable."""

    @property
    def rows(self) -> WindowRows: ...

    @property
    def progress(self) -> Progress:
        """How far windows have fired, and closed."""

    @property
    def ahead(self) -> GroupProgress | None:
        """The same by key group, where some were further at the restore."""

    changes: RunLedger | None
    """Notes which slots change, where increments are wanted."""

    @property
    def key_count(self) -> int:
        """How many slots there are."""

    @property
    def holding(self) -> int:
        """How many of them hold something, at least."""

    @property
    def is_giving_out(self) -> bool:
        """Whether there are rows that go one by one, whatever their slots do."""

    @property
    def kept_from(self) -> tuple[str, int] | None:
        """Where rows go all at once, whatever their slots do: a column, and its least value in those that are left."""

    @property
    def stored_schema(self) -> pa.Schema: ...

    def __len__(self) -> int: ...

    def stored(self, some: Slots | None = None) -> Stored | None: ...

    def restore(self, stored: pa.RecordBatch) -> None: ...

    def go_on(self, progress: GroupProgress) -> None: ...


T = TypeVar("T", bound=WindowTable)


class WindowBackend(TableBackend[T]):
    """The keyed state of one subtask of columnar windows.

    `make` gives a table for rows; `windows` describes the windows as plain data, and a restored snapshot must have the
    same.
    """

    def __init__(
        self,
        keys: Sequence[str],
        aggregates: Mapping[str, Aggregate],
        windows: Mapping[str, Any],
        make: Callable[[WindowRows], T],
        key_groups: KeyGroupRange,
        max_parallelism: int,
    ) -> None:
        super().__init__(keys, aggregates, key_groups, max_parallelism)
        self._windows, self._make = dict(windows), make
        self._was_giving_out = False
        """When the last increment was taken."""

    def table_for(self, schema: pa.Schema, *, partials: bool = False) -> T:
        """The table; made for batches, or partials, with these columns if there is none yet."""
        if self.table is None:
            self.table = self._made(self._rows(schema, partials))
        return self.table

    def expect(self, schema: pa.Schema, *, partials: bool = False) -> None:
        """Have a table for columns known beforehand. Raises StateIncompatible if a restored one has other types."""
        expected = self._rows(schema, partials)
        if self.table is not None:
            check_same(self._described(expected), self._described(self.table.rows))
        else:
            self.table = self._made(expected)

    def _made(self, rows: WindowRows) -> T:
        table = self._make(rows)
        table.changes = self._runs
        return table

    def state(self, declaration: S) -> S:
        raise InvalidState(f"state {declaration.name!r}: columnar windows hold their aggregates and no other state")

    def timers(self) -> TimerQueues:
        raise InvalidState("columnar windows have no timers")

    def snapshot(self, checkpoint_id: CheckpointId) -> KeyedSnapshot:
        if self._runs is not None:
            self._runs.start_over()
        return self._frozen(None) or (lambda target: None)

    def increment(self, checkpoint_id: CheckpointId) -> KeyedSnapshot:
        table, ledger = self.table, self._runs
        assert ledger is not None, "changes are tracked"
        if table is None or not len(table):
            ledger.start_over()
            return lambda target: None
        if table.is_giving_out or self._was_giving_out:
            ledger.start_over()
        self._was_giving_out = table.is_giving_out
        plan = ledger.plan(checkpoint_id, table.key_count, holding=table.holding, always=True)
        assert plan.new is not None, "there is always a new run"
        planned = [PlannedRuns(plan, ledger.owner, self._frozen(plan.new))]
        return lambda target: write_runs(planned, self._key_groups.groups, target)

    def _frozen(self, run: Run | None) -> KeyedSnapshot | None:
        """What this run says; without one what all slots hold, or None if they hold nothing."""
        table = self.table
        if table is None:
            return None
        stored = table.stored(None if run is None else run.slots)
        if stored is None and run is None:
            return None
        rows, schema = table.rows, table.stored_schema
        about = self._progress(table) | ({} if run is None else about_run(rows, _kept_from(table)))
        return lambda target: self._write(rows, schema, stored, about)

    def _progress(self, table: T) -> dict[str, Any]:
        (fired, closed), ahead = table.progress, table.ahead
        progress: dict[str, Any] = {"fired": fired, "closed": closed}
        if ahead is not None:
            bounds = {group: (int(ahead.fired[group]), int(ahead.closed[group])) for group in self._key_groups.groups}
            progress["ahead"] = {
                group: [max(fired, own), max(closed, shut)]
                for group, (own, shut) in bounds.items()
                if own > fired or shut > closed
            }
        return progress

    def restore(self, handles: Sequence[KeyedStateHandle], read: ReadState) -> None:
        assert self.table is None, "a backend is restored before it is used"
        known: dict[int, Progress] = {}
        for handle in handles:
            runs = runs_of(handle, read)
            try:
                header = self._restore(runs)
                theirs = range(handle.first_key_group, handle.last_key_group + 1)
                known |= {group: _progress_of(header, group) for group in theirs if group in self._key_groups.groups}
            except (MalformedMessage, LookupError, TypeError, ValueError, OSError) as error:
                path = ", ".join(run.handle.handle.path or "inline state" for run in runs)
                raise CorruptState(
                    path, "a snapshot of columnar windows", f"{type(error).__name__}: {error}"
                ) from error
        if known:
            groups = self._max_parallelism
            self._held().go_on(GroupProgress.of(known, groups, lambda keys: key_groups_of(keys, groups)))

    def _restore(self, runs: Sequence[RunBytes]) -> dict[str, Any]:
        """The header of the newest."""
        headers = [read_header(data, run) for run, data in runs]
        for header in headers:
            self._check_header(header, (_FORMAT,), self._described(None))
        newest = headers[-1]
        table = self.table_for(schema_of(newest), partials=True)
        if RUN not in newest:
            ((run, data),) = runs
            for rows in read_sections(data, run, newest, self._key_groups):
                table.restore(rows)
            return newest
        for group in self._key_groups.groups:
            own = KeyGroupRange(group, group)
            said = [
                rows
                for (run, data), header in zip(runs, headers, strict=True)
                for rows in read_sections(data, run, header, own)
            ]
            if left := rows_left(said, newest):
                table.restore(pa.concat_batches(left))
        return newest

    def keys(self, state_name: str = "", namespace: Hashable = ()) -> Collection[Any]:
        stored = self.table.stored() if self.table is not None else None
        if stored is None:
            return []
        return keys_in(stored.keys.keys(np.unique(stored.slots)))

    def description(self, schema: pa.Schema | None, *, partials: bool = False) -> StateDescription:
        """For a savepoint, of windows over such columns; without them, as far as it is known."""
        return self._description(None if schema is None else self._rows(schema, partials))

    def _rows(self, schema: pa.Schema, partials: bool) -> WindowRows:
        make = WindowRows.of_partials if partials else WindowRows.of_input
        return make(self._keys, self._aggregates, schema)

    def _held(self) -> T:
        assert self.table is not None
        return self.table

    def _write(
        self, rows: WindowRows, schema: pa.Schema, stored: Stored | None, about: Mapping[str, Any]
    ) -> KeyedStateHandle:
        whole, shares = pa.RecordBatch.from_pylist([], schema), list[Share]()
        if stored is not None:
            order, shares = shares_of(self._groups_of(stored))
            keys = stored.keys.keys(stored.slots[order])
            whole = rows.with_keys(keys, stored.batch.take(pa.array(order)))
        narrow = pa.RecordBatch.from_arrays([narrowed(column) for column in whole.columns], names=whole.schema.names)
        header = {
            "format": _FORMAT,
            "max_parallelism": self._max_parallelism,
            **about,
            **{what: each for what, each in self._described(None).items() if what != "types"},
        }
        return write_sections(self._key_groups, header, whole.schema, narrow, shares)

    def _groups_of(self, stored: Stored) -> Groups:
        """The key group of each row. Raises StateNotStorable."""

        def groups_of(start: int, end: int) -> npt.NDArray[Any]:
            return key_groups_of(stored.keys.keys(np.arange(start, end)), self._max_parallelism)

        groups: Groups = self._groups.first(int(stored.slots.max()) + 1, stored.keys, groups_of)[stored.slots]
        check_owned(groups, self._key_groups, self._keys)
        return groups

    def _description(self, rows: WindowRows | None) -> StateDescription:
        schema = None if rows is None else rows.partial_schema([])
        return describe_aggregation(self._keys, self._aggregates, schema, self._windows)

    def _described(self, rows: WindowRows | None) -> dict[str, Any]:
        return cast("dict[str, Any]", self._description(rows).schema)


def _kept_from(table: WindowTable) -> tuple[str, int] | None:
    """A window that is being given out may have begun before all panes; such a run is the only one."""
    return None if table.is_giving_out else table.kept_from


def _progress_of(header: dict[str, Any], group: int) -> Progress:
    """What a snapshot says of a key group. Older ones say only how far windows had fired."""
    ahead = header.get("ahead", {}).get(group)
    if ahead is None:
        return Progress(header["fired"], header.get("closed", header["fired"]))
    return Progress(*(ahead if isinstance(ahead, list | tuple) else (ahead, ahead)))
