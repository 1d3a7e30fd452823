"""SimulatedDataPlane over the smallest network there is: one queue, whose frames are delivered when a test says so."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import pytest

from understudy.actors.errors import ChannelBroken
from understudy.actors.flow.channels import DataPlane, InputChannel, OutputChannel
from understudy.actors.flow.elements import CheckpointBarrier, Element, EndOfData, EndOfPartition
from understudy.messages import ChannelId, CheckpointId
from understudy.runtime.simulation.world.data_plane import SimulatedDataPlane
from understudy.runtime.simulation.world.wires import Connection, Listener
from understudy.runtime.transport.frames import FrameKind, Header, pack_header, unpack_header

from ...transport.ends import WINDOW, Ends, Waker, descriptor
from ...transport.test_channel_contract import CREDIT, ChannelContract, Open

BARRIER = CheckpointBarrier(CheckpointId(1), 0)


class End:
    """One end of a connection."""

    other: End

    def __init__(self, network: QueueNetwork, listener: Listener | None) -> None:
        self.network = network
        self.listener = listener
        self.is_open = True

    def send(self, parts: Sequence[bytes]) -> None:
        assert all(type(part) is bytes for part in parts)  # no view of a buffer that may change or go
        if self.is_open:
            self.network.under_way.append((self.other, tuple(parts)))

    def close(self) -> None:
        if self.is_open:
            self.is_open = False
            self.network.under_way.append((self.other, "the other end closed it"))

    def hear(self, news: Sequence[bytes] | str) -> None:
        if not self.is_open:
            return
        assert self.listener is not None
        if isinstance(news, str):
            self.is_open = False
            self.listener.on_lost(news)
        else:
            self.listener.on_frame(news)


@dataclass
class QueueNetwork:
    """All frames of all connections in the order in which they were sent. A string in a frame's place is a loss."""

    under_way: deque[tuple[End, Sequence[bytes] | str]] = field(default_factory=deque)
    ends: list[End] = field(default_factory=list)
    accepting: dict[str, Callable[[Connection], Listener]] = field(default_factory=dict)

    def listen(self, endpoint: str, accept: Callable[[Connection], Listener]) -> None:
        self.accepting[endpoint] = accept

    def connect(self, endpoint: str, listener: Listener) -> Connection:
        near, far = End(self, listener), End(self, None)
        near.other, far.other = far, near
        self.ends += (near, far)
        if endpoint in self.accepting:
            far.listener = self.accepting[endpoint](far)
        else:
            far.is_open = False
            self.under_way.append((near, "nobody listens there"))
        return near

    def deliver(self, count: int | None = None) -> None:
        """The next `count` frames, or all, with those that are sent meanwhile."""
        while self.under_way and count != 0:
            end, news = self.under_way.popleft()
            end.hear(news)
            count = None if count is None else count - 1

    def cut(self) -> None:
        """Every connection is lost, with all that is under way."""
        self.under_way.clear()
        self.under_way.extend((end, "cut") for end in self.ends)

    def kinds(self) -> list[FrameKind]:
        """Of the frames under way."""
        return [unpack_header(news[0]).kind for _, news in self.under_way if not isinstance(news, str)]


@dataclass
class Pair:
    """Two data planes on one network; channel 1 goes from the first to the second."""

    network: QueueNetwork = field(default_factory=QueueNetwork)

    def __post_init__(self) -> None:
        self.producer = SimulatedDataPlane("a", self.network, window_bytes=WINDOW, max_early_channels=2)
        self.consumer = SimulatedDataPlane("b", self.network, window_bytes=WINDOW)
        self.wakes: list[str] = []

    def output(self, channel_id: int = 1) -> OutputChannel:
        return self.producer.open_output(descriptor(channel_id, "a"), partial(self.wakes.append, "producer"))

    def input(self, channel_id: int = 1, endpoint: str = "a") -> InputChannel:
        return self.consumer.open_input(descriptor(channel_id, endpoint), partial(self.wakes.append, "consumer"))

    def open(self, channel_id: int = 1) -> tuple[OutputChannel, InputChannel]:
        """A channel whose consumer has been heard of."""
        output, input_ = self.output(channel_id), self.input(channel_id)
        self.network.deliver()
        self.wakes.clear()
        return output, input_


def polled(channel: InputChannel) -> list[Element]:
    return list(iter(channel.poll, None))


def why_broken(action: Callable[[], object]) -> str:
    with pytest.raises(ChannelBroken) as raised:
        action()
    return str(raised.value)


@dataclass
class Prompt:
    """Either end of a channel on a network that delivers whatever there is before anything is done."""

    network: QueueNetwork
    end: OutputChannel | InputChannel

    def __getattr__(self, name: str) -> object:
        self.network.deliver()
        return getattr(self.end, name)


