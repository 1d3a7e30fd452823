"""A state backend is one object, known by its name in one place."""

from __future__ import annotations

import gc
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from understudy.messages import CheckpointId
from understudy.state.backends.heap_backend import HeapBackend
from understudy.state.checkpoints.state_backends import backend_named, backend_names
from understudy.state.errors import UnknownBackend
from understudy.state.keys.key_groups import KeyGroupRange, key_group
from understudy.state.kinds.descriptors import ValueState


@pytest.mark.parametrize("name", backend_names())
def test_a_backend_is_found_by_the_name_that_it_gives_itself(name: str) -> None:
    assert backend_named(name).name == name


@pytest.mark.parametrize("name", ["memory", "filesystem"])
def test_a_backend_makes_keyed_state_for_its_key_groups(name: str) -> None:
    backend = backend_named(name).keyed_backend(KeyGroupRange(4, 7), 16)
    assert isinstance(backend, HeapBackend)
    assert (backend.key_groups, backend.max_parallelism) == (range(4, 8), 16)


def test_rocksdb_makes_keyed_state_in_files_that_go_with_it() -> None:
    backend: Any = backend_named("rocksdb").keyed_backend(KeyGroupRange(4, 7), 16)
    value = backend.state(ValueState(int, name="value"))
    backend.current_key = next(key for key in count() if key_group(key, 16) == 5)
    value.update(1)
    snapshot = backend.snapshot(CheckpointId(1))
    folder = Path(backend.store.path).parent
    backend.close()
    assert [each.suffix for each in folder.iterdir()] == [""], "the checkpoint's files are there until it is written"
    del backend, value, snapshot
    gc.collect()
    assert not folder.exists()


def test_an_unknown_name_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(
        UnknownBackend, match="found the state backend 'rocks'; wanted one of memory, filesystem, rocksdb"
    ):
        backend_named("rocks")
