"""SparkSource, PartitionFeed and RewindBuffer: rewinding in place, skipping with a check, and what fails. No Spark."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.actors.operators.source import END
from understudy.messages import CheckpointId
from understudy.runtime.connectors import (
    NonDeterministicSource,
    PartitionFailed,
    PartitionFeed,
    PartitionPosition,
    RewindBuffer,
    RewindImpossible,
    SparkSource,
)

from ..harness import make_context

SCHEMA = pa.schema([("n", pa.int64())])


def batch(*values: int) -> pa.RecordBatch:
    return pa.record_batch({"n": pa.array(values, pa.int64())})


def feed_of(*batches: pa.RecordBatch, memory: int = 1 << 20, spill_dir: str = "") -> PartitionFeed:
    return PartitionFeed(iter(batches), memory, spill_dir)


def attempt(feed: PartitionFeed, offset: Any = None, is_failover: bool = False) -> SparkSource:
    source = SparkSource(SCHEMA)
    source.context = make_context(resources={"spark-partition": feed}, is_failover=is_failover)
    source.open()
    if offset is not None:
        source.seek(offset)
    return source


def next_values(source: SparkSource, feed: PartitionFeed) -> list[int] | None:
    """The next batch's values; None at the end."""
    while (polled := source.poll()) is None:
        feed.pump_once()
    return None if polled is END else polled["n"].to_pylist()


def rest(source: SparkSource, feed: PartitionFeed) -> list[int]:
    values: list[int] = []
    while (more := next_values(source, feed)) is not None:
        values += more
    return values


def checkpoint(source: SparkSource, checkpoint_id: int) -> dict[str, Any]:
    source.on_checkpoint(CheckpointId(checkpoint_id))
    return source.offset()


def test_a_surviving_process_rewinds_in_place() -> None:
    feed = feed_of(batch(1, 2), batch(3), batch(4, 5))
    source = attempt(feed)
    next_values(source, feed)
    offset = checkpoint(source, 1)
    source.on_checkpoint_complete(CheckpointId(1))
    assert next_values(source, feed) == [3]
    assert rest(attempt(feed, offset), feed) == [3, 4, 5]


def test_an_attempt_before_the_first_checkpoint_starts_over() -> None:
    feed = feed_of(batch(1, 2), batch(3))
    assert rest(attempt(feed), feed) == [1, 2, 3]
    assert rest(attempt(feed), feed) == [1, 2, 3]


def test_a_checkpoint_whose_completion_was_not_heard_of_can_be_restored() -> None:
    feed = feed_of(batch(1, 2), batch(3), batch(4))
    source = attempt(feed)
    next_values(source, feed)
    next_values(source, feed)
    offset = checkpoint(source, 1)
    assert rest(attempt(feed, offset), feed) == [4]


def test_completion_of_a_newer_checkpoint_covers_the_older_ones() -> None:
    feed = feed_of(batch(1), batch(2), batch(3), batch(4))
    source = attempt(feed)
    for checkpoint_id in (1, 2, 3):
        next_values(source, feed)
        checkpoint(source, checkpoint_id)
    source.on_checkpoint_aborted(CheckpointId(1))
    source.on_checkpoint_complete(CheckpointId(2))
    assert feed.start.rows == 2


def test_rows_that_were_forgotten_end_the_process() -> None:
    feed = feed_of(batch(1), batch(2))
    source = attempt(feed)
    next_values(source, feed)
    checkpoint(source, 1)
    source.on_checkpoint_complete(CheckpointId(1))
    with pytest.raises(RewindImpossible, match=r"row 0 .* from 1 on"):
        attempt(feed).poll()
    with pytest.raises(RewindImpossible):
        feed.pump()


@settings(deadline=None)
@given(sizes=st.lists(st.integers(1, 5), min_size=1), cut=st.integers(0, 40), again=st.integers(1, 7))
def test_a_new_process_skips_to_the_offset_whatever_the_batches(sizes: list[int], cut: int, again: int) -> None:
    values = list(range(sum(sizes)))
    whole = batch(*values)
    feed = feed_of(*(whole.slice(sum(sizes[:i]), size) for i, size in enumerate(sizes)))
    source = attempt(feed)
    taken = 0
    while taken < min(cut, len(values)):
        taken += len(next_values(source, feed) or ())
    fresh = feed_of(*(whole.slice(start, again) for start in range(0, len(values), again)))
    restored = attempt(fresh, source.offset())
    assert restored.offset() == source.offset()
    assert rest(restored, fresh) == values[taken:]
    assert fresh.start.rows in (0, taken)


@pytest.mark.parametrize(
    ("recomputed", "told"),
    [
        ((batch(1, 2), batch(9), batch(4)), "3 rows .* different now"),
        ((batch(2, 1, 3), batch(4)), "different now"),
        ((batch(1, 2),), "only 2 rows now"),
    ],
)
def test_a_partition_that_came_out_different_is_refused(recomputed: tuple[pa.RecordBatch, ...], told: str) -> None:
    feed = feed_of(batch(1, 2, 3), batch(4))
    source = attempt(feed)
    next_values(source, feed)
    offset = checkpoint(source, 1)
    fresh = feed_of(*recomputed)
    for _ in range(2):  # and it stays refused
        with pytest.raises(NonDeterministicSource, match=told) as raised:
            rest(attempt(fresh, offset), fresh)
    assert "Order the DataFrame" in str(raised.value)


