"""RocksBackend: keyed state of one operator subtask in a RocksDB of its own. Flink: RocksDBKeyedStateBackend.

Accessors and timers work on objects (`cached_rows`, `rocks_timers`), so an access that finds its key there costs what
it costs on the heap. A snapshot writes back what has changed, and makes hard links to RocksDB's files; that is its
synchronous part. Restored rows stay as they are until their state is declared; of one whose declaration has changed
since they are converted then. State that nobody declares any more stays.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from itertools import count, islice
from typing import Any, TypeVar, cast

from ...messages import CheckpointId, KeyedStateHandle
from ..backends.backend import NO_NAMESPACE, KeyedSnapshot, ReadState, SnapshotTarget
from ..backends.frozen_state import KeptState
from ..backends.heap_state import HeapScope
from ..backends.keyed_snapshot import StoredState
from ..backends.shared_files import UploadedFiles
from ..backends.timer_queue import EVENT_TIMERS, KIND, PROCESSING_TIMERS, TimerQueues
from ..errors import StateError
from ..keys.moved_keys import may_move, moved_group, moved_text
from ..kinds.record_serializer import node_of
from ..kinds.schema_fit import Schema, SchemaMismatch, are_same
from ..kinds.state_declaration import KeyedStateDeclaration
from .rocks_accessors import EXPIRING, LASTING, RocksExpiring
from .rocks_restore import Restored, restore_into
from .rocks_snapshot import MainPart, RocksSnapshot, StateEntry
from .rocks_state import RocksState
from .rocks_timers import RocksTimers, timer_of
from .row_codec import RowCodec, parts_of
from .row_keys import RowKeys, end_of, group_prefix
from .store import RocksStore, StoreOptions

S = TypeVar("S", bound=KeyedStateDeclaration)


class RocksBackend(HeapScope):
    """Owned by its task's thread; only snapshots are written elsewhere."""

    def __init__(
        self,
        first_key_group: int,
        last_key_group: int,
        max_parallelism: int,
        options: StoreOptions,
        *,
        key_type: Any = Any,
    ) -> None:
        super().__init__()
        self.key_groups = range(first_key_group, last_key_group + 1)
        self.max_parallelism = max_parallelism
        self.memory = options.memory
        self._key_node = node_of(key_type)
        self.row_keys = RowKeys(self.key_groups, max_parallelism, self._key_node)
        self._folder = options.new_path()
        self.store = RocksStore(f"{self._folder}-db", options)
        self._table: list[StateEntry] = []
        self._restored: set[int] = set()
        """Numbers of states whose rows were restored, and which nobody has declared."""
        self._states: dict[str, RocksState] = {}
        self._timers: TimerQueues | None = None
        self._kept: list[KeptState] = []
        self._beside: dict[str, list[StoredState]] = {}
        """Restored state that is not in rows, by name."""
        self._uploaded = UploadedFiles()
        self._checkpoints = count(1)
        self._is_closed = False
        self.memory.enter(self._folder)

    # -- states

    def state(self, declaration: S) -> S:
        known = self._states.get(declaration.name)
        if known is None:
            accessors = LASTING if declaration.ttl is None else EXPIRING
            known = accessors[declaration.kind](declaration, self)
            self._states[declaration.name] = known
            self._take_over(known)
        return cast(S, known)

    def number_of(self, name: str, kind: str, schema: Schema) -> int:
        for number, entry in enumerate(self._table):
            if (entry.name, entry.kind) == (name, kind) and are_same(entry.schema, schema):
                return number
        self._table.append(StateEntry(name, kind, schema))
        return len(self._table) - 1

    def _take_over(self, state: RocksState) -> None:
        """What was restored under its name, or a former one. Raises StateIncompatible."""
        names = (state.declaration.name, *state.declaration.former_names)
        for number in [each for each in sorted(self._restored) if self._table[each].name in names]:
            entry = self._table[number]
            stored = StoredState(entry.name, entry.kind, entry.schema, None)
            if self._has_rows(number):
                with stored.loaded_for(state.declaration, self.operator_name):
                    self._check_keys(number, state)
                    decode = state.node.decoder(stored.value_schema)
                    if number == state.number:
                        if isinstance(state, RocksExpiring):
                            state.restored(has_unknown=entry.has_unknown)
                    else:
                        self._convert(number, stored, state, RowCodec(None, decode))
            self._restored.discard(number)

    def _check_keys(self, number: int, state: RocksState) -> None:
        """Of one row of each group. Raises SchemaMismatch for a key that records of today would not find."""
        for group in self.key_groups:
            for item in islice(self.store.items(group_prefix(group, number)), 1):
                entry = state.entry_of(item)
                if not may_move(entry.key):
                    continue
                if moved := moved_group(entry.key, group, self.max_parallelism):
                    raise SchemaMismatch(moved)
                if self.row_keys.row(number, entry.namespace, entry.key) != entry.row:
                    raise SchemaMismatch(moved_text(entry.key, "is written in another way than it was stored"))

    def _convert(self, number: int, stored: StoredState, state: RocksState, codec: RowCodec) -> None:
        """Make rows of an earlier schema those of the declared state."""
        for group in self.key_groups:
            prefix = group_prefix(group, number)
            for item in self.store.items(prefix):
                entry = state.entry_of(item)
                value = codec.held_of(entry.parts)
                times = None if stored.ttl_clock is None else [entry.parts.times]
                state.load(entry.namespace, [entry.key], [value], times, stored.ttl_clock)
            self.store.remove_range(prefix, end_of(prefix))

    def _has_rows(self, number: int) -> bool:
        return any(self.store.has_any(group_prefix(group, number)) for group in self.key_groups)

    def read_ahead(self, keys: Sequence[Any]) -> None:
        for state in self._states.values():
            state.read_ahead(keys)

    # -- timers, and what operators keep

    def timers(self) -> TimerQueues:
        if self._timers is None:
            self._timers = TimerQueues(self._queue(EVENT_TIMERS), self._queue(PROCESSING_TIMERS))
        return self._timers

    def _queue(self, name: str) -> RocksTimers:
        number = self.number_of(name, KIND, None)
        queue = RocksTimers(name, number, self.store, self.row_keys)
        if number in self._restored:
            for group in self.key_groups:
                queue.restored(map(self._timer_of, self.store.items(group_prefix(group, number))))
            self._restored.discard(number)
        return queue

    def _timer_of(self, item: tuple[bytes, bytes]) -> Any:
        parts = parts_of(item[1])
        return timer_of(parts.value, self.row_keys.decoded(parts.key_or(None)))

    def keep(self, part: KeptState) -> None:
        for stored in self._beside.pop(part.name, ()):
            part.load(stored)
        self._kept.append(part)

    # -- snapshots

    def snapshot(self, checkpoint_id: CheckpointId) -> KeyedSnapshot:
        return self._snapshot(checkpoint_id, whole=False)

    def whole_snapshot(self, checkpoint_id: CheckpointId) -> KeyedSnapshot:
        return self._snapshot(checkpoint_id, whole=True)

    def _snapshot(self, checkpoint_id: CheckpointId, *, whole: bool) -> KeyedSnapshot:
        for state in self._states.values():
            state.check_lent()
        self.check_refusal()
        views = [view for part in self._kept if not (view := part.freeze()).is_empty]
        try:
            self._write_back()
        except StateError as error:  # as on the heap, the snapshot fails and not the task
            return _failing(error)
        is_empty = not self._table or self._is_empty()
        if is_empty and not views and not self._beside:
            return _nothing
        folder = f"{self._folder}-{next(self._checkpoints)}"
        names = [] if is_empty else self.store.checkpoint(folder)
        options, main = self.store.options, self._main()
        return RocksSnapshot(
            checkpoint_id, options, folder, names, main, self._key_node, views, self._uploaded, whole=whole
        )

    def checkpoint_complete(self, checkpoint_id: CheckpointId) -> None:
        """The next snapshot may name what this one has stored."""
        self._uploaded.complete(checkpoint_id)

    def _write_back(self) -> None:
        for state in self._states.values():
            state.write_back()
        for queue in self._timers or ():
            cast(RocksTimers, queue).write_back()

    def _is_empty(self) -> bool:
        if any(self._timers or ()):
            return False
        if not all(state.holds_nothing() for state in self._states.values()):
            return False
        return not any(map(self._has_rows, self._restored))

    def _main(self) -> MainPart:
        states = [StateEntry(entry.name, entry.kind, entry.schema, self._has_unknown(entry)) for entry in self._table]
        kept = tuple(
            (StateEntry(stored.name, stored.kind, stored.schema), stored.payloads)
            for several in self._beside.values()
            for stored in several
        )
        return MainPart(self.key_groups, self.max_parallelism, self._key_node.schema, tuple(states), {}, kept)

    def _has_unknown(self, entry: StateEntry) -> bool:
        state = self._states.get(entry.name)
        return state.has_unknown if isinstance(state, RocksExpiring) else entry.has_unknown

    def restore(self, handles: Sequence[KeyedStateHandle], read: ReadState) -> None:
        assert not self._states, "a backend is restored before its states are bound"
        target = Restored(self.store, self.row_keys, self._key_node, f"{self._folder}-restore")
        restore_into(target, handles, read)
        self._table, self._restored = target.table, set(range(len(target.table)))
        self._beside = target.beside
        self._uploaded.restored(target.files)

    # -- the rest of the contract

    def keys(self, state_name: str, namespace: Hashable = NO_NAMESPACE) -> Collection[Any]:
        state = self._states.get(state_name)
        return [] if state is None else state.keys_in(namespace)

    def key_count(self, state_name: str, namespace: Hashable = NO_NAMESPACE) -> int:
        """By going through its rows."""
        state = self._states.get(state_name)
        return 0 if state is None else state.key_count(namespace)

    def each_key(self) -> Iterator[Any]:
        """By key group: the keys of one group at a time are held."""
        states = list(self._states.values())
        for group in self.key_groups:
            held: dict[Any, None] = {}
            for state in states:
                held.update((entry.key, None) for entry in state.entries(groups=(group,)) if state.lives(entry.parts))
            for key in held:
                self.current_key = key
                yield key

    def some_keys(self, most: int) -> list[Any]:
        return [key for state in self._states.values() for key in state.some_keys(most)]

    def entry_count(self) -> int:
        return sum(state.entry_count() for state in self._states.values())

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self.memory.leave(self._folder)
        for state in self._states.values():
            state.drop()
        self._states.clear()
        self._timers = None
        self.store.close()


def _nothing(_: SnapshotTarget) -> KeyedStateHandle | None:
    return None


def _failing(error: Exception) -> KeyedSnapshot:
    def fail(_: SnapshotTarget) -> KeyedStateHandle | None:
        raise error

    return fail
