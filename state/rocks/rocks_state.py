"""RocksState: what the accessors of state in RocksDB add to those on the heap, whose methods they have.

The heap's accessors work on a dict of the current namespace; here that is a CachedRows, which holds the values used
lately. What looks at all keys writes them back first and goes through the rows. A value is read and written as a
whole: a list or map of one key has to fit into memory.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence, Set
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any, Final, NamedTuple, Protocol

from ...messages import unpack_plain
from ..backends.backend import NO_NAMESPACE
from ..backends.frozen_state import FrozenState
from ..backends.heap_state import HeapScope, HeapState
from ..backends.keyed_snapshot import WrongValue
from ..backends.private_copy import MISSING
from ..errors import StateNotStorable, WrongStateType
from ..kinds.schema_fit import Schema
from ..kinds.state_declaration import KeyedStateDeclaration
from ..kinds.value_fit import first_misfit
from .cached_rows import CachedRows
from .memory import RocksMemory
from .row_codec import Parts, RowCodec, parts_of
from .row_keys import PREFIX_BYTES, RowKeys, canonical, group_prefix
from .store import RocksStore

READS_AHEAD: Final = 64
"""After a read that had to wait for RocksDB, the keys of this many batches are read ahead."""
MOST_LOOKS: Final = 1000


class RocksScope(Protocol):
    """What the accessors of one backend share."""

    store: RocksStore
    memory: RocksMemory
    row_keys: RowKeys
    key_groups: range

    def number_of(self, name: str, kind: str, schema: Schema) -> int:
        """Of a state: what its rows have in their prefix. Rows of an earlier schema are rewritten before."""
        ...


class Entry(NamedTuple):
    """One row, for those who go through them."""

    row: bytes
    namespace: Hashable
    key: Any
    parts: Parts


class RocksState(HeapState):
    """Has no __slots__, so that an accessor can be of this class and of one that has some."""

    def __init__(self, declaration: KeyedStateDeclaration, scope: HeapScope) -> None:
        self._rocks: RocksScope = scope  # type: ignore[assignment]
        self._in_default: CachedRows | None = None
        super().__init__(declaration, scope)
        self.codec = self._codec()
        self.number = self._rocks.number_of(declaration.name, declaration.kind, self.schema())
        self._in_default = self._cached(default=True)
        self._in_others = self._cached(default=False)
        self._enter(NO_NAMESPACE)
        self._misses = 0
        self._batches_to_read = 0

    def schema(self) -> Schema:
        """Of its rows."""
        return self.node.schema

    # -- what the heap does with dicts

    def set_namespace(self, namespace: Hashable) -> None:
        if namespace is None:
            raise ValueError(f"state {self.declaration.name!r}: a namespace is plain data and not None")
        self._enter(namespace)

    def view(self, some: Set[Any] | None = None) -> FrozenState:
        raise AssertionError("the rows of RocksDB are frozen all at once")

    def keys_in(self, namespace: Hashable) -> list[Any]:
        return list(self._each_key_in(namespace))

    def key_count(self, namespace: Hashable) -> int:
        """How many `keys_in` gives."""
        return sum(1 for _ in self._each_key_in(namespace))

    def keys_by_namespace(self) -> list[Collection[Any]]:
        found: dict[Hashable, list[Any]] = {}
        for entry in self.entries():
            if self.lives(entry.parts):
                found.setdefault(entry.namespace, []).append(entry.key)
        return list(found.values())

    def some_keys(self, most: int) -> list[Any]:
        return [entry.key for entry in islice(self.entries(), most)]

    def entry_count(self) -> int:
        return sum(self.lives(entry.parts) for entry in self.entries())

    def drop(self) -> None:
        for rows in self._both():
            rows.forget()

    # -- for the backend

    def read_ahead(self, keys: Sequence[Any]) -> None:
        """Records with these keys come next. Nothing, where reads have not had to wait for a long time."""
        rows = self._in_default
        assert rows is not None
        if rows.misses != self._misses:
            self._misses, self._batches_to_read = rows.misses, READS_AHEAD
        if self._batches_to_read:
            self._batches_to_read -= 1
            rows.read_ahead(keys)

    def write_back(self) -> None:
        """From now on RocksDB has all that is held. Raises StateNotStorable, WrongStateType."""
        for rows in self._both():
            rows.write_back()

    def _each_key_in(self, namespace: Hashable) -> Iterator[Any]:
        prefix = self._rocks.row_keys.namespace_prefix(namespace)
        return (entry.key for entry in self.entries(prefix) if self.lives(entry.parts))

    def entries(self, namespace_prefix: bytes = b"", groups: Sequence[int] | None = None) -> Iterator[Entry]:
        """All rows, by key group; those of a namespace with its prefix."""
        self.write_back()
        for group in self._rocks.key_groups if groups is None else groups:
            prefix = group_prefix(group, self.number) + namespace_prefix
            yield from map(self.entry_of, self._rocks.store.items(prefix))

    def entry_of(self, item: tuple[bytes, bytes]) -> Entry:
        row, raw = item
        namespace, of_row = unpack_plain(row[PREFIX_BYTES:])
        parts = parts_of(raw)
        return Entry(row, namespace, self._rocks.row_keys.decoded(parts.key_or(of_row)), parts)

    def lives(self, parts: Parts) -> bool:
        """Whether what a row holds counts: it has not expired."""
        return True

    def holds_nothing(self) -> bool:
        """Whether no key holds anything; where so much has expired that this is not worth finding out, it says no."""
        looks = 0
        for entry in islice(self.entries(), MOST_LOOKS):
            if self.lives(entry.parts):
                return False
            looks += 1
        return looks < MOST_LOOKS

    # -- inside

    def _enter(self, namespace: Hashable) -> None:
        self._namespace = namespace
        if self._in_default is None:  # while it is being made
            self._entries = {}
        elif namespace == NO_NAMESPACE:
            self._entries = self._in_default  # type: ignore[assignment]
        else:
            self._entries = _InNamespace(self._in_others, namespace)  # type: ignore[assignment]

    def _put(self, namespace: Hashable, keys: Sequence[Any], held: Sequence[Any]) -> None:
        here = self._namespace
        self._enter(namespace)
        for key, own in zip(keys, held, strict=True):
            self._entries[key] = own
        self._enter(here)

    def _codec(self) -> RowCodec:
        return RowCodec(self.node.encode, self.node.decoder(self.node.schema))

    def _both(self) -> tuple[CachedRows, CachedRows]:
        assert self._in_default is not None
        return self._in_default, self._in_others

    def _cached(self, *, default: bool) -> CachedRows:
        scope, number = self._rocks, self.number
        keys, unpack = scope.row_keys, self.codec.held
        if default:
            rows_of = partial(keys.rows, number, NO_NAMESPACE)
            return CachedRows(scope.store, scope.memory, rows_of, keys.check_own, self._packed_each, unpack)
        return CachedRows(
            scope.store,
            scope.memory,
            lambda pairs: [keys.row(number, namespace, key) for namespace, key in pairs],
            keys.check_own,
            lambda pairs, held: self._packed_each([key for _, key in pairs], held),
            unpack,
        )

    def _packed_each(self, keys: Sequence[Any], held: Sequence[Any]) -> list[bytes]:
        """Raises as `_packed`."""
        contents, shape = self.contents, self.codec.shape
        if self._rocks.row_keys.are_stored(keys):
            values = held if shape is None else [each[0] for each in held]
            with suppress(Exception):  # one by one, below, it comes again, and with its key
                if contents is None or contents.all_fit(values):
                    return self.codec.packed_each(held)
        return [self._packed(key, each) for key, each in zip(keys, held, strict=True)]

    def _packed(self, key: Any, held: Any) -> bytes:
        """Raises WrongStateType, StateNotStorable."""
        declaration, keys = self.declaration, self._rocks.row_keys
        try:
            if self.contents is not None:
                value = held if self.codec.shape is None else held[0]
                if (found := first_misfit(self.contents, [value])) is not None:
                    raise WrongValue(found[1], key)
            encoded = keys.encoded(key)
            if canonical(encoded) is encoded:
                return self.codec.packed(held)
            return self.codec.packed(held, encoded)
        except WrongValue as wrong:
            raise WrongStateType(declaration.named(), str(wrong), self._scope.operator_name) from None
        except Exception as error:  # whatever a serializer of the user's raises, too
            text = f"state {declaration.name!r}: key {key!r:.60}: {error or type(error).__name__}"
            raise StateNotStorable(text) from error

    def _layout_of(self, namespace: Hashable, entries: dict[Any, Any]) -> Any:
        raise AssertionError("RocksDB has no dicts to lay out")


class _InNamespace:
    """The rows of one namespace, which is not the default one, as a dict by key."""

    __slots__ = ("_namespace", "_rows")

    def __init__(self, rows: CachedRows, namespace: Hashable) -> None:
        self._rows = rows
        self._namespace = namespace

    def get(self, key: Any, default: Any = None) -> Any:
        return self._rows.get((self._namespace, key), default)

    def __setitem__(self, key: Any, held: Any) -> None:
        self._rows[self._namespace, key] = held

    def __delitem__(self, key: Any) -> None:
        del self._rows[self._namespace, key]

    def pop(self, key: Any, default: Any = MISSING) -> Any:
        return self._rows.pop((self._namespace, key), default)
