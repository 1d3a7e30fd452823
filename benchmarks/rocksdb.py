"""State in RocksDB by itself: reads and writes against bare rocksdict, bytes and time of checkpoints, and memory.

No job runs here: the state is that of one subtask, used as its operator uses it, key by key in batches. Bare rocksdict
gets the same batches in one run, in turn: once as bytes that stand ready (`raw`), once as the Python keys and values
that a program has (`objects`), which is what state does. Rates are per second of processor time.
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from statistics import mean, median
from typing import Any

import click
import numpy as np

from understudy import ValueState
from understudy.messages import CheckpointId, ExecutionAttemptId, JobId, SubtaskIndex, VertexId
from understudy.state import CheckpointStorage, SnapshotTarget, WorkingState, backend_named
from understudy.state.keys.key_groups import KeyGroupRange

from .report import finish, shared_options

WORKLOAD = "rocksdb"
MAX_PARALLELISM = 128
BATCH = 1024
_NOISE = random.Random(0).randbytes(1 << 20)
VALUE = ValueState(bytes, name="value")


@click.command(WORKLOAD)
@click.option("--keys", default=100_000, show_default=True, type=click.IntRange(BATCH))
@click.option("--value-bytes", default=400, show_default=True, type=click.IntRange(16))
@click.option("--memory-mb", default=64, show_default=True, type=click.IntRange(8))
@click.option("--changed", default=0.01, show_default=True, type=click.FloatRange(0, 1), help="Share of the keys.")
@click.option("--checkpoints", default=5, show_default=True, type=click.IntRange(1), help="After the first one.")
@click.option("--alone", is_flag=True, help="Without bare rocksdict, which takes memory of its own.")
@click.option("--directory", default=None, type=click.Path(file_okay=False), help="Of all files; a temporary one.")
@shared_options
def rocksdb(
    keys: int,
    value_bytes: int,
    memory_mb: int,
    changed: float,
    checkpoints: int,
    alone: bool,
    directory: str | None,
    runs: int,
    json_path: str | None,
) -> None:
    """State in RocksDB: against bare rocksdict, its checkpoints, its memory."""
    problems: list[str] = []
    folder = tempfile.mkdtemp(prefix="understudy-benchmark-", dir=directory)
    try:
        figures = {
            "against_bare": [
                _contest(keys, value_bytes, memory_mb, f"{folder}/{run}", problems)
                for run in range(0 if alone else runs)
            ],
            "checkpoints": [
                _checkpoints(keys, value_bytes, memory_mb, changed, checkpoints, f"{folder}/c{run}", problems)
                for run in range(runs)
            ],
            "peak_resident_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000),
        }
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    finish(
        {"workload": WORKLOAD, "keys": keys, "value_bytes": value_bytes, "memory_mb": memory_mb},
        figures,
        problems,
        json_path,
    )


def _value(key: int, size: int, generation: int = 0) -> bytes:
    """Of bytes that cannot be compressed."""
    head, at = b"%d:%d:" % (key, generation), key * 7919 % (len(_NOISE) - size)
    return head + _NOISE[at : at + size - len(head)]


def _batches(keys: int, seed: int) -> Iterator[list[int]]:
    """All keys once, in a random order. The order takes 4 bytes per key."""
    order = np.random.default_rng(seed).permutation(np.arange(keys, dtype=np.int32))
    for start in range(0, keys, BATCH):
        yield order[start : start + BATCH].tolist()


def _contest(keys: int, size: int, memory_mb: int, folder: str, problems: list[str]) -> dict[str, Any]:
    sides = {name: make(f"{folder}-{name}", size, memory_mb) for name, make in SIDES.items()}
    spent = {name: {"write": 0.0, "read": 0.0} for name in sides}
    for what, seed in (("write", 1), ("read", 2)):
        for batch in _batches(keys, seed):
            for name, side in sides.items():
                begun = time.process_time()
                right = getattr(side, what)(batch)
                spent[name][what] += time.process_time() - begun
                if not right:
                    problems.append(f"{name} read wrong values")
    for side in sides.values():
        side.close()
    rates = {f"{what}s_per_s_{name}": round(keys / spent[name][what]) for name in sides for what in ("write", "read")}
    ratios = {
        f"{what}s_against_{name}": round(spent[name][what] / spent["state"][what], 2)
        for name in sides
        if name != "state"
        for what in ("write", "read")
    }
    return rates | ratios


class _State:
    """An operator's state: read ahead by batch, then key by key."""

    def __init__(self, folder: str, size: int, memory_mb: int) -> None:
        os.makedirs(folder)
        self._size = size
        self.backend: Any = _backend(folder, memory_mb)
        self.state: Any = self.backend.state(VALUE)

    def write(self, batch: list[int], generation: int = 0) -> bool:
        backend, state, size = self.backend, self.state, self._size
        backend.read_ahead(batch)
        for key in batch:
            backend.current_key = key
            state.update(_value(key, size, generation))
        return True

    def read(self, batch: list[int]) -> bool:
        backend, state = self.backend, self.state
        backend.read_ahead(batch)
        found = []
        for key in batch:
            backend.current_key = key
            found.append(state.value())
        return found == [_value(key, self._size) for key in batch]

    def close(self) -> None:
        self.backend.close()


