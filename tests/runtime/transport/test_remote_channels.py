"""The two remote ends as machines: frames in, frames out, without a socket or a thread."""

from __future__ import annotations

import random
from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.actors.errors import ChannelBroken
from understudy.actors.flow.elements import CheckpointBarrier, Element, EndOfData, EndOfPartition, Watermark
from understudy.messages import ChannelId, CheckpointId, pack_plain
from understudy.runtime.transport.frames import FrameKind, Header, pack_header, unpack_header
from understudy.runtime.transport.input_channels import InputChannels, ProducerConnection
from understudy.runtime.transport.limits import (
    FRAME_BYTES,
    MAX_WINDOW_BYTES,
    WINDOW_BATCHES,
    ChannelLimits,
    cost_of,
    grown,
)
from understudy.runtime.transport.output_channels import OutputChannels
from understudy.runtime.transport.remote_input import RemoteInputChannel
from understudy.runtime.transport.remote_output import Frame, RemoteOutputChannel
from understudy.runtime.transport.stats import DataPlaneStats
from understudy.state.columns.arrow_batches import Payload

CHANNEL = ChannelId(5)
ME, OTHER = b"me", b"other"
BATCH = pack_plain([1])
COST = cost_of(BATCH)
"""What each batch here takes of a window."""


class Producer:
    """A RemoteOutputChannel and all that left it."""

    def __init__(self) -> None:
        self.sent: list[Header] = []
        self.released: list[ChannelId] = []
        self.wakes = 0
        self.channel = RemoteOutputChannel(CHANNEL, self._transmit, self.released.append, max_payload_bytes=1000)
        self.channel.attach(self._wake)

    def _transmit(self, consumer: bytes, frame: Frame) -> None:
        assert consumer == ME
        self.sent.append(unpack_header(frame[0]))

    def _wake(self) -> None:
        self.wakes += 1

    def hears(self, kind: FrameKind, sequence: int, batches: int = 0, consumer: bytes = ME) -> bool:
        return self.channel.receive(consumer, Header(kind, CHANNEL, sequence, batches * COST))

    def kinds(self) -> list[FrameKind]:
        return [header.kind for header in self.sent]

    def fails(self) -> str:
        with pytest.raises(ChannelBroken) as raised:
            self.channel.send([0])
        return str(raised.value)


class Consumer:
    """A RemoteInputChannel with a window of four batches, and all that left it."""

    def __init__(self, batches: int = 4) -> None:
        self.sent: list[Header] = []
        self.released: list[ChannelId] = []
        self.wakes = 0
        self.channel = RemoteInputChannel(CHANNEL, batches * COST, self._wake, self._transmit, self.released.append)
        self.channel.open()

    def _transmit(self, frame: tuple[bytes]) -> None:
        self.sent.append(unpack_header(frame[0]))

    def _wake(self) -> None:
        self.wakes += 1

    def hears(self, kind: FrameKind, sequence: int, payload: Payload | None = None) -> bool:
        return self.channel.deliver(Header(kind, CHANNEL, sequence), payload)

    def hears_batches(self, *sequences: int) -> None:
        for sequence in sequences:
            self.hears(FrameKind.RECORDS, sequence, BATCH)

    def polls(self) -> list[Element]:
        return list(iter(self.channel.poll, None))

    def fails(self) -> str:
        with pytest.raises(ChannelBroken) as raised:
            self.polls()
        return str(raised.value)


