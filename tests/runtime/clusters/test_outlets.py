"""Outlets of running jobs, on real processes: what readers take, in order and once, whatever happens to the job."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from understudy import (
    CursorExpired,
    CursorForked,
    InvalidCursor,
    InvalidSetting,
    JobCanceled,
    JobFailed,
    JobHandle,
    JobLost,
    LocalCluster,
    Outlet,
    RemoteCluster,
    ResultsUnavailable,
    StreamEnvironment,
    UnknownOperator,
    no_restart,
)
from understudy.messages import JobId, JobStatus, OutletAnswer, OutletPart
from understudy.state import pack_batch
from understudy.state.outlets.segments import framed

from .jobs import WAIT_S, Gate, Witness, environment, generated

COUNT = 3_000
RATE = 3_000
StartCluster = Callable[..., LocalCluster]


def numbers(
    env: StreamEnvironment, count: int | None = COUNT, gate: Gate | None = None, **retention: Any
) -> StreamEnvironment:
    """0, 1, 2, ... to an outlet, in this order."""
    generated(env, count, RATE, gate, "numbers", parallelism=1).to_outlet("out", **retention)
    return env


def all_of(outlet: Outlet) -> list[Any]:
    return [record for batch in outlet for record in batch.records]


def take(job: JobHandle, after: str | None, batches: int) -> tuple[list[Any], str | None]:
    """So many batches, or up to the last number: their records, and where to go on."""
    records: list[Any] = []
    for batch in islice(job.outlet("out", after=after), batches):
        records += batch.records
        after = batch.cursor
        if records[-1] == COUNT - 1:
            break
    return records, after


@pytest.mark.chaos
def test_a_reader_that_begins_again_and_again_takes_each_record_once_while_task_managers_are_killed(
    start_cluster: StartCluster, tmp_path: Path
) -> None:
    gate = Gate(tmp_path)
    job = start_cluster(2, heartbeat_interval_ms=200).submit(numbers(environment(), gate=gate))
    witness = Witness(job)
    found: list[Any] = []
    cursor: str | None = None
    cursors: list[str | None] = []
    killed = 0
    while len(found) < COUNT:
        records, cursor = take(job, cursor, 3)
        found += records
        cursors.append(cursor)
        if killed < 3 and len(found) > killed * COUNT // 4:
            pids = witness.pids(2)
            witness.kill(pids[killed % 2])
            killed += 1
    assert found == list(range(COUNT))
    assert cursors == sorted(cursors)  # type: ignore[type-var]
    gate.open()
    assert job.wait(timeout=WAIT_S).restarts >= 1
    assert take(job, cursor, 1) == ([], cursor)
    assert all_of(job.outlet("out")) == found


def test_fifty_readers_take_the_same_while_the_job_runs(shared_cluster: LocalCluster) -> None:
    job = shared_cluster.submit(numbers(environment()))

    async def reader(stops_after: int) -> list[Any]:
        found: list[Any] = []
        cursor: str | None = None
        while True:
            batches = 0
            async for batch in (outlet := job.outlet("out", after=cursor)):
                found += batch.records
                cursor, batches = batch.cursor, batches + 1
                if batches == stops_after:
                    break
            else:
                assert outlet.cursor == cursor
                return found

    async def readers() -> list[list[Any]]:
        return await asyncio.gather(*(reader(stops_after=1 + index % 7) for index in range(50)))

    assert asyncio.run(readers()) == [list(range(COUNT))] * 50


def test_columns_stay_columns_and_their_cursor_leads_behind_them(shared_cluster: LocalCluster) -> None:
    schema = pa.schema([("number", pa.int64())])

    def batch(start: int, rows: int) -> pa.RecordBatch:
        return pa.record_batch([list(range(start, start + rows))], schema=schema)

    env = environment()
    env.generate(batch, COUNT, schema=schema, records_per_second=RATE, parallelism=1).to_outlet("out")
    job = shared_cluster.submit(env)
    batches = list(job.outlet("out"))
    assert {type(each.records) for each in batches} == {pa.RecordBatch}
    assert pa.Table.from_batches([each.records for each in batches]).column(0).to_pylist() == list(range(COUNT))
    assert [row for each in batches for row in each] == [{"number": number} for number in range(COUNT)]
    second = next(iter(job.outlet("out", after=batches[0].cursor)))
    assert second.records[0][0].as_py() == len(batches[0])


def test_a_large_batch_comes_in_parts(shared_cluster: LocalCluster) -> None:
    env = environment()
    env.from_collection([bytes([number]) * 700_000 for number in range(12)], parallelism=1).to_outlet("out")
    batches = list(shared_cluster.submit(env).outlet("out"))
    assert [record[0] for batch in batches for record in batch] == list(range(12))
    assert max(map(len, batches)) <= 6


def test_a_cursor_goes_on_in_the_job_that_goes_on_from_the_savepoint(
    start_cluster: StartCluster, tmp_path: Path
) -> None:
    cluster, folder = start_cluster(), tmp_path / "checkpoints"

    def started(savepoint: str | None = None) -> JobHandle:
        env = numbers(environment(checkpoint_dir=str(folder)), count=None)
        return cluster.submit(env, from_savepoint=savepoint)

    first = started()
    found, cursor = take(first, None, 3)
    savepoint = first.stop_with_savepoint().result(timeout=WAIT_S)
    second = started(savepoint)
    more, cursor = take(second, cursor, 10)
    found += more
    assert found == list(range(len(found)))
    behind, _ = take(second, None, 1)
    assert behind[0] == 0, "what the first job had committed is there for new readers"
    second.stop().result(timeout=WAIT_S)
    found += all_of(second.outlet("out", after=cursor))
    assert found == list(range(len(found)))


def test_after_an_older_savepoint_a_cursor_behind_it_is_refused_and_says_where_to_go_on(
    start_cluster: StartCluster, tmp_path: Path
) -> None:
    cluster, folder = start_cluster(), tmp_path / "checkpoints"

    def started(savepoint: str | None = None) -> JobHandle:
        env = environment(checkpoint_dir=str(folder))
        numbers(env, count=None)
        return cluster.submit(env, from_savepoint=savepoint)

    first = started()
    before, early = take(first, None, 2)
    savepoint = first.trigger_savepoint().result(timeout=WAIT_S)
    covered, _ = take(first, early, 1)
    found, late = take(first, None, 12)
    first.cancel().result(timeout=WAIT_S)
    second = started(savepoint)
    with pytest.raises(CursorForked, match=r"counts no more.*Undo that, and go on from 'out-") as caught:
        take(second, late, 1)
    go_on_from = caught.value.go_on_from
    assert caught.value.cursor == late
    assert go_on_from is not None
    assert early is not None
    assert early <= go_on_from < str(late)
    kept = int(go_on_from.partition("@")[2].partition(".")[0])
    more, _ = take(second, go_on_from, 5)
    assert found[:kept] + more == list(range(kept + len(more)))
    again, _ = take(second, early, 3)
    assert before + again == list(range(len(before) + len(again)))
    assert covered


def test_a_cursor_older_than_what_is_kept_is_refused_and_says_where_to_go_on(shared_cluster: LocalCluster) -> None:
    job = shared_cluster.submit(numbers(environment(), count=None, retention_bytes=1))
    slow = job.outlet("out")
    first = slow.read(timeout=WAIT_S)
    assert first is not None
    _, cursor = take(job, first.cursor, 1)
    follower = job.outlet("out", latest=True)
    for _ in range(5):
        follower.read(timeout=WAIT_S)
    with pytest.raises(CursorExpired, match=r"not kept any more.*retention_ms") as caught:
        take(job, first.cursor, 1)
    assert caught.value.go_on_from is not None
    assert caught.value.go_on_from > first.cursor
    job.cancel()
    assert cursor


def test_wrong_cursors_and_names_are_refused(shared_cluster: LocalCluster) -> None:
    env = numbers(environment())
    generated(env, 10, None, None, "others").to_outlet("other")
    generated(env, 10, None, None, "collected").collect(name="kept")
    job = shared_cluster.submit(env)
    job.wait(timeout=WAIT_S)
    _, cursor = take(job, None, 1)
    with pytest.raises(InvalidCursor, match="no cursor of an outlet"):
        take(job, "garbage", 1)
    assert cursor is not None
    for damaged in (cursor[:-1], cursor + "0", cursor.replace(".0.", ".1.", 1)):
        with pytest.raises(InvalidCursor, match="no cursor of an outlet"):
            take(job, damaged, 1)
    with pytest.raises(InvalidCursor, match="None is the beginning"):
        job.outlet("out", after="")
    with pytest.raises(InvalidCursor, match="cursor of outlet 'out-"):
        job.outlet("other", after=cursor).read()
    with pytest.raises(UnknownOperator, match=r"has no outlet 'othr'; it has out, other; did you mean 'other'\?$"):
        job.outlet("othr")
    with pytest.raises(ResultsUnavailable, match="sink 'kept' is a CollectSink"):
        job.outlet("kept")
    with pytest.raises(InvalidSetting):
        job.outlet("out", after=cursor, latest=True)
    with RemoteCluster(shared_cluster.address, shared_cluster._curve) as client:
        with pytest.raises(Exception, match=r"no such outlet; it has out, other$"):
            client.outlet(job.job_id, "kept").read()
        assert all_of(client.outlet(job.job_id, "out")) == list(range(COUNT))


def test_the_reader_of_a_job_that_fails_gets_what_was_committed_and_then_the_failure(
    start_cluster: StartCluster, tmp_path: Path
) -> None:
    gate = Gate(tmp_path)

    def fails(number: int) -> int:
        if gate.is_open:
            raise ValueError("half-way")
        return number

    env = environment(restart_strategy=no_restart())
    generated(env, None, RATE, None, "numbers", parallelism=1).map(fails, parallelism=1).to_outlet("out")
    job = start_cluster(1).submit(env)
    outlet = job.outlet("out")
    found = list(outlet.read(timeout=WAIT_S) or ())
    assert found
    gate.open()
    with pytest.raises(JobFailed, match="half-way"):
        found.extend(record for batch in outlet for record in batch)
    assert found == list(range(len(found)))


def test_the_reader_of_a_job_that_is_cancelled_learns_it_at_the_end(shared_cluster: LocalCluster) -> None:
    job = shared_cluster.submit(numbers(environment(), count=None))
    outlet = job.outlet("out")
    assert outlet.cursor is None
    found = [*(outlet.read(timeout=WAIT_S) or ())]
    job.cancel().result(timeout=WAIT_S)
    with pytest.raises(JobCanceled):
        found.extend(record for batch in outlet for record in batch)
    assert found == list(range(len(found)))


def test_without_checkpoints_all_is_there_at_the_end_and_until_then_a_reader_waits(
    shared_cluster: LocalCluster, tmp_path: Path
) -> None:
    gate = Gate(tmp_path)
    env = numbers(StreamEnvironment(), gate=gate)
    job = shared_cluster.submit(env)
    outlet = job.outlet("out")
    with pytest.raises(TimeoutError, match=r"nothing new for 0\.05 seconds"):
        outlet.read(timeout=0.05)
    with pytest.raises(TimeoutError, match="nothing new"):
        asyncio.run(outlet.read_async(timeout=0.05))
    gate.open()
    assert all_of(outlet) == list(range(COUNT))
    assert outlet.read() is None
    assert asyncio.run(outlet.read_async()) is None


def test_readers_of_a_cluster_that_goes_away_get_job_lost(start_cluster: StartCluster) -> None:
    cluster = start_cluster()
    job = cluster.submit(numbers(environment(), count=None))
    outlet = job.outlet("out")
    outlet.read(timeout=WAIT_S)
    cluster.close()
    with pytest.raises((JobLost, JobCanceled)):
        all_of(outlet)
    with pytest.raises((JobLost, JobCanceled)):
        all_of(job.outlet("out"))


def test_to_read_in_an_event_loop_warns(shared_cluster: LocalCluster) -> None:
    job = shared_cluster.submit(numbers(environment(), 10))

    async def wrong() -> None:
        with pytest.warns(RuntimeWarning, match="async for"):
            job.outlet("out").read()

    asyncio.run(wrong())


@pytest.mark.chaos
def test_a_reader_waits_while_the_job_restarts(start_cluster: StartCluster) -> None:
    job = start_cluster().submit(numbers(environment(), count=None))
    witness = Witness(job)
    outlet = job.outlet("out")
    found = [*(outlet.read(timeout=WAIT_S) or ())]
    witness.kill(witness.pids(2)[0])
    witness.kill(witness.pids(1)[1])
    witness.status(JobStatus.RUNNING, times=2)
    while found[-1] < 2 * COUNT:
        found += outlet.read(timeout=WAIT_S) or ()
    assert found == list(range(len(found)))
    job.cancel()


def test_a_question_that_has_failed_is_put_again() -> None:
    """As where storage does not answer for a moment: the reader may be asked once more."""
    part = OutletPart(framed([pack_batch(["alert"])]), 1, "behind it")
    outcomes: list[Any] = [OSError("storage is away"), OutletAnswer((part,), "behind it", is_over=False)]
    source: Any = SimpleNamespace(request=lambda _: _done(outcomes.pop(0)))
    outlet = Outlet(source, JobId("job"), "out", None, latest=False)
    with pytest.raises(OSError, match="storage is away"):
        outlet.read()
    assert list(outlet.read() or ()) == ["alert"]


def test_of_an_answer_with_several_parts_each_has_the_cursor_behind_itself() -> None:
    """Whoever stops between them begins there again."""
    parts = tuple(OutletPart(framed([pack_batch([name])]), 1, f"behind {name}") for name in ("one", "two"))
    source: Any = SimpleNamespace(request=lambda _: _done(OutletAnswer(parts, "behind two", is_over=False)))
    outlet = Outlet(source, JobId("job"), "out", None, latest=False)
    for name in ("one", "two"):
        batch = outlet.read()
        assert batch is not None
        assert (batch.records, batch.cursor, outlet.cursor) == ([name], f"behind {name}", f"behind {name}")


def _done(outcome: Any) -> Future[Any]:
    future: Future[Any] = Future()
    if isinstance(outcome, BaseException):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)
    return future