class _Bare:
    """rocksdict with batches; `encode` makes what it takes of a key."""

    is_raw: bool

    def __init__(self, folder: str, size: int, memory_mb: int) -> None:
        from rocksdict import Options, Rdict, WriteOptions

        options = Options(raw_mode=self.is_raw)
        options.create_if_missing(True)
        self._size = size
        self._db = Rdict(folder, options)
        self._unlogged: Any = WriteOptions()
        self._unlogged.disable_wal = True  # type: ignore[method-assign, assignment]

    def _key(self, key: int) -> Any:
        return key.to_bytes(8, "big") if self.is_raw else key

    def write(self, batch: list[int]) -> bool:
        from rocksdict import WriteBatch

        changes, size = WriteBatch(raw_mode=self.is_raw), self._size
        for key in batch:
            changes.put(self._key(key), _value(key, size))
        self._db.write(changes, self._unlogged)
        return True

    def read(self, batch: list[int]) -> bool:
        return self._db.get([self._key(key) for key in batch]) == [_value(key, self._size) for key in batch]

    def close(self) -> None:
        self._db.close()


class _BareRaw(_Bare):
    is_raw = True


class _BareObjects(_Bare):
    is_raw = False


SIDES: dict[str, Callable[[str, int, int], Any]] = {"state": _State, "raw": _BareRaw, "objects": _BareObjects}


def _backend(folder: str, memory_mb: int) -> Any:
    made = backend_named("rocksdb", WorkingState(folder, memory_mb))
    return made.keyed_backend(KeyGroupRange(0, MAX_PARALLELISM - 1), MAX_PARALLELISM)


def _checkpoints(
    keys: int, size: int, memory_mb: int, changed: float, checkpoints: int, folder: str, problems: list[str]
) -> dict[str, Any]:
    side = _State(f"{folder}/state", size, memory_mb)
    storage = CheckpointStorage(f"{folder}/checkpoints")
    for batch in _batches(keys, 1):
        side.write(batch)
    first = _checkpoint(side, storage, 1)
    draw, newest, later = random.Random(5), dict[int, int](), list[dict[str, Any]]()
    for generation in range(1, checkpoints + 1):
        some = draw.sample(range(keys), max(1, round(keys * changed)))
        for start in range(0, len(some), BATCH):
            side.write(some[start : start + BATCH], generation)
        newest.update(dict.fromkeys(some, generation))
        later.append(_checkpoint(side, storage, generation + 1))
    side.close()
    os.makedirs(f"{folder}/again")
    again = _backend(f"{folder}/again", memory_mb)
    begun = time.perf_counter()
    again.restore([later[-1]["handle"]], storage.read)
    state = again.state(VALUE)
    restore_ms = (time.perf_counter() - begun) * 1000
    for key in random.Random(6).sample(range(keys), min(keys, 5000)):
        again.current_key = key
        if state.value() != _value(key, size, newest.get(key, 0)):
            problems.append(f"key {key} was restored wrongly")
    again.close()
    return {
        "first_mb": round(first["bytes"] / 1e6, 2),
        "first_pause_ms": first["pause_ms"],
        "first_ms": first["ms"],
        "next_mb": round(median(each["bytes"] for each in later) / 1e6, 3),
        "next_pause_ms": median(each["pause_ms"] for each in later),
        "next_ms": median(each["ms"] for each in later),
        **_shares(first, later, "bytes"),
        **_shares(first, later, "ms"),
        "restore_ms": round(restore_ms, 1),
    }


def _shares(first: dict[str, Any], later: list[dict[str, Any]], what: str) -> dict[str, float]:
    shares = [each[what] / first[what] for each in later]
    named = {"median": median(shares), "mean": mean(shares), "max": max(shares)}
    return {f"next_{what}_share_{name}": round(share, 4) for name, share in named.items()}


def _checkpoint(side: _State, storage: CheckpointStorage, number: int) -> dict[str, Any]:
    target = SnapshotTarget(
        storage, JobId("job"), CheckpointId(number), VertexId("v"), SubtaskIndex(0), ExecutionAttemptId("a")
    )
    before = _stored_bytes(storage)
    begun = time.perf_counter()
    write = side.backend.snapshot(CheckpointId(number))
    pause_ms = (time.perf_counter() - begun) * 1000
    handle = write(target)
    side.backend.checkpoint_complete(CheckpointId(number))
    return {
        "handle": handle,
        "bytes": _stored_bytes(storage) - before + handle.handle.size_bytes,
        "pause_ms": round(pause_ms, 1),
        "ms": round((time.perf_counter() - begun) * 1000, 1),
    }


def _stored_bytes(storage: CheckpointStorage) -> int:
    return sum(os.path.getsize(f"{storage.root}/{path}") for path in storage.list_files())
