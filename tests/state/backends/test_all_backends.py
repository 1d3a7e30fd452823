"""Whatever holds keyed state has all that a task calls."""

from __future__ import annotations

import pytest

from understudy.state.backends.backend import KeyedStateBackend
from understudy.state.backends.heap_backend import HeapBackend
from understudy.state.backends.shared_backend import SharedBackend
from understudy.state.columnar.columnar_backend import ColumnarBackend
from understudy.state.columnar.keyed_rows import KeyedRows
from understudy.state.columnar.slot_backend import SlotBackend
from understudy.state.columnar.window_backend import WindowBackend
from understudy.state.rocks.rocks_backend import RocksBackend

BACKENDS = [ColumnarBackend, HeapBackend, KeyedRows, RocksBackend, SharedBackend, SlotBackend, WindowBackend]


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_method_is_there(backend: type) -> None:
    methods = [name for name in vars(KeyedStateBackend) if not name.startswith("_")]
    assert len(methods) > 8
    assert [name for name in methods if not hasattr(backend, name)] == []
