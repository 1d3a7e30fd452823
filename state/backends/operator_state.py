"""OperatorStateBackend: the operator list states of one operator subtask. Flink: DefaultOperatorStateBackend.

These lists are small (offsets, open transactions), so a snapshot packs them in its synchronous part, as Flink
deep-copies them. Each item carries its schema: a rescale deals items out one by one, from snapshots of different
versions of the program too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any, TypeVar, cast

from ...messages import MalformedMessage, OperatorListHandle, UnsupportedValue, pack_plain, refusal_of, unpack_plain
from ..errors import (
    CorruptState,
    InvalidState,
    ReadOnlyState,
    StateIncompatible,
    StateNotStorable,
    WrongStateType,
    of_operator,
)
from ..handle_bytes import inline_handle
from ..kinds.descriptors import OperatorListState
from ..kinds.misnamed import Misnamed
from ..kinds.record_serializer import Convert, packed_schema
from ..kinds.schema_fit import SchemaMismatch
from ..kinds.state_declaration import describe_state
from ..kinds.value_fit import Misfit, first_misfit, plain_scalar
from .backend import ReadState
from .read_only import ReadOnlySwitch
from .unit_of_work import CURRENT

S = TypeVar("S", bound=OperatorListState[Any])


class OperatorList(Misnamed, kind="OperatorListState"):
    """The accessor of one operator list state."""

    __slots__ = ("_backend", "_fit", "_items", "declaration")

    def __init__(self, declaration: OperatorListState[Any], backend: OperatorStateBackend, items: list[Any]) -> None:
        self.declaration = declaration
        self._fit = declaration.fit()
        self._backend = backend
        self._items = items

    def get(self) -> list[Any]:
        return list(self._items)

    def add(self, item: Any) -> None:
        self._check_writable()
        self._items += self._fitting([item])

    def add_all(self, items: Iterable[Any]) -> None:
        self._check_writable()
        self._items += self._fitting(items)

    def update(self, items: Iterable[Any]) -> None:
        self._check_writable()
        self._items = self._fitting(items)

    def clear(self) -> None:
        self.update(())

    def pack(self) -> list[bytes]:
        """Every item by itself, with its schema. Raises WrongStateType, or StateNotStorable."""
        self._check(first_misfit(self._fit, self._items))
        node = self.declaration.node()
        schema, encode = packed_schema(node.schema), node.encode
        try:
            return [_packed(schema, encode(item) if encode else item) for item in self._items]
        except Exception as error:  # whatever a serializer of the user's raises, too
            raise StateNotStorable(f"state {self.declaration.name!r}: {error or type(error).__name__}") from error

    def _fitting(self, items: Iterable[Any]) -> list[Any]:
        """As they are held. Raises WrongStateType."""
        fit = self._fit
        held: list[Any] = []
        for item in items:
            if not fit.takes(item):
                self._check((len(held), Misfit(fit.text, item, "")))
            held.append(item if fit.kind is None else plain_scalar(item))
        return held

    def _check(self, found: tuple[int, Misfit] | None) -> None:
        if found is not None:
            text = f"item {found[0]}: {found[1]}"
            raise WrongStateType(self.declaration.named(), text, self._backend.operator_name)

    def _check_writable(self) -> None:
        if self._backend.is_read_only:
            raise ReadOnlyState(self.declaration.name)
        if CURRENT.get() is not None:
            raise InvalidState(
                f"{of_operator(self._backend.operator_name)}list {self.declaration.name!r} was changed in a coroutine, "
                "which a failed try, or a restart, could not undo: change it in on_checkpoint or another plain method, "
                "or keep it by key, in a ListState of a KeyedOperator"
            )
        if self.declaration.mode == "broadcast" and self._backend.has_key():
            raise InvalidState(
                f"{of_operator(self._backend.operator_name)}list {self.declaration.name!r} must be the same in all "
                "subtasks (mode='broadcast'), but was changed while there is a current key, which only one subtask "
                "has: change it in process_2 of keyed.connect(rules.broadcast()), outside of loops over self.keys()"
            )


def _no_key() -> bool:
    return False


class OperatorStateBackend(ReadOnlySwitch):
    """Owned by its task's thread."""

    def __init__(self) -> None:
        super().__init__()
        self.operator_name = ""
        """For error texts."""
        self.has_key: Callable[[], bool] = _no_key
        """Whether the operator has a current key."""
        self._states: dict[str, OperatorList] = {}
        self._restored: dict[str, list[tuple[OperatorListHandle, list[bytes]]]] = {}

    def state(self, declaration: S) -> S:
        """The accessor of a declared list. Raises StateIncompatible when what was restored does not fit."""
        known = self._states.get(declaration.name)
        if known is None:
            names = (declaration.name, *declaration.former_names)
            parts = (part for name in names for part in self._restored.pop(name, ()))
            items = [item for _, packed in parts for item in _decode(declaration, packed)]
            known = self._states[declaration.name] = OperatorList(declaration, self, items)
        return cast(S, known)

    def snapshot(self) -> tuple[OperatorListHandle, ...]:
        """All lists as they are now, inline; those restored and not declared any more are carried along. Empty ones
        are left out, except those of mode "broadcast": a subtask that finds none is given another subtask's.
        """
        own = (list_handle(name, state.declaration.mode, state.pack()) for name, state in self._states.items())
        carried = (
            list_handle(old.name, old.mode, items) for several in self._restored.values() for old, items in several
        )
        lists = (*own, *carried)
        return tuple(handle for handle in lists if handle.handle.size_bytes or handle.mode == "broadcast")

    def restore(self, handles: Sequence[OperatorListHandle], read: ReadState) -> None:
        """Take over lists, in the order of the handles. Before any use."""
        assert not self._states, "operator state is restored before its lists are bound"
        for handle in handles:
            self._restored.setdefault(handle.name, []).append((handle, _items(handle, read(handle.handle))))

    def close(self) -> None:
        self._states.clear()
        self._restored.clear()


