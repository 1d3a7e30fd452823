"""What encryption at rest costs: a checkpoint written and restored with a key and without one, by kind of state.

No job runs here: the state is that of one subtask, in one process. It is filled once for each kind. In turn, each run
writes it whole into a folder without a key and into one with a key, reads the files back alone, and restores them into
a new backend, whose values are compared with those that went in. Seconds are those of the wall clock, and of the
processor with what runs in the background. That files with a key are sealed, and the others are not, is looked up.
"""

from __future__ import annotations

import base64
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

import click

from understudy import ValueState
from understudy.messages import CheckpointId, ExecutionAttemptId, JobId, StateHandle, SubtaskIndex, VertexId
from understudy.state import CheckpointStorage, SnapshotTarget
from understudy.state.keyring import KEY_BYTES, VARIABLE, is_sealed

from .increments import KINDS
from .report import finish, shared_options

WORKLOAD = "encryption"
BATCH = 1024
BLOB_BYTES = 8 << 20
"""Values are cut out of so many random bytes: those that lie near each other do not compress."""
VALUE = ValueState(bytes, name="value")
NUMBER = ValueState(int, name="value")
SIDES = ("plain", "sealed")


@dataclass
class Took:
    """Seconds of one kind and side, a figure for each run."""

    wall: dict[str, list[float]] = field(default_factory=dict)
    processor: dict[str, list[float]] = field(default_factory=dict)
    stored_bytes: int = 0

    @contextmanager
    def timed(self, what: str) -> Iterator[None]:
        wall, processor = time.perf_counter(), time.process_time()
        yield
        self.wall.setdefault(what, []).append(time.perf_counter() - wall)
        self.processor.setdefault(what, []).append(time.process_time() - processor)


@click.command(WORKLOAD)
@click.option("--keys", default=1_000_000, show_default=True, type=click.IntRange(BATCH))
@click.option("--value-bytes", default=100, show_default=True, type=click.IntRange(8), help="Where values are bytes.")
@click.option("--kinds", default=",".join(KINDS), show_default=True, help="Comma-separated.")
@shared_options
def encryption(keys: int, value_bytes: int, kinds: str, runs: int, json_path: str | None) -> None:
    """What a checkpoint and its restore cost with a key, against none."""
    problems: list[str] = []
    chosen = [kind.strip() for kind in kinds.split(",")]
    if unknown := sorted(set(chosen) - set(KINDS)):
        raise click.BadParameter(f"found {', '.join(unknown)}; wanted some of {', '.join(KINDS)}", param_hint="--kinds")
    folder = Path(tempfile.mkdtemp(prefix="understudy-benchmark-"))
    try:
        key_file = folder / "keys"
        key_file.write_bytes(base64.b64encode(os.urandom(KEY_BYTES)) + b"\n")
        key_file.chmod(0o600)
        figures = {
            kind: _measured(_Subject(kind, keys, value_bytes, folder / kind), str(key_file), runs, problems)
            for kind in chosen
        }
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    finish({"workload": WORKLOAD, "keys": keys, "value_bytes": value_bytes}, figures, problems, json_path)


class _Subject:
    """One kind of state, with what it must hold: bytes that do not compress, and int64 in columns of compiled state."""

    def __init__(self, kind: str, keys: int, value_bytes: int, folder: Path) -> None:
        self.kind, self.folder = kind, folder
        self.is_columns = kind == "compiled"
        self._blob = os.urandom(max(BLOB_BYTES, 2 * value_bytes))
        self._keys, self._value_bytes = keys, value_bytes

    def make(self, name: str) -> Any:
        (self.folder / name).mkdir(parents=True)
        return KINDS[self.kind](str(self.folder / name))

    def batches(self) -> Iterator[tuple[list[int], list[Any]]]:
        """Keys, and their values."""
        for start in range(0, self._keys, BATCH):
            keys = list(range(start, min(start + BATCH, self._keys)))
            yield keys, [self._value(key) for key in keys]

    def _value(self, key: int) -> Any:
        if self.is_columns:
            return key * 7
        start = key * self._value_bytes % (len(self._blob) - self._value_bytes)
        return self._blob[start : start + self._value_bytes]

    def state_of(self, backend: Any) -> Any:
        return backend.state(NUMBER if self.is_columns else VALUE)

    def fill(self, backend: Any) -> None:
        state = self.state_of(backend)
        for keys, values in self.batches():
            backend.read_ahead(keys)
            for backend.current_key, value in zip(keys, values, strict=True):
                state.update(value)

    def is_in(self, backend: Any) -> bool:
        """Whether each value is there."""
        state = self.state_of(backend)
        for keys, values in self.batches():
            backend.read_ahead(keys)
            for backend.current_key, value in zip(keys, values, strict=True):
                if state.value() != value:
                    return False
        return True


