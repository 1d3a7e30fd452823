"""InFlightLog: what counts as in flight, and when it is known."""

from __future__ import annotations

import pyarrow as pa
import pytest

from understudy.actors.barriers.in_flight_elements import pack_in_flight, unpack_in_flight
from understudy.actors.barriers.in_flight_log import InFlightLog
from understudy.actors.flow.elements import (
    CancelCheckpointMarker,
    CheckpointBarrier,
    EndOfData,
    Watermark,
    WatermarkStatus,
)
from understudy.messages import AbortReason, CheckpointId
from understudy.state import unpack_batch


def barrier(number: int) -> CheckpointBarrier:
    return CheckpointBarrier(CheckpointId(number), 0)


def log_of(*overtaken: int, **settings: int) -> InFlightLog:
    return InFlightLog(CheckpointId(5), overtaken, **settings)


def test_batches_and_watermarks_count_up_to_the_barrier() -> None:
    log = log_of(0, 1)
    for element in (
        [1],
        barrier(4),
        [2],
        EndOfData(),
        Watermark(3),
        CancelCheckpointMarker(CheckpointId(4)),
        barrier(5),
        [3],
    ):
        log.feed(0, element)
    assert [unpack_in_flight(each) for each in log.batches[0]] == [[1], [2], Watermark(3)]
    assert log.missing == (1,)
    assert not log.is_over
    log.feed(1, barrier(5))
    assert log.is_over
    assert log.given_up is None
    assert log.size_bytes == sum(map(len, map(pack_in_flight, ([1], [2], Watermark(3)))))


def test_that_a_channel_has_become_idle_or_active_counts_as_its_watermarks_do() -> None:
    log, elements = log_of(0), [WatermarkStatus(True), WatermarkStatus(False), Watermark(3), WatermarkStatus(True)]
    for element in (*elements, barrier(5), WatermarkStatus(False)):
        log.feed(0, element)
    assert [unpack_in_flight(each) for each in log.batches[0]] == elements


def test_channels_that_were_not_overtaken_do_not_count() -> None:
    log = log_of(1)
    log.feed(0, ["after the barrier"])
    log.feed(1, barrier(5))
    assert log.is_over
    assert dict(log.batches) == {}


def test_arrow_batches_are_kept_as_they_are() -> None:
    log, batch = log_of(0), pa.record_batch({"n": [1, 2, 3]})
    log.feed(0, batch.slice(1))
    (packed,) = log.batches[0]
    assert unpack_batch(packed).equals(batch.slice(1))


def test_a_log_that_gets_too_large_is_given_up() -> None:
    """The barrier's sender has not heard of the switch, and goes on sending."""
    log = log_of(0, max_bytes=100)
    log.feed(0, ["x" * 90])
    assert log.given_up is None
    log.feed(0, ["x" * 90])
    assert log.given_up is AbortReason.LIMIT_EXCEEDED
    assert log.is_over
    assert dict(log.batches) == {}


@pytest.mark.parametrize("later", [["b"], barrier(5)])
def test_what_comes_after_it_was_given_up_changes_nothing(later: object) -> None:
    log = log_of(0, 1)
    log.feed(0, CancelCheckpointMarker(CheckpointId(5)))
    log.feed(1, later)
    log.add(1, ["c"])
    assert log.given_up is AbortReason.CANCELLED
    assert dict(log.batches) == {}
