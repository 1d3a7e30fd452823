"""A key whose class has changed since its state was stored is refused: records of today would not find it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from understudy.messages import CheckpointId, ExecutionAttemptId, JobId, KeyedStateHandle, SubtaskIndex, VertexId
from understudy.state import HeapBackend, handle_reader
from understudy.state.backends.backend import KeyedStateBackend, SnapshotTarget
from understudy.state.errors import StateIncompatible
from understudy.state.kinds.descriptors import ValueState
from understudy.state.rocks.memory import RocksMemory
from understudy.state.rocks.rocks_backend import RocksBackend
from understudy.state.rocks.store import StoreOptions

TARGET = SnapshotTarget(
    None, JobId("job"), CheckpointId(1), VertexId("vertex"), SubtaskIndex(0), ExecutionAttemptId("attempt")
)


@dataclass(frozen=True)
class Before:
    city: str
    gate: int = 0


@dataclass(frozen=True)
class Longer:
    city: str
    gate: int = 0
    level: int = 0


@dataclass(frozen=True)
class Beside:
    city: str
    gate: int = 0
    note: str = field(default="", compare=False)


def heap() -> KeyedStateBackend:
    return HeapBackend(0, 127, 128)


def rocks() -> KeyedStateBackend:
    return RocksBackend(0, 127, 128, StoreOptions.temporary(RocksMemory(8)))


@pytest.fixture
def known_as_key(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[type], type]]:
    """Gives a class the name that keys are stored under, in place of the one that has it."""
    kept: list[tuple[type, str]] = []

    def known(cls: type) -> type:
        kept.append((cls, cls.__qualname__))
        cls.__qualname__ = "Key"
        monkeypatch.setattr(sys.modules[__name__], "Key", cls, raising=False)
        return cls

    yield known
    for cls, name in kept:
        cls.__qualname__ = name


def restored(was: type, now: Callable[[], type], backends: Sequence[Callable[[], KeyedStateBackend]]) -> Any:
    """What the class of today finds under the key that was stored with the other one."""
    before, after = (make() for make in backends)
    try:
        state = before.state(ValueState(int, name="total"))
        for gate in range(20):
            before.current_key = was("JFK", gate)
            state.update(gate)
        handle = before.snapshot(CheckpointId(1))(TARGET)
        assert isinstance(handle, KeyedStateHandle)
        key = now()
        after.restore([handle], handle_reader(None))
        state = after.state(ValueState(int, name="total"))
        after.current_key = key("JFK", 7)
        return state.value()
    finally:
        before.close()
        after.close()


BACKENDS = pytest.mark.parametrize("backends", [(heap, heap), (heap, rocks)], ids=["heap", "into rocks"])


@BACKENDS
def test_a_key_that_has_gained_a_field_is_refused(
    backends: Sequence[Callable[[], KeyedStateBackend]], known_as_key: Callable[[type], type]
) -> None:
    with pytest.raises(StateIncompatible) as raised:
        restored(known_as_key(Before), lambda: known_as_key(Longer), backends)
    assert "state 'total' (ValueState of int) cannot be restored: the key " in str(raised.value)
    assert "its class has changed, and records with this key would not find what is stored" in str(raised.value)


@BACKENDS
def test_a_field_that_keys_are_not_compared_by_moves_none(
    backends: Sequence[Callable[[], KeyedStateBackend]], known_as_key: Callable[[type], type]
) -> None:
    assert restored(known_as_key(Before), lambda: known_as_key(Beside), backends) == 7