def _measured(subject: _Subject, key_file: str, runs: int, problems: list[str]) -> dict[str, Any]:
    backend = subject.make("state")
    subject.fill(backend)
    took = {side: Took() for side in SIDES}
    for run in range(-1, runs):
        for side in SIDES if run % 2 else reversed(SIDES):
            with _keys_of(key_file if side == "sealed" else None):
                root = subject.folder / f"{side}-{run}"
                warm_up = run < 0  # packages are imported, and RocksDB has its first files
                _once(
                    subject,
                    backend,
                    run,
                    CheckpointStorage(str(root)),
                    Took() if warm_up else took[side],
                    side,
                    problems,
                )
            shutil.rmtree(root)
    backend.close()
    return _figures(took)


def _once(
    subject: _Subject, backend: Any, run: int, storage: CheckpointStorage, took: Took, side: str, problems: list[str]
) -> None:
    checkpoint_id = CheckpointId((run + 1) * len(SIDES) + SIDES.index(side) + 1)
    target = SnapshotTarget(
        storage, JobId("job"), checkpoint_id, VertexId("v"), SubtaskIndex(0), ExecutionAttemptId("a"), 0
    )
    with took.timed("checkpoint"):
        handle = getattr(backend, "whole_snapshot", backend.snapshot)(checkpoint_id)(target)
        if handle.handle.path is None:  # the common format is a part of the subtask's file
            stored = storage.write(target.path, handle.handle.data)
            handle = replace(handle, handle=stored)
    files = [Path(storage.root) / path for path in storage.list_files()]
    took.stored_bytes = sum(file.stat().st_size for file in files)
    wrong = [file.name for file in files if is_sealed(file.read_bytes()[:64]) is (side == "plain")]
    if wrong or not files:
        problems.append(f"{subject.kind}, {side}: {len(wrong)} of {len(files)} files are not so: {wrong[:3]}")

    def read(it: StateHandle) -> bytes:
        return storage.read(it) if it.data is None else it.data

    again = subject.make(f"again-{side}-{run}")
    with took.timed("restore"):
        again.restore([handle], read)
        subject.state_of(again)
    if not subject.is_in(again):
        problems.append(f"{subject.kind}, {side}: the checkpoint restores other values")
    again.close()


@contextmanager
def _keys_of(file: str | None) -> Iterator[None]:
    before = os.environ.pop(VARIABLE, None)
    if file is not None:
        os.environ[VARIABLE] = file
    try:
        yield
    finally:
        os.environ.pop(VARIABLE, None)
        if before is not None:
            os.environ[VARIABLE] = before


def _figures(took: dict[str, Took]) -> dict[str, Any]:
    figures: dict[str, Any] = {f"{side}_mb": round(took[side].stored_bytes / 1e6, 1) for side in SIDES}
    for what in ("checkpoint", "restore"):
        for clock, of in _CLOCKS:
            plain, sealed = (median(of(took[side])[what]) for side in SIDES)
            figures |= {f"plain_{what}_{clock}": round(plain, 3), f"sealed_{what}_{clock}": round(sealed, 3)}
            figures[f"{what}_{clock}_ratio"] = round(sealed / plain, 2)
    return figures


_CLOCKS: tuple[tuple[str, Callable[[Took], dict[str, list[float]]]], ...] = (
    ("s", lambda took: took.wall),
    ("cpu_s", lambda took: took.processor),
)