def _packed(schema: bytes, item: Any) -> bytes:
    try:
        return pack_plain([schema, item])
    except UnsupportedValue as error:
        raise UnsupportedValue(refusal_of(item) or str(error)) from error


def read_list(declaration: OperatorListState[Any], handle: OperatorListHandle, read: ReadState) -> list[Any]:
    """The items of a list in a snapshot. Raises StateIncompatible, and what `read` raises."""
    return list(_decode(declaration, _items(handle, read(handle.handle))))


def packed_list(declaration: OperatorListState[Any], items: Iterable[Any]) -> OperatorListHandle:
    """Items that need no encoding, as the list's own part of a snapshot."""
    schema = packed_schema(declaration.node().schema)
    return list_handle(declaration.name, declaration.mode, [_packed(schema, item) for item in items])


def list_handle(name: str, mode: str, items: list[bytes]) -> OperatorListHandle:
    """Items that are packed, with their schemas, as `OperatorList.pack` does it; inline."""
    offsets = tuple(accumulate(map(len, items), initial=0))
    return OperatorListHandle(name, mode, offsets, inline_handle(b"".join(items)))


def _items(handle: OperatorListHandle, data: bytes) -> list[bytes]:
    offsets = handle.offsets
    if offsets and not 0 <= min(offsets) <= max(offsets) <= len(data):
        path = handle.handle.path or "inline state"
        raise CorruptState(path, f"items of list {handle.name!r} up to {max(offsets)}", f"{len(data)} bytes")
    return [data[start:end] for start, end in pairwise(offsets)]


def _decode(declaration: OperatorListState[Any], items: list[bytes]) -> Iterator[Any]:
    node, name = declaration.node(), declaration.name
    decoders: dict[bytes, Convert] = {}
    for item in items:
        found = "unreadable bytes"
        try:
            schema, raw = unpack_plain(item)
            found = describe_state(declaration.kind, unpack_plain(schema))
            if schema not in decoders:
                decoders[schema] = node.decoder(unpack_plain(schema))
            decode = decoders[schema]
            yield raw if decode is None else decode(raw)
        except (SchemaMismatch, MalformedMessage, TypeError, ValueError) as error:
            raise StateIncompatible(name, declaration.describe(), found, str(error)) from error
