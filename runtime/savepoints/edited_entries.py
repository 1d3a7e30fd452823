"""The keyed state of one operator as an edit makes it: key group by key group, as the parts of a new snapshot.

Entries of states that are not touched keep their bytes. With another max_parallelism every key is decoded and goes to
its new group.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from ...messages import KeyedStateHandle, UnsupportedValue, pack_plain, records_as_data, unpack_plain
from ...state.backends.backend import NO_NAMESPACE
from ...state.backends.group_parts import HEADER, lay_out
from ...state.backends.keyed_snapshot import FORMAT_NAME
from ...state.backends.timer_queue import KIND as TIMERS
from ...state.columns.packed_columns import column_of, packed, unpacked
from ...state.keys.key_groups import InvalidKey, KeyGroupRange, key_groups_of_list
from ...state.kinds.descriptors import ListState, MapState
from ...state.kinds.schema_fit import Schema
from .edit import OperatorEdit, StateEdit
from .edited_keys import warn_of_other_kinds
from .errors import InvalidEdit
from .stored_types import NoSuchValue, mapping_of, stored_type

_FORMAT = 2

_OF_PARTS = (ListState.kind, MapState.kind)
"""Kinds of state in which each item, or entry, has a time of its own, and without any there is nothing."""

Held: TypeAlias = "dict[Hashable, Entry]"
"""By key and namespace; of timers by key and timer."""


class Entry(NamedTuple):
    """As data, and not as stored."""

    key: Any
    namespace: Any
    value: Any
    time: Any
    """Of the last update, or those of items, in a state with a TTL."""


class EditedEntries:
    """Of one operator. `time_ms`: what counts as the last update of what is put into state with a TTL."""

    def __init__(self, edit: OperatorEdit, max_parallelism: int, time_ms: int) -> None:
        self._edit = edit
        self._parts = edit.source.keyed if edit.source is not None else None
        self._max_parallelism, self._time_ms = max_parallelism, time_ms
        self._is_regrouped = self._parts is not None and self._parts.max_parallelism not in (None, max_parallelism)
        self._states: list[tuple[str, str, Schema]] = []
        self._key_schema: Schema = "Any"
        if self._parts is not None:
            keys = {repr(each.header["key"]): each.header["key"] for each in self._parts.snapshots}
            if len(keys) > 1:
                raise InvalidEdit(f"operator {edit.uid!r}: its keys were written under several types")
            self._key_schema = next(iter(keys.values()), "Any")
            tables = self._parts.tables().values()
            self._states = [(each.name, each.kind, schema) for each in tables for schema in each.schemas]
        self._dropped = {name for name, each in edit.states.items() if each.dropped}
        """Of these nothing is read: their classes may be gone."""
        gone = {name for name, each in edit.states.items() if each.is_gone}
        self._states = [each for each in self._states if each[0] not in gone]
        known = {name for name, _, _ in self._states} | gone
        self._states += [(each.name, each.kind, each.schema) for each in edit.states.values() if each.name not in known]
        self._put = {name: self._put_by_group(each) for name, each in edit.states.items()}
        warn_of_other_kinds(edit, self._held_keys())

    def handle(self, own: KeyGroupRange) -> KeyedStateHandle | None:
        """The snapshot of these key groups; None if they hold nothing. Raises InvalidEdit, and a StorageError."""
        blocks: dict[int, list[list[Any]]] = {}
        for group, payloads in self._kept(own):
            blocks.setdefault(group, []).extend(payloads)
        for name, state in self._edit.states.items():
            if state.is_touched and not state.is_gone:
                for group, payloads in self._edited(state, self._put[name], own):
                    blocks.setdefault(group, []).extend(payloads)
        if not blocks:
            return None
        header = {
            "format": _FORMAT,
            "max_parallelism": self._max_parallelism,
            "key": self._key_schema,
            "states": [list(each) for each in self._states],
        }
        parts = {HEADER: pack_plain(header)} | {group: pack_plain(blocks[group]) for group in sorted(blocks)}
        offsets, inline = lay_out(parts)
        return KeyedStateHandle(own.first, own.last, offsets, inline, FORMAT_NAME)

    # -- what is not touched

    def _held_keys(self) -> Iterator[Any]:
        """Those of the savepoint, of the states that are not dropped; one for each state that it has."""
        if self._parts is None:
            return
        for group in self._parts.groups():
            for *_, payload in self._parts.payloads(group, self._dropped):
                with records_as_data():  # the classes of values may be gone, or be others now
                    _, keys, _ = unpack_plain(payload)
                yield from unpacked(keys)

    def _kept(self, own: KeyGroupRange) -> Iterator[tuple[int, list[list[Any]]]]:
        if self._parts is None:
            return
        touched = {name for name, each in self._edit.states.items() if each.is_touched}
        at = {(name, repr(schema)): index for index, (name, _, schema) in enumerate(self._states)}
        for group in self._old_groups(own):
            for name, _, schema, payload in self._parts.payloads(group, self._dropped):
                if name in touched:
                    continue
                index = at[name, repr(schema)]
                if not self._is_regrouped:
                    yield group, [[index, payload]]
                    continue
                for new_group, entries in self._dealt(_entries(payload, self._key_schema, schema), own):
                    kind = self._states[index][1]
                    packs = self._payloads(name, schema, entries, is_timers=kind == TIMERS)
                    yield new_group, [[index, each] for each in packs]

    def _old_groups(self, own: KeyGroupRange) -> Iterator[int]:
        """Those that the keys of these groups are in."""
        assert self._parts is not None
        old, new = self._parts.max_parallelism or self._max_parallelism, self._max_parallelism
        for group in self._parts.groups():
            if not self._is_regrouped:
                if own.first <= group <= own.last:
                    yield group
            elif old % new == 0:
                if own.first <= group % new <= own.last:
                    yield group
            else:
                yield group

    def _dealt(self, entries: Iterable[Entry], own: KeyGroupRange) -> Iterator[tuple[int, list[Entry]]]:
        """The entries of these groups, by group."""
        listed = list(entries)
        groups = key_groups_of_list([each.key for each in listed], self._max_parallelism).tolist() if listed else []
        dealt: dict[int, list[Entry]] = {}
        for group, entry in zip(groups, listed, strict=True):
            if own.first <= group <= own.last:
                dealt.setdefault(group, []).append(entry)
        yield from dealt.items()

    # -- what is

    def _edited(
        self, state: StateEdit, put: list[dict[int, list[Any]]], own: KeyGroupRange
    ) -> Iterator[tuple[int, list[list[Any]]]]:
        index = next(at for at, (name, _, _) in enumerate(self._states) if name == state.name)
        before: dict[int, list[Entry]] = {}
        if self._parts is not None and not state.dropped:
            for group in self._old_groups(own):
                for name, _, schema, payload in self._parts.payloads(group, self._dropped):
                    if name == state.name:
                        for new_group, entries in self._dealt(_entries(payload, self._key_schema, schema), own):
                            before.setdefault(new_group, []).extend(entries)
        groups = sorted({*before, *(group for step in put for group in step if own.first <= group <= own.last)})
        for group in groups:
            held = {_identity(entry, state): entry for entry in before.get(group, ())}
            for number, step in enumerate(state.steps):
                self._take(step, held, state, put[number].get(group, []))
            packs = self._payloads(state.name, state.schema, held.values(), is_timers=state.kind == TIMERS)
            yield group, [[index, each] for each in packs]

    def _take(self, step: Any, held: Held, state: StateEdit, put: list[Any]) -> None:
        """One step of the edit, on the entries of one key group."""
        if isinstance(step, frozenset):
            for identity in [each for each, entry in held.items() if entry.key in step]:
                del held[identity]
            return
        if callable(step):
            for identity, entry in list(held.items()):
                parts = list(entry.value) if isinstance(entry.time, list) else []  # it may be changed in place
                value = _held(step(entry.key, entry.value), entry.key, state)
                if value is None or _is_empty(value, state):
                    del held[identity]
                else:
                    held[identity] = entry._replace(value=value, time=self._times_of(value, parts, entry.time))
            return
        for key, given in put:
            value = _held(given, key, state)
            entry = Entry(key, NO_NAMESPACE, value, None)
            if state.kind == TIMERS:
                entry = entry._replace(value=_timer(value, state))
            elif state.has_ttl:
                before: Any = [] if state.kind in _OF_PARTS else self._time_ms
                entry = entry._replace(time=self._times_of(value, [], before))
            if _is_empty(value, state):
                held.pop(_identity(entry, state), None)
            else:
                held[_identity(entry, state)] = entry

    def _times_of(self, value: Any, before: list[Any], times: Any) -> Any:
        """The times of a value that was changed. `before`: the items, or keys of entries, that have the times. An entry
        keeps its own, and a new one is as old as the newest; so are all items of a list that has become longer or
        shorter.
        """
        if not isinstance(times, list) or not isinstance(value, list | tuple | dict):
            return times
        newest = max(times, default=self._time_ms)
        if isinstance(value, dict):
            known = dict(zip(before, times, strict=True))
            return [known.get(name, newest) for name in value]
        return times if len(times) == len(value) else [newest] * len(value)

    def _put_by_group(self, state: StateEdit) -> list[dict[int, list[Any]]]:
        """What each step puts, by key group."""
        dealt: list[dict[int, list[Any]]] = []
        for step in state.steps:
            groups: dict[int, list[Any]] = {}
            dealt.append(groups)
            if callable(step) or isinstance(step, frozenset):
                continue
            pairs = list(step.items()) if isinstance(step, Mapping) else step
            try:
                found = key_groups_of_list([key for key, _ in pairs], self._max_parallelism).tolist() if pairs else []
            except InvalidKey as error:
                raise InvalidEdit(f"{state.operator}.{state.name}: {error}") from error
            for group, pair in zip(found, pairs, strict=True):
                groups.setdefault(group, []).append(pair)
        return dealt

    def _payloads(self, name: str, schema: Schema, entries: Iterable[Entry], *, is_timers: bool) -> Iterator[bytes]:
        """The entries of one group, a payload for each namespace."""
        spaces: dict[Hashable, list[Entry]] = {}
        for entry in entries:
            spaces.setdefault(entry.namespace, []).append(entry)
        of_key, of_value = stored_type(self._key_schema), stored_type(schema)
        for namespace, several in spaces.items():
            where = f"{self._edit.uid}.{name}"
            keys = [_encoded(of_key.encode, each.key, each.key, where) for each in several]
            values = [
                each.value if is_timers else _encoded(of_value.encode, each.value, each.key, where) for each in several
            ]
            stored: Any = _packed(values)
            if isinstance(schema, dict) and "ttl" in schema:
                stored = ["tuples", stored, _packed([each.time for each in several])]
            try:
                yield pack_plain([namespace, _packed(keys), stored])
            except UnsupportedValue as error:
                raise InvalidEdit(f"{where}: {error}") from error


def _packed(items: list[Any]) -> list[Any]:
    return packed(column_of(items), 0, len(items))


def _encoded(encode: Any, value: Any, key: Any, where: str) -> Any:
    try:
        return encode(value)
    except (NoSuchValue, UnsupportedValue) as error:
        raise InvalidEdit(f"{where}, key {key!r:.60}: {error}") from error


def _entries(payload: bytes, key_schema: Schema, schema: Schema) -> Iterator[Entry]:
    namespace, keys, values = unpack_plain(payload)
    times = None
    if isinstance(schema, dict) and "ttl" in schema:
        _, values, times = values
        times = unpacked(times)
    of_key, of_value = stored_type(key_schema).decode, stored_type(schema).decode
    for at, (key, value) in enumerate(zip(unpacked(keys), unpacked(values), strict=True)):
        yield Entry(
            key if of_key is None else of_key(key),
            namespace,
            value if of_value is None else of_value(value),
            None if times is None else times[at],
        )


def _identity(entry: Entry, state: StateEdit) -> Hashable:
    return (entry.key, entry.namespace, entry.value) if state.kind == TIMERS else (entry.key, entry.namespace)


def _timer(value: Any, state: StateEdit) -> tuple[int, Hashable]:
    match value:
        case int(time_ms) | (int(time_ms), _) if not isinstance(time_ms, bool) and -(2**63) <= time_ms < 2**63:
            return (time_ms, value[1] if isinstance(value, tuple) else NO_NAMESPACE)
    raise InvalidEdit(
        f"{state.operator}.{state.name}: wanted a time in ms since the epoch, within 64 bits, or (time, namespace), "
        f"found {value!r:.60}"
    )


def _held(value: Any, key: Any, state: StateEdit) -> Any:
    """A map as a dict, also where it is given as pairs, of which two may have one name."""
    if state.kind != MapState.kind or not isinstance(value, list):
        return value
    return _encoded(mapping_of, value, key, f"{state.operator}.{state.name}")


def _is_empty(value: Any, state: StateEdit) -> bool:
    """Whether a key that is to hold this holds nothing, as in a job."""
    return state.kind in _OF_PARTS and isinstance(value, list | tuple | dict) and not value