class TestProducer:
    def test_nothing_leaves_before_the_consumer_opens(self) -> None:
        producer = Producer()
        producer.channel.send(EndOfData())
        assert not producer.sent
        assert not producer.channel.is_available()
        producer.hears(FrameKind.OPEN, 0, 1)
        assert producer.kinds() == [FrameKind.END_OF_DATA]
        assert producer.wakes == 1

    def test_batches_leave_against_credit_only(self) -> None:
        producer = Producer()
        producer.hears(FrameKind.OPEN, 0, 2)
        for n in range(5):
            producer.channel.send([n])
        assert len(producer.sent) == 2
        producer.hears(FrameKind.CREDIT, 1, 2)
        assert len(producer.sent) == 4
        assert not producer.channel.is_available()
        producer.hears(FrameKind.CREDIT, 2, 2)
        assert [header.sequence for header in producer.sent] == [0, 1, 2, 3, 4]
        assert producer.channel.is_available()

    def test_control_elements_need_no_credit_and_keep_their_place(self) -> None:
        producer = Producer()
        barrier = CheckpointBarrier(CheckpointId(1), 0)
        producer.hears(FrameKind.OPEN, 0, 1)
        for element in ([1], barrier, [2], barrier):
            producer.channel.send(element)
        assert producer.kinds() == [FrameKind.RECORDS, FrameKind.BARRIER]
        producer.hears(FrameKind.CREDIT, 1, 1)
        assert producer.kinds() == 2 * [FrameKind.RECORDS, FrameKind.BARRIER]

    @pytest.mark.parametrize("sequence", [0, 2, 2**64 - 1])
    def test_a_gap_or_a_duplicate_breaks_both_sides(self, sequence: int) -> None:
        producer = Producer()
        producer.hears(FrameKind.OPEN, 0, 1)
        producer.hears(FrameKind.CREDIT, sequence, 1)
        assert f"frame {sequence} of the consumer came where 1 was due" in producer.fails()
        assert producer.kinds() == [FrameKind.ABORT]
        assert producer.wakes == 2

    @pytest.mark.parametrize(
        ("kind", "credit"), [(FrameKind.OPEN, 1), (FrameKind.CREDIT, 0), (FrameKind.CREDIT, -1), (FrameKind.BARRIER, 1)]
    )
    def test_nonsense_breaks_the_channel(self, kind: FrameKind, credit: int) -> None:
        producer = Producer()
        producer.hears(FrameKind.OPEN, 0, 1)
        producer.hears(kind, 1, credit)
        assert "the consumer sent" in producer.fails()

    def test_another_consumer_is_not_heard(self) -> None:
        producer = Producer()
        producer.hears(FrameKind.OPEN, 0, 1)
        assert not producer.hears(FrameKind.OPEN, 0, 1, OTHER)
        assert not producer.hears(FrameKind.CLOSE, 1, 0, OTHER)
        producer.channel.consumer_lost(OTHER, "not mine")
        producer.channel.send([1])
        assert len(producer.sent) == 1

    def test_a_lost_consumer_frees_what_waits(self) -> None:
        producer = Producer()
        producer.hears(FrameKind.OPEN, 0, 1)
        for n in range(3):
            producer.channel.send([n])
        producer.channel.consumer_lost(ME, "killed")
        assert "killed" in producer.fails()
        producer.channel.close()
        assert producer.released == [CHANNEL]

    def test_it_is_released_once_its_end_has_left(self) -> None:
        producer = Producer()
        for element in ([1], EndOfPartition()):
            producer.channel.send(element)
        producer.channel.close()
        assert not producer.released
        producer.hears(FrameKind.OPEN, 0, 1)
        assert producer.kinds() == [FrameKind.RECORDS, FrameKind.END_OF_PARTITION]
        assert producer.released == [CHANNEL]

    def test_closing_before_the_end_tells_the_consumer_and_drops_what_waits(self) -> None:
        producer = Producer()
        producer.hears(FrameKind.OPEN, 0, 1)
        for n in range(3):
            producer.channel.send([n])
        producer.channel.close()
        assert producer.kinds() == [FrameKind.RECORDS, FrameKind.ABORT]
        assert producer.released == [CHANNEL]


