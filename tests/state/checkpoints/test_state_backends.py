"""A state backend is one object, known by its name in one place."""

from __future__ import annotations

import pytest

from understudy.state.backends.heap_backend import HeapBackend
from understudy.state.checkpoints.state_backends import backend_named, backend_names
from understudy.state.errors import UnknownBackend
from understudy.state.keys.key_groups import KeyGroupRange


@pytest.mark.parametrize("name", backend_names())
def test_a_backend_is_found_by_the_name_that_it_gives_itself(name: str) -> None:
    assert backend_named(name).name == name


@pytest.mark.parametrize("name", ["memory", "filesystem"])
def test_a_backend_makes_keyed_state_for_its_key_groups(name: str) -> None:
    backend = backend_named(name).keyed_backend(KeyGroupRange(4, 7), 16)
    assert isinstance(backend, HeapBackend)
    assert (backend.key_groups, backend.max_parallelism) == (range(4, 8), 16)


def test_an_unknown_name_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(UnknownBackend, match="found the state backend 'rocks'; wanted one of memory, filesystem"):
        backend_named("rocks")