@pytest.mark.parametrize("is_failover", [False, True])
def test_a_dataframe_that_is_another_one_than_that_of_the_savepoint_is_thought_of(is_failover: bool) -> None:
    source = attempt(feed := feed_of(batch(1, 2)))
    next_values(source, feed)
    offset = checkpoint(source, 1)
    fresh = feed_of(batch(1, 3))
    with pytest.raises(NonDeterministicSource) as raised:
        rest(attempt(fresh, offset, is_failover), fresh)
    assert ("is another one than that of the job" in str(raised.value)) is not is_failover


def test_an_attempt_that_dies_while_skipping_does_not_hurt_the_next() -> None:
    batches = [batch(1, 2), batch(3, 4), batch(5, 6)]
    feed = feed_of(*batches)
    source = attempt(feed)
    for _ in range(2):
        next_values(source, feed)
    offset = checkpoint(source, 1)
    fresh = feed_of(*batches)
    dying = attempt(fresh, offset)
    fresh.pump_once()
    assert dying.poll() is None
    assert dying.offset() == offset
    assert rest(attempt(fresh, offset), fresh) == [5, 6]


def test_a_failure_of_spark_reaches_both_threads() -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        yield batch(1)
        raise ValueError("executor lost")

    feed = PartitionFeed(failing(), 1 << 20, "")
    with pytest.raises(ValueError, match="executor lost"):
        feed.pump()
    source = attempt(feed)
    assert next_values(source, feed) == [1]
    with pytest.raises(PartitionFailed, match="row 1"):
        source.poll()


def test_a_task_manager_without_partition_is_told() -> None:
    source = SparkSource(SCHEMA)
    source.context = make_context()
    with pytest.raises(RuntimeError, match="use a SparkCluster"):
        source.open()


def test_the_pump_reads_on_demand_and_wakes_the_task() -> None:
    """Two threads: the partition is read only as far ahead as allowed, and nothing spins or sleeps."""
    read: list[int] = []

    def counted() -> Iterator[pa.RecordBatch]:
        for number in range(200):
            read.append(number)
            yield batch(number)

    feed = PartitionFeed(counted(), 1 << 20, "")
    woken = threading.Event()
    feed.attach(woken.set)
    pump = threading.Thread(target=feed.pump)
    pump.start()
    source = attempt(feed)
    source.context.wake = woken.set
    feed.attach(woken.set)
    values: list[int] = []
    while (polled := source.poll()) is not END:
        if polled is None:
            assert woken.wait(30)
            woken.clear()
        else:
            values += polled["n"].to_pylist()
            assert len(read) <= len(values) + 3
    feed.close()
    pump.join(30)
    assert values == list(range(200))
    assert not pump.is_alive()


# -- the buffer


def test_what_does_not_fit_into_memory_is_spilled_under_no_name(tmp_path: Path) -> None:
    buffer = RewindBuffer(batch(1, 2).nbytes, str(tmp_path))
    buffer.append(batch(1, 2))
    buffer.append(batch(3, 4))
    buffer.append(batch(5, 6))
    assert buffer.spilled_bytes == batch(3, 4, 5, 6).nbytes
    assert list(tmp_path.iterdir()) == []
    assert [buffer.read(row, 1)["n"][0].as_py() for row in range(6)] == [1, 2, 3, 4, 5, 6]
    buffer.truncate(3)
    assert buffer.memory_bytes == 0
    buffer.append(batch(7))
    assert [buffer.read(row, 9)["n"].to_pylist() for row in (3, 4, 6)] == [[4], [5, 6], [7]]
    buffer.close()
    assert buffer.spilled_bytes == 0


@settings(deadline=None)
@given(steps=st.lists(st.tuples(st.integers(1, 4), st.integers(0, 3)), max_size=12), memory=st.integers(0, 80))
def test_any_row_that_was_not_truncated_can_be_read(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, int]], memory: int
) -> None:
    buffer = RewindBuffer(memory, str(tmp_path_factory.mktemp("spill")))
    for rows, truncated in steps:
        buffer.append(batch(*range(buffer.end, buffer.end + rows)))
        buffer.truncate(min(buffer.start + truncated, buffer.end))
        assert buffer.memory_bytes <= memory
        for row in range(buffer.start, buffer.end):
            assert buffer.read(row, 1)["n"].to_pylist() == [row]
    buffer.close()


def test_a_full_disk_loses_no_row(tmp_path: Path) -> None:
    spill_dir = tmp_path / "missing"
    feed = feed_of(batch(1), batch(2), memory=0, spill_dir=str(spill_dir))
    source = attempt(feed)
    feed.pump_once()
    with pytest.raises(OSError, match="No such file or directory"):
        source.poll()
    spill_dir.mkdir()
    assert rest(attempt(feed), feed) == [1, 2]


def test_a_position_behind_the_start_forgets_nothing() -> None:
    feed = feed_of(batch(1, 2))
    feed.pump_once()
    feed.read(0, 2)
    feed.forget_before(PartitionPosition(1, (7,)))
    feed.forget_before(PartitionPosition(0))
    assert feed.start == PartitionPosition(1, (7,))
