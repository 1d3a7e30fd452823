"""The scrub on real processes: a flipped byte, or a file that is gone, is found, and what comes then is whole."""

from __future__ import annotations

import logging
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from understudy import KeyedOperator, LocalCluster, ValueState
from understudy.actors.operators.collector import Collector

from .jobs import WAIT_S, Gate, Witness, environment, eventually, generated

StartCluster = Callable[..., LocalCluster]
COUNT, RATE, KEYS = 9_000, 1_000, 12


class Counting(KeyedOperator):
    """Numbers the records of each key. Its state is large enough for files of its own."""

    seen = ValueState(int, default=0)
    filling = ValueState(str, default="")

    def process(self, record: int, out: Collector) -> None:
        self.seen.update(self.seen.value() + 1)
        if not self.filling.value():
            self.filling.update(f"{record:08}" * 2_000)
        out.collect((self.key, self.seen.value()))


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.chaos
@pytest.mark.parametrize(
    ("spoil", "backend", "incremental"),
    [(flip, "filesystem", True), (flip, "rocksdb", True), (Path.unlink, "filesystem", False), (flip, "memory", False)],
)
def test_a_spoilt_checkpoint_is_named_and_replaced_before_a_failure_needs_it(
    start_cluster: StartCluster,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    spoil: Callable[[Path], Any],
    backend: str,
    incremental: bool,
) -> None:
    caplog.set_level(logging.WARNING)
    env = environment(
        checkpoint_dir=str(tmp_path / "checkpoints"),
        state_backend=backend,
        incremental_checkpoints=incremental,
        checkpoint_interval_ms=600_000,
        scrub_interval_ms=50,
    )
    numbers = generated(env, COUNT, RATE, gate := Gate(tmp_path), "numbers")
    numbers.key_by(lambda index: index % KEYS).process(Counting, name="count").collect(name="all")
    job = start_cluster().submit(env)
    witness = Witness(job)
    eventually(lambda: sum(each.records_in for each in job.details().tasks) > 2_000, "some state")
    folder = Path(job.trigger_checkpoint().result(timeout=WAIT_S).path)
    files = [each for each in folder.parent.rglob("*") if each.is_file() and "collected" not in each.parts]
    state = [each for each in files if each.name != "_metadata" and each.stat().st_size]
    assert bool(state) is (backend != "memory")
    spoilt = max(state or files, key=lambda each: each.stat().st_size)
    assert not said(caplog, "damaged")

    spoil(spoilt)

    eventually(lambda: said(caplog, "is full, and uses no damaged file"), "the full checkpoint")
    found = said(caplog, "is damaged: ")
    assert len(found) == 1
    assert str(spoilt) in found[0]
    assert job.metrics().values["numberOfDamagedCheckpoints"] == 1
    witness.kill(witness.pids(2)[1])
    gate.open()
    assert job.wait(timeout=WAIT_S).restarts == 1
    assert sorted(map(tuple, job.results("all"))) == sorted(
        (key, number + 1) for key in range(KEYS) for number in range(COUNT // KEYS)
    )
    assert len(said(caplog, "is damaged: ")) == 1


@pytest.mark.chaos
@pytest.mark.parametrize("backend", ["filesystem", "rocksdb"])
def test_files_of_earlier_checkpoints_that_somebody_removes_are_missed_by_the_next_one_which_is_whole(
    start_cluster: StartCluster, tmp_path: Path, caplog: pytest.LogCaptureFixture, backend: str
) -> None:
    """Without any scrub. Else the failure that needs them would be the first to notice, and the end of the job."""
    gate = Gate(tmp_path)
    env = environment(checkpoint_dir=str(tmp_path / "checkpoints"), state_backend=backend, incremental_checkpoints=True)
    numbers = generated(env, COUNT, RATE * 4, gate, "numbers")
    counted = numbers.key_by(lambda index: index % KEYS if index < 300 else 0).process(Counting, name="count")
    counted.collect(name="all")
    job = start_cluster().submit(env)
    witness = Witness(job)
    eventually(lambda: sum(each.records_in for each in job.details().tasks) > 2_000, "some state")
    witness.checkpoints(5)
    for shared in (tmp_path / "checkpoints").rglob("shared"):
        shutil.rmtree(shared, ignore_errors=True)  # the job removes files there, too
    eventually(lambda: said(caplog, "is full, and uses no damaged file"), "the full checkpoint")
    (found,) = said(caplog, "somebody has removed them from ")
    assert "a full checkpoint is taken now, which uses none of them" in found
    witness.kill(witness.pids(2)[1])
    witness.checkpoints(2)
    gate.open()
    assert job.wait(timeout=WAIT_S).restarts == 1
    expected = Counter(index % KEYS if index < 300 else 0 for index in range(COUNT))
    assert sorted(map(tuple, job.results("all"))) == sorted(
        (key, number + 1) for key, count in expected.items() for number in range(count)
    )


def said(caplog: pytest.LogCaptureFixture, text: str) -> list[str]:
    return [each.getMessage() for each in caplog.records if text in each.getMessage()]