class TestConsumer:
    def test_it_opens_with_its_window_and_returns_credit_in_halves(self) -> None:
        consumer = Consumer()
        consumer.hears_batches(0, 1, 2, 3)
        assert consumer.polls() == [[1]] * 4
        assert [(header.kind, header.sequence, header.first) for header in consumer.sent] == [
            (FrameKind.OPEN, 0, 4 * COST),
            (FrameKind.CREDIT, 1, 2 * COST),
            (FrameKind.CREDIT, 2, 2 * COST),
        ]

    def test_control_elements_return_no_credit(self) -> None:
        consumer = Consumer()
        for sequence in range(10):
            consumer.hears(FrameKind.WATERMARK, sequence)
        consumer.polls()
        assert len(consumer.sent) == 1

    @pytest.mark.parametrize("sequence", [0, 1, 3, 2**64 - 1])
    def test_a_gap_or_a_duplicate_breaks_both_sides_after_what_came_before(self, sequence: int) -> None:
        consumer = Consumer()
        consumer.hears_batches(0, 1, sequence, 2)
        assert consumer.channel.poll() == consumer.channel.poll() == [1]
        assert f"frame {sequence} came where 2 was due" in consumer.fails()
        assert FrameKind.CLOSE in [header.kind for header in consumer.sent]

    def test_a_batch_that_comes_without_credit_breaks_the_channel(self) -> None:
        consumer = Consumer()
        consumer.hears_batches(0, 1, 2, 3, 4)
        assert f"a batch came when {4 * COST} of {4 * COST} bytes were used up" in consumer.fails()

    def test_small_batches_do_not_cost_a_credit_frame_each(self) -> None:
        consumer = Consumer(100)
        for sequence in range(1_000):
            consumer.hears_batches(sequence)
            assert consumer.polls() == [[1]]
        assert len(consumer.sent) == 1 + 20

    @pytest.mark.parametrize(
        ("kind", "payload"),
        [(FrameKind.RECORDS, b"\xc1"), (FrameKind.RECORDS, None), (FrameKind.BARRIER, b""), (FrameKind.OPEN, None)],
    )
    def test_a_malformed_frame_breaks_the_channel_for_good(self, kind: FrameKind, payload: bytes | None) -> None:
        consumer = Consumer()
        consumer.hears_batches(0)
        consumer.hears(kind, 1, payload)
        consumer.hears(FrameKind.END_OF_PARTITION, 2)
        assert consumer.channel.poll() == [1]
        assert consumer.fails() == consumer.fails()
        assert [header.kind for header in consumer.sent] == [FrameKind.OPEN, FrameKind.CLOSE]

    def test_a_lost_producer_matters_only_before_its_end(self) -> None:
        cut, ended = Consumer(), Consumer()
        cut.hears_batches(0)
        ended.hears(FrameKind.END_OF_PARTITION, 0)
        for consumer in (cut, ended):
            consumer.channel.producer_lost("killed")
        assert cut.channel.poll() == [1]
        assert "killed" in cut.fails()
        assert ended.polls() == [EndOfPartition()]

    def test_nothing_is_delivered_or_told_after_the_close(self) -> None:
        consumer = Consumer()
        consumer.hears_batches(0)
        consumer.channel.close()
        assert not consumer.hears(FrameKind.RECORDS, 1, BATCH)
        assert consumer.polls() == []
        assert [header.kind for header in consumer.sent] == [FrameKind.OPEN, FrameKind.CLOSE]
        assert consumer.released == [CHANNEL]

    def test_an_arrival_wakes_only_a_task_that_may_sleep(self) -> None:
        consumer = Consumer()
        consumer.hears_batches(0, 1)
        assert consumer.wakes == 1
        consumer.polls()
        consumer.hears_batches(2)
        assert consumer.wakes == 2


class TwoEnds:
    """A producer and a consumer that share nothing but two lines of frames, which arrive when they are told to."""

    def __init__(self, window_bytes: int, max_payload_bytes: int = 100_000) -> None:
        self.to_consumer: deque[tuple[Header, Payload | None]] = deque()
        self.to_producer: deque[Header] = deque()
        self.held = self.largest = self.most = 0
        """Of the batches that were sent and not taken: their bytes, those of the largest, and the most there were."""
        self.producer = RemoteOutputChannel(CHANNEL, self._send, lambda _: None, max_payload_bytes)
        self.consumer = RemoteInputChannel(CHANNEL, window_bytes, lambda: None, self._tell, lambda _: None)
        self.consumer.open()

    def _send(self, _: bytes, frame: Frame) -> None:
        payload = frame[1] if len(frame) == 2 else None
        self.to_consumer.append((unpack_header(frame[0]), payload))
        if payload is not None:
            self.held += cost_of(payload)
            self.largest = max(self.largest, cost_of(payload))
            self.most = max(self.most, self.held)

    def _tell(self, frame: tuple[bytes]) -> None:
        self.to_producer.append(unpack_header(frame[0]))

    def credit_arrives(self) -> None:
        if self.to_producer:
            self.producer.receive(ME, self.to_producer.popleft())

    def frame_arrives(self) -> None:
        if self.to_consumer:
            self.consumer.deliver(*self.to_consumer.popleft())

    def poll(self) -> list[Element]:
        element = self.consumer.poll()
        if isinstance(element, list):
            self.held -= cost_of(pack_plain(element))
        return [] if element is None else [element]


