"""In-process channels: two threads without a lock, and two ends that meet."""

from __future__ import annotations

from threading import Thread

import pytest

from understudy.actors.elements import Element, EndOfPartition
from understudy.actors.errors import ChannelBroken
from understudy.messages import ChannelId
from understudy.runtime.transport import local_channel
from understudy.runtime.transport.in_process import LocalChannels

from .ends import Ends, Waker

FIRST, SECOND, THIRD = map(ChannelId, (1, 2, 3))


@pytest.mark.parametrize("capacity", [1, 2, 7])
def test_no_wake_up_is_lost_between_two_threads(capacity: int) -> None:
    producer, consumer = Waker(), Waker()
    ends = Ends(*local_channel(capacity, consumer, producer), producer, consumer)

    def produce() -> None:
        for n in range(20_000):
            ends.until_available()
            ends.output.send([n])

    thread = Thread(target=produce)
    thread.start()
    assert ends.take(20_000) == [[n] for n in range(20_000)]
    thread.join()


def test_elements_are_handed_over_as_they_are() -> None:
    output, input_ = local_channel(1, Waker(), Waker())
    batch = [object()]
    output.send(batch)
    assert input_.poll() is batch


@pytest.mark.parametrize("producer_first", [True, False])
def test_the_ends_meet_in_any_order(producer_first: bool) -> None:
    channels = LocalChannels(capacity=2, max_waiting=2)
    if producer_first:
        output = channels.open_output(FIRST, Waker())
        output.send([1])
        input_ = channels.open_input(FIRST, Waker())
    else:
        input_ = channels.open_input(FIRST, Waker())
        output = channels.open_output(FIRST, Waker())
        output.send([1])
    assert input_.poll() == [1]


def test_a_producer_that_ended_before_its_consumer_came_is_heard() -> None:
    channels = LocalChannels(capacity=2, max_waiting=2)
    output = channels.open_output(FIRST, Waker())
    sent: list[Element] = [[1], EndOfPartition()]
    for element in sent:
        output.send(element)
    output.close()
    assert list(iter(channels.open_input(FIRST, Waker()).poll, None)) == sent


def test_abandoned_ends_are_forgotten_when_too_many_wait() -> None:
    channels = LocalChannels(capacity=2, max_waiting=2)
    abandoned = channels.open_input(FIRST, Waker())
    kept = channels.open_input(SECOND, Waker())
    abandoned.close()
    channels.open_input(THIRD, Waker())
    channels.open_output(SECOND, Waker()).send([2])
    assert kept.poll() == [2]
    channels.open_output(FIRST, Waker()).send([1])  # a new channel: the closed one is forgotten


def test_a_consumer_closed_before_the_producer_came_breaks_it() -> None:
    channels = LocalChannels(capacity=2, max_waiting=2)
    channels.open_input(FIRST, Waker()).close()
    with pytest.raises(ChannelBroken):
        channels.open_output(FIRST, Waker()).send([1])


def test_a_channel_holds_at_least_one_element() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        local_channel(0, Waker(), Waker())