class TestSimulatedChannel(ChannelContract):
    """What every channel promises."""

    @pytest.fixture
    def open_(self) -> Open:
        pair = Pair()

        def open_channel(channel_id: int) -> Ends:
            producer, consumer = Waker(), Waker()
            output = pair.producer.open_output(descriptor(channel_id, "a"), producer)
            input_ = pair.consumer.open_input(descriptor(channel_id, "a"), consumer)
            return Ends(Prompt(pair.network, output), Prompt(pair.network, input_), producer, consumer)  # type: ignore[arg-type]

        return open_channel

    def test_elements_arrive_in_order(self, open_: Open) -> None:
        """Without the threads that the others use."""
        ends = open_(1)
        for n in range(200):
            ends.output.send([n])
            ends.output.send(BARRIER)
            assert ends.take(2) == [[n], BARRIER]


class TestCreditAndOrder:
    def test_no_more_batches_are_under_way_than_the_credit(self) -> None:
        pair = Pair()
        output, input_ = pair.open()
        for n in range(3 * CREDIT):
            output.send([n])
        assert pair.network.kinds() == CREDIT * [FrameKind.RECORDS]
        assert not output.is_available()
        received: list[Element] = []
        while pair.network.under_way:
            pair.network.deliver()
            received += polled(input_)
            assert pair.network.kinds().count(FrameKind.RECORDS) <= CREDIT
        assert received == [[n] for n in range(3 * CREDIT)]
        assert output.is_available()

    def test_each_end_is_woken_by_what_comes_and_not_before(self) -> None:
        pair = Pair()
        output, input_ = pair.open()
        for n in range(CREDIT + 1):
            output.send([n])
        assert not pair.wakes
        pair.network.deliver()
        assert pair.wakes == ["consumer"]
        polled(input_)
        pair.network.deliver()
        assert pair.wakes == ["consumer", "producer", "producer", "consumer"]  # credit comes back in halves

    def test_a_batch_larger_than_a_payload_may_be_comes_in_parts(self) -> None:
        network = QueueNetwork()
        producer = SimulatedDataPlane("a", network, max_payload_bytes=100)
        input_ = SimulatedDataPlane("b", network).open_input(descriptor(1, "a"), Waker())
        producer.open_output(descriptor(1, "a"), Waker()).send(list(range(1000, 1100)))
        network.deliver()
        parts = polled(input_)
        assert len(parts) > 1
        assert [n for part in parts if isinstance(part, list) for n in part] == list(range(1000, 1100))


class TestWhoeverComesFirst:
    def test_an_early_consumer_waits_for_its_producer(self) -> None:
        pair = Pair()
        input_ = pair.input()
        pair.network.deliver()
        output = pair.output()
        output.send([1])
        pair.network.deliver()
        assert polled(input_) == [[1]]

    def test_an_early_producer_waits_for_its_consumer(self) -> None:
        pair = Pair()
        output = pair.output()
        for element in ([1], EndOfData()):
            output.send(element)
        assert not pair.network.under_way
        input_ = pair.input()
        pair.network.deliver()
        assert polled(input_) == [[1], EndOfData()]

    def test_of_too_many_early_consumers_the_oldest_gives_up(self) -> None:
        pair = Pair()
        oldest, second, third = map(pair.input, (1, 2, 3))
        pair.network.deliver()
        assert "gave it up" in why_broken(oldest.poll)
        for number, input_ in ((2, second), (3, third)):
            pair.output(number).send([number])
            pair.network.deliver()
            assert polled(input_) == [[number]]

    def test_a_second_consumer_is_turned_away(self) -> None:
        pair = Pair()
        output, input_ = pair.open()
        foreign = SimulatedDataPlane("c", pair.network).open_input(descriptor(1, "a"), Waker())
        pair.network.deliver()
        assert "gave it up" in why_broken(foreign.poll)
        output.send([1])
        pair.network.deliver()
        assert polled(input_) == [[1]]

    def test_a_channel_within_one_task_manager_touches_no_network(self) -> None:
        pair = Pair()
        local = descriptor(1, "a", consumer="tm-0")
        output = pair.producer.open_output(local, Waker())
        input_ = pair.producer.open_input(local, Waker())
        batch = [object()]
        output.send(batch)
        assert input_.poll() is batch
        assert not pair.network.ends


