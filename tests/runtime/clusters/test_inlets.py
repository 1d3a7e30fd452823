"""Records that are sent into a running job: what was acknowledged comes out once, in order, whatever is killed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from understudy import (
    InletClosed,
    JobFailed,
    JobHandle,
    JobStatus,
    LocalCluster,
    NumberGap,
    RecordMismatch,
    StreamEnvironment,
    UnknownInlet,
)
from understudy.actors.operators.collector import Collector
from understudy.actors.operators.operator import Operator
from understudy.state import LogWriter

from .jobs import WAIT_S, Witness, environment, eventually, read_records, visible_files

StartCluster = Callable[..., LocalCluster]
SCHEMA = pa.schema([("sender", pa.string()), ("number", pa.int64())])


class Shut(Operator):
    """Lets nothing through before a file is there."""

    def __init__(self, gate: Path) -> None:
        self.gate = gate

    def process_batch(self, batch: list[Any], out: Collector) -> None:
        waiting = threading.Event()
        while not self.gate.exists():
            waiting.wait(0.01)
        for record in batch:
            out.collect(record)


def orders(schema: pa.Schema | None = None, parallelism: int = 1, **settings: Any) -> StreamEnvironment:
    env = environment(**settings)
    sent = env.from_inlet("orders", schema=schema, parallelism=parallelism)
    sent.map(lambda order: (order["sender"], order["number"]), name="plain", parallelism=1).collect(
        name="out", parallelism=1
    )
    return env


def order(sender: str, number: int) -> dict[str, Any]:
    return {"sender": sender, "number": number}


def stopped(job: JobHandle) -> list[Any]:
    """All that has come out."""
    job.stop().result(timeout=WAIT_S)
    job.wait(timeout=WAIT_S)
    return job.results("out")


def by_sender(records: list[Any]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for sender, number in records:
        found.setdefault(sender, []).append(number)
    return found


def test_what_was_acknowledged_comes_out_once_though_task_managers_are_killed(start_cluster: StartCluster) -> None:
    """From one event loop, with many senders, each of which waits for each answer."""
    counts = {f"sender-{index}": 60 for index in range(8)}

    async def send_all(job: JobHandle, sender: str) -> None:
        inlet = job.inlet("orders", sender=sender)
        for number in range(1, counts[sender] + 1):
            assert await inlet.send(order(sender, number)) == number

    async def scenario(job: JobHandle, witness: Witness) -> None:
        senders = [asyncio.ensure_future(send_all(job, sender)) for sender in counts]
        for victim in (0, 1, 0):
            await job.inlet("orders").send(order("between", victim))
            await asyncio.to_thread(witness.checkpoints, 1)
            pids = await asyncio.to_thread(witness.pids, 2)
            witness.kill(pids[victim])
        await asyncio.gather(*senders)

    job = start_cluster(2).submit(orders(parallelism=2))
    witness = Witness(job)
    witness.checkpoints(1)
    asyncio.run(scenario(job, witness))
    found = by_sender(stopped(job))
    assert sorted(found.pop("between")) == [0, 0, 1]
    assert found == {sender: list(range(1, count + 1)) for sender, count in counts.items()}
    assert job.details().restarts >= 2


def test_threads_send_records_lists_and_arrow_batches(shared_cluster: LocalCluster) -> None:
    job = shared_cluster.submit(orders(SCHEMA))
    inlet = job.inlet("orders", sender="service")
    assert inlet.last_number().result(timeout=WAIT_S) == 0
    assert inlet.send(order("a", 1)).result(timeout=WAIT_S) == 1
    assert inlet.send_many([order("a", number) for number in range(2, 9_000)]).result(timeout=WAIT_S) == 8_999
    batch = pa.RecordBatch.from_pylist([order("a", 9_000), order("a", 9_001)], schema=SCHEMA)
    assert inlet.send_batch(batch).result(timeout=WAIT_S) == 9_001
    assert inlet.send_batch(pa.Table.from_batches([batch]), number=9_000).result(timeout=WAIT_S) == 9_001
    assert inlet.send_many([], timeout=WAIT_S).result() == 9_001
    assert by_sender(stopped(job)) == {"a": list(range(1, 9_002))}


def test_a_number_that_is_there_counts_once_and_one_that_is_too_high_is_refused(shared_cluster: LocalCluster) -> None:
    job = shared_cluster.submit(orders())
    before = job.inlet("orders", sender="service")
    before.send_many([order("a", number) for number in (1, 2, 3)]).result(timeout=WAIT_S)
    again = job.inlet("orders", sender="service")
    assert again.send(order("a", 2), number=2).result(timeout=WAIT_S) == 2
    assert again.send_many([order("a", number) for number in (3, 4)], number=3).result(timeout=WAIT_S) == 4
    with pytest.raises(NumberGap, match=r"sent record 7, wanted 5"):
        again.send(order("a", 7), number=7).result(timeout=WAIT_S)
    assert again.send(order("a", 5)).result(timeout=WAIT_S) == 5
    assert by_sender(stopped(job)) == {"a": [1, 2, 3, 4, 5]}


def test_records_are_checked_before_they_are_sent(shared_cluster: LocalCluster) -> None:
    job = shared_cluster.submit(orders(SCHEMA))
    inlet = job.inlet("orders")
    with pytest.raises(RecordMismatch, match="number"):
        inlet.send({"sender": "a", "number": "one"})
    with pytest.raises(RecordMismatch, match="missing number"):
        inlet.send_batch(pa.record_batch({"sender": ["a"]}))
    with pytest.raises(RecordMismatch, match="extra price"):
        inlet.send_many([order("a", 1) | {"price": 1.0}])
    with pytest.raises(UnknownInlet, match=r"no inlet 'order'; it has orders; did you mean 'orders'\?$"):
        job.inlet("order")
    assert inlet.send(order("a", 1)).result(timeout=WAIT_S) == 1
    assert stopped(job) == [("a", 1)]


def test_senders_wait_when_the_job_does_not_keep_up(shared_cluster: LocalCluster, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    env = environment()
    sent = env.from_inlet("orders", max_waiting_records=100)
    sent.process(Shut(gate), name="shut").collect(name="out")
    job = shared_cluster.submit(env)
    inlet = job.inlet("orders")
    records = [f"{number:0100d}" for number in range(20_000)]  # more than one request may hold
    parts = [inlet.send_many(records[start : start + 50]) for start in range(0, len(records), 50)]
    parts[0].result(timeout=WAIT_S)
    with pytest.raises(TimeoutError, match=r"is not acknowledged after 0\.2 seconds"):
        parts[-1].result(timeout=0.2)
    eventually(lambda: inlet.trouble, "an answer that there is no room")
    with pytest.raises(TimeoutError, match=r"after 0\.01 seconds \(the job takes its records more slowly than they"):
        parts[-1].result(timeout=0.01)
    assert not parts[-1].done()
    gate.touch()
    assert parts[-1].result(timeout=WAIT_S) == len(records)
    assert stopped(job) == records


def test_a_log_that_cannot_be_written_is_named_by_who_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise OSError("the disk is full")

    with LocalCluster(debug=True) as cluster:
        job = cluster.submit(orders())
        inlet = job.inlet("orders")
        assert inlet.send(order("a", 1)).result(timeout=WAIT_S) == 1
        with monkeypatch.context() as patch:
            patch.setattr(LogWriter, "append", fail)
            sent = inlet.send(order("a", 2))
            with pytest.raises(TimeoutError, match=r"\(its log cannot be written: OSError: the disk is full\); it is"):
                sent.result(timeout=2)
        assert sent.result(timeout=WAIT_S) == 2
        assert inlet.trouble == ""
        assert stopped(job) == [("a", 1), ("a", 2)]


def test_a_stop_with_a_savepoint_holds_what_was_acknowledged_and_another_job_goes_on(
    shared_cluster: LocalCluster, tmp_path: Path
) -> None:
    env = orders(parallelism=2, checkpoint_dir=str(tmp_path / "checkpoints"))
    job = shared_cluster.submit(env)
    inlet = job.inlet("orders", sender="service")
    inlet.send(order("a", 1)).result(timeout=WAIT_S)
    job.ready().result(timeout=WAIT_S)
    open_ones = [inlet.send(order("a", number)) for number in range(2, 200)]
    path = job.stop_with_savepoint().result(timeout=WAIT_S)
    job.wait(timeout=WAIT_S)
    with pytest.raises(InletClosed, match=r"takes no more records: .*send what was not acknowledged"):
        inlet.send(order("a", 200)).result(timeout=WAIT_S)
    acknowledged = 1
    for sent in open_ones:
        with contextlib.suppress(InletClosed):
            acknowledged = sent.result(timeout=WAIT_S)
    successor = shared_cluster.submit(
        orders(parallelism=1, checkpoint_dir=str(tmp_path / "checkpoints")), from_savepoint=path
    )
    goes_on = successor.inlet("orders", sender="service")
    last = goes_on.last_number().result(timeout=WAIT_S)
    assert last >= acknowledged
    goes_on.send_many([order("a", number) for number in range(last + 1, 301)]).result(timeout=WAIT_S)
    found = job.results("out") + stopped(successor)
    assert by_sender(found) == {"a": list(range(1, 301))}


def test_a_savepoint_soon_after_a_restart_has_what_is_in_the_log_still(
    start_cluster: StartCluster, tmp_path: Path
) -> None:
    """The barrier comes while the restarted inlet reads its log, which goes with the job."""
    gate = tmp_path / "gate"
    gate.touch()

    def build() -> StreamEnvironment:
        env = environment(checkpoint_dir=str(tmp_path / "checkpoints"), checkpoint_interval_ms=600_000)
        sent = env.from_inlet("orders", max_waiting_records=10)
        sent.process(Shut(gate), name="shut").collect(name="out")
        return env

    cluster = start_cluster(1)
    job = cluster.submit(build())
    witness, inlet = Witness(job), job.inlet("orders", sender="service")
    for attempt, last in enumerate((20, 40)):  # a log has a segment of each attempt, and is read segment by segment
        witness.status(JobStatus.RUNNING, attempt + 1)
        numbers = list(range(last - 19, last + 1))
        inlet.send_many(numbers[:10]).result(timeout=WAIT_S)
        inlet.send_many(numbers[10:]).result(timeout=WAIT_S)
        if attempt == 1:
            gate.unlink()  # from now on no record passes, and so no second segment is read
        pids = witness.pids(1)
        witness.kill(pids[0])
    witness.status(JobStatus.RUNNING, 3)
    stop = job.stop_with_savepoint()
    eventually(lambda: job.checkpoint_history().triggered, "the savepoint's trigger")
    gate.touch()
    path = stop.result(timeout=WAIT_S)
    job.wait(timeout=WAIT_S)
    successor = cluster.submit(build(), from_savepoint=path)
    assert successor.inlet("orders", sender="service").last_number().result(timeout=WAIT_S) == 40
    assert job.results("out") + stopped(successor) == list(range(1, 41))


def test_a_retained_checkpoint_goes_on_in_the_log(shared_cluster: LocalCluster, tmp_path: Path) -> None:
    """What was acknowledged after it is not lost with the job, as when its service is started again."""
    settings = {
        "checkpoint_dir": str(tmp_path),
        "retain_checkpoints": "on_cancellation",
        "checkpoint_interval_ms": 3_000,
    }
    job = shared_cluster.submit(orders(**settings))
    witness, inlet = Witness(job), job.inlet("orders", sender="service")
    inlet.send(order("a", 1)).result(timeout=WAIT_S)
    witness.checkpoints(1)
    inlet.send_many([order("a", number) for number in range(2, 50)]).result(timeout=WAIT_S)
    job.cancel().result(timeout=WAIT_S)
    eventually(lambda: job.status is JobStatus.CANCELED)
    path = job.details().retained_checkpoint_path
    successor = shared_cluster.submit(orders(**settings), from_savepoint=path)
    assert successor.inlet("orders", sender="service").last_number().result(timeout=WAIT_S) == 49
    committed = job.results("out")
    assert by_sender(committed + stopped(successor)) == {"a": list(range(1, 50))}


def test_a_record_that_fails_the_job_is_named_by_its_senders_number(
    shared_cluster: LocalCluster, tmp_path: Path
) -> None:
    job = shared_cluster.submit(orders(checkpoint_dir=str(tmp_path), max_same_failures=1))
    records = [order("a", number) for number in (1, 2, 3)]
    job.inlet("orders", sender="service").send_many([*records, {"number": 4}]).result(timeout=WAIT_S)
    with pytest.raises(JobFailed, match=r"operator 'plain' \(subtask 0, number 4 of sender 'service'\): MissingColumn"):
        job.wait(timeout=WAIT_S)


def test_a_cluster_that_closes_before_the_first_checkpoint_keeps_the_log(
    start_cluster: StartCluster, tmp_path: Path
) -> None:
    """A service that ends in good order loses no more than one that is killed."""
    env = orders(checkpoint_dir=str(tmp_path), checkpoint_interval_ms=60_000)
    for first in (1, 11, 21):
        cluster = start_cluster(task_managers=1)
        job = cluster.submit(env, name="service", resume="latest")
        inlet = job.inlet("orders", sender="service")
        assert inlet.last_number().result(timeout=WAIT_S) == first - 1
        inlet.send_many([order("a", number) for number in range(first, first + 10)]).result(timeout=WAIT_S)
        if first == 21:
            assert by_sender(stopped(job)) == {"a": list(range(1, 31))}
        cluster.close()


def test_the_log_is_removed_as_checkpoints_complete_and_with_its_job(
    shared_cluster: LocalCluster, tmp_path: Path
) -> None:
    job = shared_cluster.submit(orders(checkpoint_dir=str(tmp_path)))
    witness, inlet = Witness(job), job.inlet("orders")
    segments: set[str] = set()
    for number in range(1, 12):
        inlet.send(order("a", number)).result(timeout=WAIT_S)
        witness.checkpoints(1)
        segments |= {name for _, _, names in os.walk(tmp_path / job.job_id / "inlets") for name in names}
    left = {name for _, _, names in os.walk(tmp_path / job.job_id / "inlets") for name in names}
    assert segments - left, "none was removed while the job ran"
    assert by_sender(stopped(job)) == {"a": list(range(1, 12))}
    eventually(lambda: not (tmp_path / job.job_id).exists(), "the end of the job's folder")


@pytest.mark.processes
def test_a_service_that_was_killed_goes_on_after_the_last_that_was_acknowledged(tmp_path: Path) -> None:
    """With its cluster: the next one starts from the newest checkpoint of the job, and so from its log."""
    acknowledged = tmp_path / "acknowledged"

    def start(*checkpoint: str) -> subprocess.Popen[str]:
        command = [sys.executable, str(Path(__file__).parent / "inlet_service.py"), str(tmp_path), *checkpoint]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def lines() -> list[int]:
        return [int(line) for line in acknowledged.read_text().split()] if acknowledged.exists() else []

    def newest() -> list[Path]:
        return sorted(tmp_path.glob("checkpoints/job-*/chk-*/_metadata"), key=lambda path: path.stat().st_mtime)

    with start() as service:
        eventually(lambda: newest() and len(lines()) > 100)
        service.kill()
    before = lines()
    with start(str(newest()[-1])) as successor:
        assert successor.stdout is not None
        last = int(successor.stdout.readline().split()[-1])
        assert successor.wait(WAIT_S) == 0
    assert before[-1] <= last <= before[-1] + 1, "one more may have come in than was known of"
    files = visible_files(tmp_path / "out")
    found = [record["number"] for path in files for record in read_records(path, "jsonl")]
    assert sorted(found) == list(range(1, 501))
