"""Small batches in, larger ones out: in order, complete, not kept too long, and none kept for nothing."""

from __future__ import annotations

from math import inf

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.actors.flow.elements import Batch
from understudy.actors.flow.output_buffer import BYTES_PER_CHANNEL, ROWS_PER_CHANNEL, OutputBuffer


def numbers(*values: int) -> pa.RecordBatch:
    return pa.record_batch({"n": pa.array(values, pa.int64())})


def records_of(batches: list[Batch]) -> list[object]:
    return [
        record for batch in batches for record in (batch if isinstance(batch, list) else batch.column(0).to_pylist())
    ]


@pytest.mark.usual_sizes
def test_records_leave_together() -> None:
    buffer = OutputBuffer(channels=1, timeout_ms=5)
    assert not buffer.add([1, 2], 0.0)
    assert not buffer.add([3], 0.0)
    assert list(buffer.take()) == [[1, 2, 3]]
    assert list(buffer.take()) == []


@pytest.mark.usual_sizes
def test_columns_leave_together() -> None:
    buffer = OutputBuffer(channels=1, timeout_ms=5)
    assert not buffer.add(numbers(1, 2), 0.0)
    assert not buffer.add(numbers(3), 0.0)
    assert list(buffer.take()) == [numbers(1, 2, 3)]


def test_what_somebody_else_may_hold_is_not_changed() -> None:
    buffer, mine = OutputBuffer(channels=1, timeout_ms=5), [1]
    buffer.add(mine, 0.0)
    buffer.add([2], 0.0)
    buffer.take()
    assert mine == [1]


@pytest.mark.usual_sizes
@pytest.mark.parametrize("channels", [1, 16])
def test_enough_rows_for_all_channels_leave_at_once(channels: int) -> None:
    buffer, half = OutputBuffer(channels, timeout_ms=5), channels * ROWS_PER_CHANNEL // 2
    assert not buffer.add([0] * half, 0.0)
    assert not buffer.add([0] * (half - 1), 0.0)
    assert [len(batch) for batch in buffer.add([0], 0.0)] == [2 * half]
    assert buffer.due_ms == inf


def test_enough_bytes_leave_at_once() -> None:
    buffer, text = OutputBuffer(channels=2, timeout_ms=5), "x" * BYTES_PER_CHANNEL
    assert not buffer.add([text], 0.0)
    assert list(buffer.add([text], 0.0)) == [[text, text]]


def test_a_batch_that_is_large_by_itself_is_passed_on_as_it_is_behind_what_is_kept() -> None:
    buffer, large = OutputBuffer(channels=1, timeout_ms=5), numbers(*range(ROWS_PER_CHANNEL))
    buffer.add(numbers(1), 0.0)
    first, second = buffer.add(large, 0.0)
    assert first == numbers(1)
    assert second is large


def test_nothing_is_kept_without_a_timeout() -> None:
    buffer = OutputBuffer(channels=4, timeout_ms=0)
    assert list(buffer.add([1], 0.0)) == [[1]]
    assert buffer.due_ms == inf


def test_the_oldest_batch_says_when_they_are_due() -> None:
    buffer = OutputBuffer(channels=1, timeout_ms=5)
    assert buffer.due_ms == inf
    buffer.add([1], 100.0)
    buffer.add([2], 104.0)
    assert buffer.due_ms == 105.0
    buffer.take()
    buffer.add([3], 107.0)
    assert buffer.due_ms == 112.0


@pytest.mark.parametrize(
    "other",
    [[1], pa.record_batch({"m": [1]}), pa.record_batch({"n": pa.array([1], pa.int32())})],
    ids=["records", "another name", "another type"],
)
def test_what_does_not_go_together_leaves_one_after_the_other(other: Batch) -> None:
    buffer = OutputBuffer(channels=1, timeout_ms=5)
    buffer.add(numbers(0), 100.0)
    assert list(buffer.add(other, 103.0)) == [numbers(0)]
    assert buffer.due_ms == 108.0
    assert list(buffer.add(numbers(2), 104.0)) == [other]
    assert list(buffer.take()) == [numbers(2)]


@pytest.mark.usual_sizes
def test_dictionaries_are_joined_or_leave_one_after_the_other() -> None:
    kind = pa.dictionary(pa.int8(), pa.string())
    small = [pa.record_batch({"t": pa.array(texts, kind)}) for texts in (["a", "b"], ["b", "c"])]
    large = [pa.record_batch({"t": pa.array([f"{n}-{i}" for i in range(100)], kind)}) for n in range(2)]
    for batches, sizes in ((small, [4]), (large, [100, 100])):
        buffer = OutputBuffer(channels=1, timeout_ms=5)
        for batch in batches:
            assert not buffer.add(batch, 0.0)
        taken = buffer.take()
        assert [len(batch) for batch in taken] == sizes
        assert records_of(list(taken)) == records_of(list(batches))


BATCHES = st.lists(
    st.one_of(
        st.lists(st.integers(0, 100), min_size=1, max_size=600),
        st.lists(st.integers(0, 100), min_size=1, max_size=600).map(lambda values: numbers(*values)),
        st.integers(900, 1200).map(lambda rows: list(range(rows))),
    ),
    max_size=12,
)


@given(batches=BATCHES, takes=st.sets(st.integers(0, 12)), timeout_ms=st.sampled_from([0, 5]))
def test_everything_leaves_once_and_in_order(batches: list[Batch], takes: set[int], timeout_ms: int) -> None:
    buffer, left = OutputBuffer(1, timeout_ms), list[Batch]()
    for position, batch in enumerate(batches):
        left.extend(buffer.add(batch, float(position)))
        assert all(left), "a batch is never empty"
        if position in takes:
            left.extend(buffer.take())
            assert records_of(left) == records_of(batches[: position + 1])
    left.extend(buffer.take())
    assert records_of(left) == records_of(batches)
    assert len(left) <= len(batches)
