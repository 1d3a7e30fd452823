"""RocksBackend passes the contract of keyed state."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from tempfile import TemporaryDirectory
from uuid import uuid4
from weakref import WeakSet

import pytest

from tests.contracts.expiring_state import ExpiringStateContract, Hands
from tests.contracts.fewer_examples import with_fewer_examples
from tests.contracts.keyed_state import MAX_PARALLELISM, KeyedStateContract
from understudy.messages import (
    CheckpointId,
    ExecutionAttemptId,
    JobId,
    KeyedStateHandle,
    SubtaskIndex,
    VertexId,
)
from understudy.state.backends.backend import KeyedSnapshot, KeyedStateBackend, SnapshotTarget
from understudy.state.rocks import cached_rows
from understudy.state.rocks.memory import RocksMemory
from understudy.state.rocks.rocks_backend import RocksBackend
from understudy.state.rocks.store import StoreOptions
from understudy.state.storage import CheckpointStorage


class _Rocks:
    """Backends in a folder of the test, which is in memory where it can be: RocksDB syncs its files."""

    options: StoreOptions
    made: WeakSet[RocksBackend]

    @pytest.fixture(autouse=True)
    def _folder(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        """With so small a cache that its entries are always on their way to RocksDB."""
        monkeypatch.setattr(cached_rows, "GENERATION_ENTRIES", 2)
        in_memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        with TemporaryDirectory(dir=in_memory, ignore_cleanup_errors=True) as folder:
            type(self).options = StoreOptions(folder, RocksMemory(8))
            type(self).made = WeakSet()
            yield
            for backend in list(self.made):  # RocksDB waits long for files of a folder that is gone
                backend.close()

    def make_backend(self, key_groups: range = range(MAX_PARALLELISM)) -> RocksBackend:
        backend = RocksBackend(key_groups[0], key_groups[-1], MAX_PARALLELISM, self.options)
        self.made.add(backend)
        return backend


class RocksContract(_Rocks, KeyedStateContract):
    pass


class ExpiringRocksContract(_Rocks, ExpiringStateContract):
    def make_expiring(self, key_groups: range = range(MAX_PARALLELISM)) -> RocksBackend:
        return self.make_backend(key_groups)

    def written(self, snapshot: KeyedSnapshot) -> list[KeyedStateHandle]:
        storage, attempt = CheckpointStorage("memory://contract"), ExecutionAttemptId(uuid4().hex)
        handle = snapshot(
            SnapshotTarget(storage, JobId("job"), CheckpointId(1), VertexId("v"), SubtaskIndex(0), attempt)
        )
        return [] if handle is None else [handle]

    def again(
        self, handles: Sequence[KeyedStateHandle], clock: Hands, key_groups: range = range(MAX_PARALLELISM)
    ) -> KeyedStateBackend:
        backend = self.timed(clock, key_groups)
        backend.restore(handles, CheckpointStorage("memory://contract").read)
        return backend


TestRocksBackend = type("TestRocksBackend", (RocksContract,), with_fewer_examples(KeyedStateContract, 5))
TestExpiringRocksBackend = type(
    "TestExpiringRocksBackend", (ExpiringRocksContract,), with_fewer_examples(ExpiringStateContract, 4)
)


@pytest.mark.slow
class TestRocksBackendThoroughly(RocksContract):
    pass


@pytest.mark.slow
class TestExpiringRocksBackendThoroughly(ExpiringRocksContract):
    pass
