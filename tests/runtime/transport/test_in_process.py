"""In-process channels: two threads without a lock, and two ends that meet."""

from __future__ import annotations

from threading import Thread

import numpy as np
import pyarrow as pa
import pytest

from understudy.actors.errors import ChannelBroken
from understudy.actors.flow.channels import InputChannel, OutputChannel
from understudy.actors.flow.elements import Element, EndOfData, EndOfPartition, TimedBatch
from understudy.messages import ChannelId
from understudy.runtime.transport.in_process import LocalChannels
from understudy.runtime.transport.limits import FRAME_BYTES

from .ends import WINDOW, Ends, Waker

FIRST, SECOND, THIRD = map(ChannelId, (1, 2, 3))


def both_ends(window_bytes: int, consumer: Waker, producer: Waker) -> tuple[OutputChannel, InputChannel]:
    channels = LocalChannels(window_bytes, max_waiting=1)
    output = channels.open_output(FIRST, producer)
    return output, channels.open_input(FIRST, consumer, window_bytes)


@pytest.mark.parametrize("window_bytes", [1, 2 * FRAME_BYTES, 7 * FRAME_BYTES])
def test_no_wake_up_is_lost_between_two_threads(window_bytes: int) -> None:
    producer, consumer = Waker(), Waker()
    ends = Ends(*both_ends(window_bytes, consumer, producer), producer, consumer)

    def produce() -> None:
        for n in range(20_000):
            ends.until_available()
            ends.output.send([n])

    thread = Thread(target=produce)
    thread.start()
    assert ends.take(20_000) == [[n] for n in range(20_000)]
    thread.join()


def test_records_with_event_times_take_their_part_of_the_window() -> None:
    """They took none: within a process nothing held the producer of a stream with event time back."""
    output, input_ = both_ends(2 * FRAME_BYTES, Waker(), Waker())
    output.send(TimedBatch([1, 2], np.array([5, 6])))
    assert output.is_available()
    output.send(TimedBatch([3], np.array([7])))
    assert not output.is_available()
    assert output.usage == input_.usage == 1.0
    assert input_.poll() == TimedBatch([1, 2], np.array([5, 6]))
    assert input_.bytes_passed < output.bytes_passed
    assert output.is_available()


def test_elements_are_handed_over_as_they_are() -> None:
    output, input_ = both_ends(1, Waker(), Waker())
    batch = [object()]
    output.send(batch)
    assert input_.poll() is batch


@pytest.mark.parametrize("producer_first", [True, False])
def test_the_ends_meet_in_any_order(producer_first: bool) -> None:
    channels = LocalChannels(WINDOW, max_waiting=2)
    if producer_first:
        output = channels.open_output(FIRST, Waker())
        output.send([1])
        input_ = channels.open_input(FIRST, Waker(), WINDOW)
    else:
        input_ = channels.open_input(FIRST, Waker(), WINDOW)
        output = channels.open_output(FIRST, Waker())
        output.send([1])
    assert input_.poll() == [1]


def test_a_producer_that_ended_before_its_consumer_came_is_heard() -> None:
    channels = LocalChannels(WINDOW, max_waiting=2)
    output = channels.open_output(FIRST, Waker())
    sent: list[Element] = [[1], EndOfPartition()]
    for element in sent:
        output.send(element)
    output.close()
    assert list(iter(channels.open_input(FIRST, Waker(), WINDOW).poll, None)) == sent


def test_abandoned_ends_are_forgotten_when_too_many_wait() -> None:
    channels = LocalChannels(WINDOW, max_waiting=2)
    abandoned = channels.open_input(FIRST, Waker(), WINDOW)
    kept = channels.open_input(SECOND, Waker(), WINDOW)
    abandoned.close()
    channels.open_input(THIRD, Waker(), WINDOW)
    channels.open_output(SECOND, Waker()).send([2])
    assert kept.poll() == [2]
    channels.open_output(FIRST, Waker()).send([1])  # a new channel: the closed one is forgotten


def test_a_consumer_closed_before_the_producer_came_breaks_it() -> None:
    channels = LocalChannels(WINDOW, max_waiting=2)
    channels.open_input(FIRST, Waker(), WINDOW).close()
    with pytest.raises(ChannelBroken):
        channels.open_output(FIRST, Waker()).send([1])


def test_a_batch_counts_as_what_it_takes_and_a_control_element_as_nothing() -> None:
    producer = Waker()
    output, input_ = both_ends(100_000, Waker(), producer)
    for _ in range(1_000):
        output.send(EndOfData())
    output.send(pa.record_batch({"n": pa.array([0] * 12_000, pa.int64())}))
    assert output.is_available()
    output.send([0])
    assert output.is_available()
    output.send(["a long text" * 1_000])
    assert not output.is_available()
    while not isinstance(input_.poll(), pa.RecordBatch):
        assert not producer.event.is_set()
    assert producer.event.is_set()
    assert output.is_available()


def test_the_consumer_says_how_large_the_window_is() -> None:
    channels = LocalChannels(WINDOW, max_waiting=2)
    output = channels.open_output(FIRST, Waker())
    output.send([1])
    assert output.is_available()
    channels.open_input(FIRST, Waker(), 1)
    assert not output.is_available()


def test_a_window_has_at_least_one_byte() -> None:
    with pytest.raises(ValueError, match="window_bytes: wanted at least 1, found 0"):
        both_ends(0, Waker(), Waker())
