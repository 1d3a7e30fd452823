"""The format of all snapshots of keyed state but columnar aggregations: its writer, and the reader of what it wrote.

A snapshot is one run of bytes: a header, at the pseudo key group HEADER of the handle's offsets, then a block per key
group. The header says how to read the blocks: key type, and name, kind and schema of each state. A block is a list of
`[state index, payload]`, with several payloads for a state of many keys; a payload is `[namespace, keys, values]` as
plain data (packed_columns.py says how keys and values stand in it), packed by itself, so that an unreadable value is
blamed on its state.

Of a state with a TTL the schema is `{"ttl": schema of the values, "clock": name}`, and its values are pairs in columns,
`["tuples", values, times]`: the time of the last update in ms, and of a list, or a map, those of its items in their
order.

The runs of an incremental snapshot (stored_runs.py) are such snapshots of some keys. Those that do not begin a list
have one state more, of the kind RUN_KEYS, with all keys of the run: of these it says everything, in all states.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Final

from ...messages import (
    KeyedStateHandle,
    MalformedMessage,
    pack_plain,
    unpack_plain,
)
from ..columns.packed_columns import chosen, unpacked
from ..errors import CorruptState, StateIncompatible, StateNotStorable, WrongStateType
from ..keys.key_hash import with_same_nans
from ..keys.moved_keys import moved_group
from ..kinds.record_serializer import Convert, TypeNode
from ..kinds.schema_fit import Schema, SchemaMismatch, schema_text
from ..kinds.state_declaration import KeyedStateDeclaration, describe_state
from ..kinds.value_fit import Misfit
from .backend import ReadState, SnapshotTarget
from .frozen_state import FrozenState
from .group_parts import HEADER, Part, lay_out
from .stored_runs import runs_of

FORMAT_NAME: Final = "heap"
"""What a handle says of the format; written before there was one name for it: "memory" and "filesystem"."""

RUN_KEYS: Final = "RunKeys"
"""The kind of what lists the keys of a run."""

_FORMAT = 2

Blocks = dict[int, list[Any]]
"""key group -> [[state index, payload], ...]."""


class WrongValue(Exception):
    """A value does not fit the type that its state is declared with."""

    def __init__(self, misfit: Misfit, key: Any) -> None:
        super().__init__(f"{misfit} for key {key!r:.60}")


@dataclass(slots=True)
class StoredState:
    """One state as a snapshot holds it, not yet decoded."""

    name: str
    kind: str
    schema: Schema
    decode_key: Convert
    payloads: dict[int, list[bytes]] = field(default_factory=dict)
    """By key group."""
    replaced: list[bytes] = field(default_factory=list)
    """In a run, payloads whose keys hold what stands here, and nothing of what was restored before."""
    max_parallelism: int = 0
    """By which keys were put into groups; 0: keys are only read, and belong to no group of today."""

    @contextmanager
    def loaded_for(self, declaration: KeyedStateDeclaration, operator: str) -> Iterator[None]:
        """Within it the entries are taken over. Raises StateIncompatible for a state of another kind, and in place of
        SchemaMismatch and MalformedMessage.
        """
        wanted, found = declaration.describe(), describe_state(self.kind, self.schema)
        if self.kind != declaration.kind:
            raise StateIncompatible(declaration.name, wanted, found, operator=operator)
        try:
            yield
        except (SchemaMismatch, MalformedMessage) as error:
            raise StateIncompatible(declaration.name, wanted, found, str(error), operator) from error

    @property
    def value_schema(self) -> Schema:
        """That of the values without their times."""
        return self.schema if self.ttl_clock is None else self.schema["ttl"]

    @property
    def ttl_clock(self) -> str | None:
        """By which clock the times count that values were stored with; None: they were stored without."""
        return self.schema["clock"] if isinstance(self.schema, dict) and "ttl" in self.schema else None

    def entries(self) -> Iterator[tuple[Hashable, list[Any], list[Any]]]:
        """(namespace, keys, encoded values); raises MalformedMessage."""
        for namespace, keys, values, _ in self.timed_entries():
            yield namespace, keys, values

    def timed_entries(self) -> Iterator[tuple[Hashable, list[Any], list[Any], list[Any] | None]]:
        """(namespace, keys, encoded values, their times if there are some); raises MalformedMessage, and SchemaMismatch
        for keys that records of today would not find.
        """
        assert not self.replaced, "runs are put one over the other first"
        for group, namespace, keys, values, times in self._payload_parts():
            decoded = with_same_nans(_decoded(unpacked(keys), self.decode_key))
            if self.max_parallelism and decoded and (moved := moved_group(decoded[0], group, self.max_parallelism)):
                raise SchemaMismatch(moved)
            yield namespace, decoded, unpacked(values), None if times is None else unpacked(times)

    def packed_entries(self) -> Iterator[tuple[Hashable, Any, Any]]:
        """(namespace, keys, values), with keys and values as they stand in a payload; raises MalformedMessage."""
        for _, namespace, keys, values, _ in self._payload_parts():
            yield namespace, keys, values

    def replaced_keys(self) -> Iterator[Any]:
        """Keys as they stand in a payload. Raises MalformedMessage."""
        return map(_packed_keys, self.replaced)

    def _payload_parts(self) -> Iterator[tuple[int, Hashable, Any, Any, Any]]:
        is_timed = self.ttl_clock is not None
        for group, payload in ((group, each) for group, several in self.payloads.items() for each in several):
            match unpack_plain(payload):
                case [namespace, keys, ["tuples", values, times]] if is_timed:
                    yield group, namespace, keys, values, times
                case [namespace, keys, values] if not is_timed:
                    yield group, namespace, keys, values, None
                case other:
                    raise MalformedMessage(f"wanted a namespace, keys and values, found {other!r:.60}")


class SnapshotWriter:
    """Views of all states; called once, on any thread, it writes them into an inline handle."""

    release: Callable[[], object]
    """Tells the backend that the views are not read any more."""

    def __init__(
        self,
        key_groups: range,
        max_parallelism: int,
        key_node: TypeNode,
        views: Sequence[FrozenState],
        carried: Sequence[StoredState],
        operator_name: str = "",
    ) -> None:
        self._key_groups = key_groups
        self._max_parallelism = max_parallelism
        self._key_node = key_node
        self._views = [view for view in views if not view.is_empty]
        self._carried = carried
        self._operator_name = operator_name

    def __call__(self, target: SnapshotTarget) -> KeyedStateHandle | None:
        try:
            return self._write() if self._views or self._carried else None
        finally:
            self._views = []
            self.release()

    def _write(self) -> KeyedStateHandle | None:
        blocks: Blocks = defaultdict(list)
        for index, view in enumerate(self._views):
            self._add(index, view, blocks)
        for index, stored in enumerate(self._carried, len(self._views)):
            for group, payloads in stored.payloads.items():
                blocks[group] += ([index, payload] for payload in payloads)
        if not blocks:  # all that was held has expired
            return None
        parts = {HEADER: self._header()} | {group: pack_plain(blocks[group]) for group in sorted(blocks)}
        return self._handle(parts)

    def _handle(self, parts: dict[int, bytes]) -> KeyedStateHandle:
        offsets, inline = lay_out(parts)
        first, last = self._key_groups[0], self._key_groups[-1]
        in_flight = sum(getattr(view, "in_flight", 0) for view in self._views)
        return KeyedStateHandle(first, last, offsets, inline, FORMAT_NAME, in_flight=in_flight)

    def _header(self) -> bytes:
        all_states: list[FrozenState | StoredState] = [*self._views, *self._carried]
        states = [[state.name, state.kind, state.schema] for state in all_states]
        return pack_plain(
            {
                "format": _FORMAT,
                "max_parallelism": self._max_parallelism,
                "key": self._key_node.schema,
                "states": states,
            }
        )

    def _add(self, index: int, view: FrozenState, blocks: Blocks) -> None:
        """Take the payloads of one state."""
        try:
            for group, payload in view.payloads(self._max_parallelism, self._key_node.encode):
                if group not in self._key_groups:
                    raise self._foreign(view.name, payload, group)
                blocks[group].append([index, payload])
        except StateNotStorable:
            raise
        except WrongValue as wrong:
            declared = f"state {view.name!r} ({describe_state(view.kind, view.schema)})"
            raise WrongStateType(declared, str(wrong), self._operator_name) from None
        except Exception as error:  # whatever a serializer of the user's raises, too
            raise StateNotStorable(f"state {view.name!r}: {error or type(error).__name__}") from error

    def _foreign(self, state: str, payload: bytes, group: int) -> StateNotStorable:
        _, keys, _ = unpack_plain(payload)
        return StateNotStorable(
            f"state {state!r}: "
            f"key {unpacked(keys)[0]!r:.60} is of key group {group}, and this subtask owns "
            f"{self._key_groups[0]} to {self._key_groups[-1]}: it was used without being this record's key"
        )


def read_snapshots(
    handles: Sequence[KeyedStateHandle], read: ReadState, key_groups: range, max_parallelism: int, key_node: TypeNode
) -> dict[str, list[StoredState]]:
    """What handles hold for these key groups, by the name of the state. Raises StateIncompatible, or a StorageError."""
    found: dict[str, list[StoredState]] = {}
    for handle in handles:
        for name, layers in read_layers(handle, read, key_groups, max_parallelism, key_node).items():
            found.setdefault(name, []).append(_overlaid(layers, handle.handle.path or "inline state"))
    return found


def read_layers(
    handle: KeyedStateHandle, read: ReadState, key_groups: range, max_parallelism: int, key_node: TypeNode
) -> dict[str, list[StoredState]]:
    """What one handle holds for these key groups, by the name of the state: that of each run, the oldest first. One
    that lists keys stands for each state of older ones, too. Raises StateIncompatible, or a StorageError.
    """
    found: dict[str, list[StoredState]] = {}
    for run, data in runs_of(handle, read):
        states = _read_snapshot(run, data, key_groups, max_parallelism, key_node)
        keys = [payload for state in states if state.kind == RUN_KEYS for payload in chain(*state.payloads.values())]
        by_name = {state.name: state for state in states if state.kind != RUN_KEYS and (keys or state.payloads)}
        for name, layers in found.items():
            by_name.setdefault(name, replace(layers[-1], payloads={}, replaced=[]))
        for name, state in by_name.items():
            state.replaced = keys if name in found else []
            if state.payloads or state.replaced:
                found.setdefault(name, []).append(state)
    return found


def _read_snapshot(
    handle: KeyedStateHandle, data: bytes, key_groups: range, max_parallelism: int, key_node: TypeNode
) -> list[StoredState]:
    path = handle.handle.path or "inline state"
    try:
        header = unpack_plain(_slice(data, handle.offsets[HEADER], path))
        if header["format"] != _FORMAT:
            raise CorruptState(path, f"snapshot format {_FORMAT}", f"format {header['format']}")
        states = _stored_states(header, max_parallelism, key_node)
        for group in handle.offsets.keys() & set(key_groups):
            for index, payload in unpack_plain(_slice(data, handle.offsets[group], path)):
                states[index].payloads.setdefault(group, []).append(payload)
    except (MalformedMessage, LookupError, TypeError, ValueError) as error:
        raise CorruptState(path, "a snapshot of keyed state", f"{type(error).__name__}: {error}") from error
    return states


def separate(layers: Sequence[StoredState]) -> list[StoredState]:
    """The same without replaced keys. Raises CorruptState."""
    return [_overlaid(layers, "a snapshot")] if any(layer.replaced for layer in layers) else list(layers)


def _overlaid(layers: Sequence[StoredState], path: str) -> StoredState:
    """The runs of one state as one: of each key what the newest run that lists it says. Raises CorruptState."""
    if len(layers) == 1:
        return layers[0]
    newest = layers[-1]
    whole, known = replace(newest, payloads={}, replaced=[]), set[Any]()
    try:
        for layer in reversed(layers):
            for group, payloads in layer.payloads.items():
                left = [left for payload in payloads if (left := without_keys(payload, known, layer.decode_key))]
                whole.payloads.setdefault(group, []).extend(left)
            for keys in layer.replaced_keys():
                known.update(_identities(keys, layer.decode_key))
    except (MalformedMessage, TypeError, ValueError) as error:
        raise CorruptState(path, "runs of keyed state", f"{type(error).__name__}: {error}") from error
    return whole


def without_keys(payload: bytes, known: set[Any], decode_key: Convert) -> bytes | None:
    """A payload without its entries of these keys; None if nothing is left. Raises MalformedMessage."""
    match unpack_plain(payload):
        case [namespace, keys, values]:
            decoded = _identities(keys, decode_key)
            left = [place for place, key in enumerate(decoded) if key not in known]
            if len(left) == len(decoded):
                return payload
            return pack_plain([namespace, chosen(keys, left), chosen(values, left)]) if left else None
        case other:
            raise MalformedMessage(f"wanted a namespace, keys and values, found {other!r:.60}")


def listed_keys(payload: bytes, decode_key: Convert) -> list[Any]:
    """Those that a payload of RUN_KEYS lists. Raises MalformedMessage."""
    return _identities(_packed_keys(payload), decode_key)


def _packed_keys(payload: bytes) -> Any:
    match unpack_plain(payload):
        case [_, keys, _]:
            return keys
        case other:
            raise MalformedMessage(f"wanted the keys of a run, found {other!r:.60}")


def _identities(keys: Any, decode_key: Convert) -> list[Any]:
    return with_same_nans(_decoded(unpacked(keys), decode_key))


def _stored_states(header: dict[str, Any], max_parallelism: int, key_node: TypeNode) -> list[StoredState]:
    if header["max_parallelism"] != max_parallelism:
        raise StateIncompatible(
            "keyed state", f"max_parallelism {max_parallelism}", f"max_parallelism {header['max_parallelism']}"
        )
    try:
        decode_key = key_node.decoder(header["key"])
    except SchemaMismatch as error:
        raise StateIncompatible("key", schema_text(key_node.schema), schema_text(header["key"]), str(error)) from error
    return [
        StoredState(name, kind, schema, decode_key, max_parallelism=max_parallelism)
        for name, kind, schema in header["states"]
    ]


def _slice(data: bytes, position: tuple[int, ...], path: str) -> bytes:
    part = Part.of(position)
    found = data[part.offset : part.offset + part.length]
    if len(found) != part.length:
        raise CorruptState(path, f"{part.length} bytes at {part.offset}", f"{len(found)} bytes")
    return found  # the checksum of the whole has been compared


def _decoded(items: list[Any], decode: Convert) -> list[Any]:
    return items if decode is None else [decode(item) for item in items]