class TestLoss:
    def test_a_cut_breaks_both_ends_after_what_arrived(self) -> None:
        pair = Pair()
        output, input_ = pair.open()
        for n in range(CREDIT + 1):
            output.send([n])
        pair.network.deliver(2)
        pair.network.cut()
        pair.network.deliver()
        assert [input_.poll(), input_.poll()] == [[0], [1]]
        assert "to the producer's TaskManager at a is lost: cut" in why_broken(input_.poll)
        assert output.is_available()
        assert "from the consumer's TaskManager is lost: cut" in why_broken(partial(output.send, [5]))
        assert {"producer", "consumer"} <= set(pair.wakes)

    def test_a_cut_breaks_every_channel_of_that_connection_and_no_other(self) -> None:
        pair = Pair()
        first, second = pair.open(1), pair.open(2)
        pair.network.cut()
        third = pair.consumer.open_output(descriptor(3, "b"), Waker())
        pair.network.deliver()
        for output, input_ in (first, second):
            why_broken(input_.poll)
            why_broken(partial(output.send, [1]))
        input_ = pair.producer.open_input(descriptor(3, "b"), Waker())
        third.send([3])
        pair.network.deliver()
        assert polled(input_) == [[3]]

    def test_a_channel_opened_after_a_cut_has_a_connection_of_its_own(self) -> None:
        pair = Pair()
        pair.open(1)
        pair.network.cut()
        pair.network.deliver()
        output, input_ = pair.open(2)
        output.send([2])
        pair.network.deliver()
        assert polled(input_) == [[2]]

    def test_a_cut_after_the_end_breaks_nothing(self) -> None:
        pair = Pair()
        output, input_ = pair.open()
        output.send(EndOfPartition())
        output.close()
        pair.network.deliver()
        pair.network.cut()
        pair.network.deliver()
        assert polled(input_) == [EndOfPartition()]

    def test_an_end_that_is_under_way_when_the_connection_is_cut_never_comes(self) -> None:
        pair = Pair()
        output, input_ = pair.open()
        output.send(EndOfPartition())
        output.close()
        pair.network.cut()
        pair.network.deliver()
        why_broken(input_.poll)

    def test_an_endpoint_where_nobody_listens_breaks_the_channel(self) -> None:
        pair = Pair()
        input_ = pair.input(endpoint="nowhere")
        assert input_.poll() is None
        pair.network.deliver()
        assert "nobody listens there" in why_broken(input_.poll)

    def test_credit_of_a_channel_that_is_not_there_harms_no_other(self) -> None:
        pair = Pair()
        output, input_ = pair.open()
        for end in pair.network.ends:
            end.send((pack_header(Header(FrameKind.CREDIT, ChannelId(99), 5, 1)),))
        output.send([1])
        pair.network.deliver()
        assert polled(input_) == [[1]]

    @pytest.mark.parametrize("parts", [(), (b"garbage",), (b"", b"", b"")])
    def test_a_frame_that_cannot_be_read_breaks_the_channels_of_its_connection(self, parts: tuple[bytes, ...]) -> None:
        for sender in (0, 1):
            pair = Pair()
            output, input_ = pair.open()
            pair.network.ends[sender].send(parts)
            pair.network.deliver()
            broken = (input_.poll, partial(output.send, [1]))
            assert "a frame that cannot be read" in why_broken(broken[1 - sender])
            assert why_broken(broken[sender])


class TestEnds:
    def test_a_producer_that_closes_before_its_end_breaks_the_channel(self) -> None:
        pair = Pair()
        output, input_ = pair.open()
        output.send([1])
        output.close()
        pair.network.deliver()
        assert input_.poll() == [1]
        assert "before its end" in why_broken(input_.poll)

    def test_a_consumer_that_closes_before_the_end_breaks_the_channel(self) -> None:
        pair = Pair()
        output, input_ = pair.open()
        input_.close()
        pair.network.deliver()
        assert "the consumer closed it" in why_broken(partial(output.send, [1]))
        output.send(EndOfPartition())

    def test_closing_a_data_plane_breaks_both_ends_after_what_was_sent(self) -> None:
        for closed in ("producer", "consumer"):
            pair = Pair()
            output, input_ = pair.open()
            output.send([1])
            plane: SimulatedDataPlane = getattr(pair, closed)
            for _ in range(2):
                plane.close()
            pair.network.deliver()
            if closed == "producer":
                assert input_.poll() == [1]
            why_broken(input_.poll)
            why_broken(partial(output.send, [2]))
            why_broken(partial(plane.open_input, descriptor(9, "c"), Waker()))
            why_broken(partial(plane.open_output, descriptor(9, "c"), Waker()))

    def test_who_connects_to_a_closed_data_plane_hears_so(self) -> None:
        pair = Pair()
        pair.producer.close()
        input_ = pair.input()
        pair.network.deliver()
        why_broken(input_.poll)

    def test_a_data_plane_is_one_to_a_task_manager(self) -> None:
        plane: DataPlane = SimulatedDataPlane("here", QueueNetwork())
        assert plane.endpoint == "here"
        with pytest.raises(ValueError, match="window_bytes: wanted at least 1, found 0"):
            SimulatedDataPlane("here", QueueNetwork(), window_bytes=0)
