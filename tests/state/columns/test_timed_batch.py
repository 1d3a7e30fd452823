"""TimedBatch: records and times stay together, in memory and as bytes."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.messages import MalformedMessage
from understudy.state import pack_batch, unpack_batch
from understudy.state.columns.timed_batch import TimedBatch, joined

TIMES = st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=20)


def timed(times: list[int], *, arrow: bool = False, column: str | None = None) -> TimedBatch:
    records: Any = [{"n": n} for n in range(len(times))]
    if arrow:
        records = pa.RecordBatch.from_pylist(records)
    return TimedBatch(records, np.array(times, np.int64), column)


@given(TIMES, st.booleans(), st.sampled_from([None, "t", "время"]))
def test_it_comes_back_from_bytes(times: list[int], arrow: bool, column: str | None) -> None:
    batch = timed(times, arrow=arrow, column=column)
    found = unpack_batch(pack_batch(batch))
    assert found == batch
    assert isinstance(found, TimedBatch)
    assert found.column == column


@given(TIMES, st.booleans(), st.integers(0, 20))
def test_pieces_joined_are_the_whole(times: list[int], arrow: bool, cut: int) -> None:
    batch = timed(times, arrow=arrow)
    cut = min(cut, len(times))
    pieces = [piece for piece in (batch.slice(0, cut), batch.slice(cut, len(times))) if len(piece)]
    assert joined(pieces) == batch


@given(TIMES, st.data())
def test_broken_bytes_are_malformed_or_another_batch(times: list[int], data: st.DataObject) -> None:
    packed = bytearray(pack_batch(timed(times)))
    position = data.draw(st.integers(1, len(packed) - 1))
    packed[position] ^= data.draw(st.integers(1, 255))
    packed = packed[: data.draw(st.integers(1, len(packed)))]
    with suppress(MalformedMessage):
        assert isinstance(unpack_batch(bytes(packed)), TimedBatch)


def test_a_timed_batch_of_a_timed_batch_is_malformed() -> None:
    inner = pack_batch(timed([1]))
    outer = bytearray(pack_batch(TimedBatch([b""], np.array([1], np.int64))))
    outer[1] = inner[0]
    with pytest.raises(MalformedMessage):
        unpack_batch(bytes(outer))


def test_a_batch_needs_a_time_for_each_record() -> None:
    with pytest.raises(AssertionError, match="2 records with 1 event times"):
        TimedBatch([1, 2], np.array([1], np.int64))
