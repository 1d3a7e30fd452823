"""Encryption at rest in jobs on real processes: nothing that they store can be read without the key; with it all is."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from understudy import (
    JobFailed,
    KeyedOperator,
    ListState,
    LocalCluster,
    OperatorListState,
    Savepoint,
    StreamEnvironment,
    ValueState,
    WrongEncryptionKey,
    no_restart,
)
from understudy.actors.operators.collector import Collector
from understudy.state.keyring import VARIABLE, add_key, is_sealed

from .jobs import WAIT_S, Gate, Witness, environment, generated

StartCluster = Callable[..., LocalCluster]
COUNT, RATE = 6000, 1500
SECRET = "a-secret-that-stands-nowhere"


class Secretive(KeyedOperator):
    """Numbers the records of each key; all that it keeps has the secret in it."""

    seen = ValueState(str, default="")
    indices = ListState(str)
    everything = OperatorListState(str)

    def process(self, record: int, out: Collector) -> None:
        number = int((self.seen.value() or "0").split()[0]) + 1
        self.seen.update(f"{number} {SECRET}")
        self.indices.add(f"{record} {SECRET}")
        if number == 1:
            self.everything.add(SECRET)
        out.collect({"key": self.key, "number": number, "index": record, "secret": SECRET})


@pytest.fixture
def key_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "keys"
    add_key(str(path))
    monkeypatch.setenv(VARIABLE, str(path))
    return path


def stored(folder: Path) -> dict[str, bytes]:
    """Files and folders may go meanwhile: `os.walk` passes over a folder that is gone, `Path.rglob` fails."""
    found = {}
    for parent, _, names in os.walk(folder):
        for path in (os.path.join(parent, name) for name in names):
            try:
                found[path] = Path(path).read_bytes()
            except OSError:
                continue
    return found


def secretive(folder: Path, count: int, gate: Gate | None = None, **settings: Any) -> StreamEnvironment:
    env = environment(checkpoint_dir=str(folder), **settings)
    stream = generated(env, count, RATE, gate, "numbers")
    counted = stream.key_by(lambda index: f"{index % 24} {SECRET}").process(Secretive, name="count")
    counted.collect(name="all")
    return env


@pytest.mark.chaos
@pytest.mark.parametrize("backend", ["filesystem", "rocksdb", "memory"])
def test_nothing_that_is_stored_can_be_read_without_the_key(
    start_cluster: StartCluster, tmp_path: Path, key_file: Path, monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    folder, local = tmp_path / "checkpoints", tmp_path / "local"
    settings: dict[str, Any] = {
        "state_backend": backend,
        "incremental_checkpoints": backend != "memory",
        "retain_checkpoints": "on_cancellation",
        "state_dir": str(local),
        "local_recovery": True,
    }
    cluster, gate = start_cluster(), Gate(tmp_path)
    job = cluster.submit(secretive(folder, COUNT, gate, **settings))
    witness = Witness(job)
    witness.checkpoints(3)
    witness.kill(witness.pids(2)[1])
    witness.checkpoints(3)
    savepoint = job.stop_with_savepoint().result(timeout=WAIT_S)
    job.wait(timeout=WAIT_S)
    first = job.results("all")
    files = stored(folder)
    assert any(path.endswith("_metadata") for path in files)
    assert any("/collected/" in path and data for path, data in files.items())
    assert not [path for path, data in files.items() if SECRET.encode() in data]
    assert not [path for path, data in stored(local).items() if SECRET.encode() in data and "rocksdb" not in path]
    assert all(is_sealed(data) for path, data in files.items() if data and "/collected/" not in path)

    assert len(Savepoint.open(savepoint).operator("count").state("seen").to_dicts()) == 24
    gc.collect()  # rows of RocksDB are read from a temporary folder, which goes with what has read them
    add_key(str(key_file))  # from now on another one encrypts
    gate.open()
    job = cluster.submit(secretive(folder, COUNT, gate, **settings), from_savepoint=savepoint)
    job.wait(timeout=WAIT_S)
    found = first + job.results("all")
    assert sorted(each["index"] for each in found) == list(range(COUNT))
    for key in {each["key"] for each in found}:
        numbers = [each["number"] for each in found if each["key"] == key]
        assert numbers == list(range(1, COUNT // 24 + 1))

    monkeypatch.delenv(VARIABLE)
    with pytest.raises(WrongEncryptionKey, match=r"is encrypted with key .*, and this process has no keys"):
        Savepoint.open(savepoint)


def test_a_task_manager_without_the_key_refuses_instead_of_writing_as_it_is(
    start_cluster: StartCluster, tmp_path: Path, key_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE)
    cluster = start_cluster()
    cluster.submit(secretive(tmp_path / "before", 10)).wait(timeout=WAIT_S)  # its TaskManagers' template stands
    monkeypatch.setenv(VARIABLE, str(key_file))
    job = cluster.submit(secretive(tmp_path / "checkpoints", COUNT, restart_strategy=no_restart()))
    with pytest.raises(JobFailed, match=r"is encrypted with key .*, and this process has no keys"):
        job.wait(timeout=WAIT_S)
    assert not [path for path, data in stored(tmp_path / "checkpoints").items() if SECRET.encode() in data]
