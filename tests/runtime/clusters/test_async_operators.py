"""Coroutines in operators on real processes: exact through kills, and a checkpoint waits for none of them.

What a service is asked, and what it has answered, stands in a file that coroutines append to: it outlasts their
processes. What it answers waits for a gate that the test opens.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from understudy import FailedRecord, FileSink, JobStatus, KeyedOperator, LocalCluster, ValueState
from understudy.actors.operators.collector import Collector

from .jobs import (
    KEYS,
    WAIT_S,
    Gate,
    Witness,
    counted,
    counting,
    counts_of,
    environment,
    eventually,
    read_output,
)

RATE = 1500
POLLED_S = 0.02


class Effects:
    """What a service has seen: a line for each time that it was asked."""

    def __init__(self, folder: Path) -> None:
        self._path = str(folder / "effects")

    def add(self, index: int, key: str) -> None:
        """In the coroutine."""
        handle = os.open(self._path, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        os.write(handle, f"{index} {key}\n".encode())
        os.close(handle)

    def wait(self, count: int) -> None:
        """In the test: until it has been asked so often."""
        eventually(lambda: len(self._lines()) >= count, f"{count} effects")

    @property
    def keys(self) -> dict[int, list[str]]:
        """The idempotency keys by index, in the order in which they came."""
        found = defaultdict(list)
        for line in self._lines():
            index, key = line.split()
            found[int(index)].append(key)
        return dict(found)

    def _lines(self) -> list[str]:
        return Path(self._path).read_text().splitlines() if os.path.exists(self._path) else []


async def opened(gate: Gate) -> None:
    while not gate.is_open:  # noqa: ASYNC110 - another process opens it
        await asyncio.sleep(POLLED_S)


class Asking(KeyedOperator):
    """Numbers the records of each key, from 1, when the service has answered; that of every `held`th one waits for
    the gate.
    """

    seen = ValueState(int, default=0)

    def __init__(self, effects: Effects, gate: Gate, held: int = 1) -> None:
        self._effects, self._gate, self._held = effects, gate, held

    async def process(self, record: int, out: Collector) -> None:
        self._effects.add(record, self.idempotency_key)
        if record % self._held == 0:
            await opened(self._gate)
        await asyncio.sleep(0.005)
        number = self.seen.value() + 1
        self.seen.update(number)
        out.collect({"key": self.key, "number": number, "index": record})


def opened_gate(folder: Path) -> Gate:
    folder.mkdir()
    gate = Gate(folder)
    gate.open()
    return gate


@pytest.mark.chaos
def test_a_counter_per_key_is_exact_through_two_kills(shared_cluster: LocalCluster, tmp_path: Path) -> None:
    count, effects, gate = 3000, Effects(tmp_path), Gate(tmp_path)
    env, out = environment(), tmp_path / "out"
    asking = Asking(effects, opened_gate(tmp_path / "service"))
    counting(env, count, RATE, asking, gate=gate).sink_to(FileSink(str(out), "jsonl"))
    job = shared_cluster.submit(env)
    witness = Witness(job)
    for index in range(2):
        witness.checkpoints(2)
        witness.kill(witness.pids(2)[index])
        witness.status(JobStatus.RUNNING, index + 2)
    gate.open()
    assert job.wait(timeout=WAIT_S).restarts == 2
    assert read_output(out, "jsonl") == counted(count)
    assert sorted(effects.keys) == list(range(count))


@pytest.mark.parametrize("max_in_flight", [2, 1000])
def test_a_barrier_waits_for_no_answer(shared_cluster: LocalCluster, tmp_path: Path, max_in_flight: int) -> None:
    """Far more records wait than the operator holds."""
    count, effects, gate = 20_000 if max_in_flight > 2 else 2_000, Effects(tmp_path), Gate(tmp_path)
    env = environment()
    held = counting(env, count, None, Asking(effects, gate, held=100)).async_settings(max_in_flight=max_in_flight)
    held.collect(name="all")
    job = shared_cluster.submit(env)
    witness = Witness(job)
    effects.wait(1)
    witness.checkpoints(3)
    gate.open()
    job.wait(timeout=WAIT_S)
    assert counts_of(job.results("all")) == counted(count)


@pytest.mark.chaos
def test_after_a_kill_what_was_running_is_asked_again_with_its_key_and_what_was_done_is_not(
    shared_cluster: LocalCluster, tmp_path: Path
) -> None:
    effects, gate, out = Effects(tmp_path), Gate(tmp_path), tmp_path / "out"
    env = environment()
    counting(env, KEYS, None, Asking(effects, gate, held=2), gate=gate).sink_to(FileSink(str(out), "jsonl"))
    job = shared_cluster.submit(env)
    witness = Witness(job)
    effects.wait(KEYS)
    eventually(lambda: read_output(out, "jsonl").total() == KEYS // 2, "the answers of those that were not held")
    witness.checkpoints(1)
    witness.kill(witness.pids(2)[1])
    effects.wait(KEYS + KEYS // 2)
    gate.open()
    assert job.wait(timeout=WAIT_S).restarts == 1
    assert read_output(out, "jsonl") == counted(KEYS)
    asked = effects.keys
    assert {index: len(keys) for index, keys in asked.items()} == {i: 1 if i % 2 else 2 for i in range(KEYS)}
    assert all(len(set(keys)) == 1 for keys in asked.values())
    assert len({keys[0] for keys in asked.values()}) == KEYS


def test_a_job_goes_on_from_a_savepoint_with_what_was_in_flight(shared_cluster: LocalCluster, tmp_path: Path) -> None:
    effects, gate = Effects(tmp_path), Gate(tmp_path)
    env = environment(checkpoint_dir=str(tmp_path / "checkpoints"))
    counting(env, None, RATE, Asking(effects, gate, held=2)).collect(name="all")
    began = time.monotonic()
    job = shared_cluster.submit(env)
    witness = Witness(job)
    effects.wait(KEYS)
    witness.checkpoints(1)
    path = job.stop_with_savepoint().result(timeout=WAIT_S)
    assert job.wait(timeout=WAIT_S).status is JobStatus.FINISHED
    before, asked = counts_of(job.results("all")), effects.keys
    assert asked.keys() - {index for _, _, index in before}, "nothing was in flight"

    gate.open()
    # Beyond all that the source can have read by now: what waited behind the held records is among it.
    count = int(RATE * (time.monotonic() - began)) + 10 * KEYS
    env = environment(checkpoint_dir=str(tmp_path / "checkpoints"))
    counting(env, count, RATE, Asking(effects, gate, held=2)).collect(name="all")
    after = shared_cluster.submit(env, from_savepoint=path)
    after.wait(timeout=WAIT_S)
    assert before + counts_of(after.results("all")) == counted(count)
    for index, keys in effects.keys.items():
        if index not in asked or (index % KEYS, index // KEYS + 1, index) in before:
            assert len(keys) == 1
        elif index % 2 == 0:
            assert len(keys) == 2, "the gate held it: it was running"
        else:
            assert len(keys) in (1, 2), "its answer may have come, and waited to be emitted behind the barrier"
        assert len(set(keys)) == 1


def test_a_drained_job_waits_for_all_answers(shared_cluster: LocalCluster, tmp_path: Path) -> None:
    effects, gate = Effects(tmp_path), Gate(tmp_path)
    env = environment(checkpoint_dir=str(tmp_path / "checkpoints"))
    counting(env, None, RATE, Asking(effects, gate)).collect(name="all")
    job = shared_cluster.submit(env)
    witness = Witness(job)
    effects.wait(KEYS)
    witness.checkpoints(1)
    drained = job.stop_with_savepoint(drain=True)
    assert not drained.done()
    gate.open()
    assert drained.result(timeout=WAIT_S)
    assert job.wait(timeout=WAIT_S).status is JobStatus.FINISHED
    found = counts_of(job.results("all"))
    assert {index for _, _, index in found} == set(effects.keys)
    for key, last in Counter(key for key, _, _ in found).items():
        assert {(each, number) for each, number, _ in found if each == key} == {(key, n + 1) for n in range(last)}


@pytest.mark.parametrize("ordered", [True, False])
def test_a_map_keeps_the_order_of_its_input_unless_it_need_not(shared_cluster: LocalCluster, ordered: bool) -> None:
    """Of each two records the second is answered first."""
    count = 200
    answered: set[int] = set()

    async def ask(index: int) -> int:
        while index % 2 == 0 and index + 1 not in answered:  # noqa: ASYNC110 - an Event would not be pickled
            await asyncio.sleep(0)
        answered.add(index)
        return index

    env = environment(parallelism=1)
    env.generate(lambda index: index, count).map(ask).async_settings(ordered=ordered).collect(name="all")
    job = shared_cluster.submit(env)
    job.wait(timeout=WAIT_S)
    found = job.results("all")
    assert sorted(found) == list(range(count))
    if ordered:
        assert found == list(range(count))
    else:
        assert all(found.index(index + 1) < found.index(index) for index in range(0, count, 2))


def test_records_whose_tries_have_failed_are_on_the_stream_of_errors(shared_cluster: LocalCluster) -> None:
    async def ask(index: int) -> int:
        await asyncio.sleep(0)
        if index % 3 == 0:
            raise TimeoutError(f"no answer to {index}")
        return index

    env = environment()
    asked = env.generate(lambda index: index, 60).map(ask).async_settings(on_error="errors")
    asked.collect(name="answers")
    asked.errors.collect(name="errors")
    job = shared_cluster.submit(env)
    assert job.wait(timeout=WAIT_S).restarts == 0
    assert sorted(job.results("answers")) == [index for index in range(60) if index % 3]
    errors = sorted(job.results("errors"), key=lambda each: each.record)
    assert errors == [FailedRecord(index, f"TimeoutError: no answer to {index}", 1) for index in range(0, 60, 3)]


def test_two_task_managers_share_one_rate(shared_cluster: LocalCluster, tmp_path: Path) -> None:
    """One call in a quarter of an hour: the first permit is all that there is while the test lasts."""
    effects = Effects(tmp_path)
    env = environment()
    asking = counting(env, None, RATE, Asking(effects, opened_gate(tmp_path / "service")))
    asking.async_settings(rate_per_second=0.001).collect(name="all")
    job = shared_cluster.submit(env)
    witness = Witness(job)
    effects.wait(1)
    witness.checkpoints(5)
    assert len(effects.keys) == 1
    job.cancel().result(timeout=WAIT_S)


def test_no_record_has_a_thread_of_its_own(shared_cluster: LocalCluster, tmp_path: Path) -> None:
    count, effects, gate = 600, Effects(tmp_path), Gate(tmp_path)

    async def ask(index: int) -> tuple[int, int]:
        effects.add(index, "-")
        await opened(gate)
        return index, threading.active_count()

    env = environment()
    env.generate(lambda index: index, count).map(ask).async_settings(max_in_flight=count).collect(name="all")
    job = shared_cluster.submit(env)
    effects.wait(count)
    gate.open()
    job.wait(timeout=WAIT_S)
    found: dict[int, Any] = dict(job.results("all"))
    assert sorted(found) == list(range(count))
    assert max(found.values()) < 50