@given(
    window=st.integers(1, 20_000),
    sizes=st.lists(st.integers(0, 30_000), max_size=30),
    chance=st.randoms(use_true_random=False),
)
def test_batches_of_any_size_go_through_a_window_of_any_size_in_order(
    window: int, sizes: list[int], chance: random.Random
) -> None:
    ends = TwoEnds(window)
    sent: list[Element] = [element for n, size in enumerate(sizes) for element in ([bytes(size)], Watermark(n))]
    left, received = deque(sent), list[Element]()

    def send() -> None:
        if left and ends.producer.is_available():
            ends.producer.send(left.popleft())

    def poll() -> None:
        received.extend(ends.poll())

    moves = [send, ends.credit_arrives, ends.frame_arrives, poll]
    for _ in range(chance.randrange(200)):
        chance.choice(moves)()
    for _ in range(len(sent) * len(moves) + 1):
        for move in moves:
            move()
    assert received == sent
    assert ends.most < grown(window, ends.largest) + ends.largest or not sizes


def test_less_than_a_window_and_one_batch_is_under_way() -> None:
    ends = TwoEnds(10 * FRAME_BYTES)
    ends.credit_arrives()
    for _ in range(50):
        ends.producer.send([bytes(FRAME_BYTES)])
    assert len(ends.to_consumer) == 5


def test_a_batch_larger_than_the_window_travels_alone_until_the_window_has_grown() -> None:
    ends = TwoEnds(FRAME_BYTES)
    ends.credit_arrives()
    for _ in range(10):
        ends.producer.send([bytes(50_000)])
    assert len(ends.to_consumer) == 1
    ends.frame_arrives()
    ends.poll()
    ends.credit_arrives()
    assert len(ends.to_consumer) == WINDOW_BATCHES


def test_the_window_grows_only_so_far() -> None:
    ends = TwoEnds(MAX_WINDOW_BYTES // 2, max_payload_bytes=MAX_WINDOW_BYTES)
    ends.credit_arrives()
    for _ in range(10):
        ends.producer.send([bytes(MAX_WINDOW_BYTES // 2)])
    for _ in range(3):
        ends.frame_arrives()
        ends.poll()
        ends.credit_arrives()
    assert len(ends.to_consumer) == 2


class Line:
    """To one producing TaskManager."""

    def __init__(self, connection: ProducerConnection) -> None:
        self.connection, self.is_closed = connection, False

    def send(self, frame: tuple[bytes]) -> None: ...

    def close(self) -> None:
        self.is_closed = True


@pytest.mark.parametrize("frame", [b"nonsense", pack_header(Header(FrameKind.NOT_UNDERSTOOD, ChannelId(0), 0))])
def test_a_connection_that_is_given_up_is_closed_so_that_its_producer_notices(frame: bytes) -> None:
    lines: list[Line] = []

    def connect(_endpoint: str, connection: ProducerConnection) -> Line:
        lines.append(Line(connection))
        return lines[-1]

    channels = InputChannels(connect, DataPlaneStats())
    channel = channels.open(CHANNEL, "tcp://there", lambda: None, 1000)
    lines[0].connection.on_frame([frame])
    assert lines[0].is_closed
    with pytest.raises(ChannelBroken, match=r"could not read|cannot be read"):
        channel.poll()
    channels.open(CHANNEL, "tcp://there", lambda: None, 1000)
    assert [line.is_closed for line in lines] == [True, False]


@pytest.mark.parametrize("frame", [b"nonsense", None], ids=["not read", "lost"])
def test_a_consumer_that_is_lost_before_its_producer_comes_keeps_that_waiting_for_nothing(frame: bytes | None) -> None:
    channels = OutputChannels(lambda *_: None, DataPlaneStats(), ChannelLimits())
    channels.take(ME, [pack_header(Header(FrameKind.OPEN, CHANNEL, 0, COST))])
    if frame is None:
        channels.lose(ME, "the connection broke")
    else:
        channels.take(ME, [frame])
    producer = channels.open(CHANNEL, lambda: None)
    with pytest.raises(ChannelBroken):
        producer.send([1])
