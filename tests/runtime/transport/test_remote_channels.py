"""The two remote ends as machines: frames in, frames out, without a socket or a thread."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from understudy.actors.elements import CheckpointBarrier, Element, EndOfData, EndOfPartition
from understudy.actors.errors import ChannelBroken
from understudy.messages import ChannelId, CheckpointId, pack_plain
from understudy.runtime.transport.frames import FrameKind, Header, unpack_header
from understudy.runtime.transport.payloads import Payload
from understudy.runtime.transport.remote_input import RemoteInputChannel
from understudy.runtime.transport.remote_output import Frame, RemoteOutputChannel

CHANNEL = ChannelId(5)
ME, OTHER = b"me", b"other"
BATCH = pack_plain([1])


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

    def hears(self, kind: FrameKind, sequence: int, credit: int = 0, consumer: bytes = ME) -> bool:
        return self.channel.receive(consumer, Header(kind, CHANNEL, sequence, credit))

    def kinds(self) -> list[FrameKind]:
        return [header.kind for header in self.sent]

    def fails(self) -> str:
        with pytest.raises(ChannelBroken) as raised:
            self.channel.send([0])
        return str(raised.value)


class Consumer:
    """A RemoteInputChannel with a credit of four, and all that left it."""

    def __init__(self) -> None:
        self.sent: list[Header] = []
        self.released: list[ChannelId] = []
        self.wakes = 0
        self.channel = RemoteInputChannel(CHANNEL, 4, self._wake, self._transmit, self.released.append)
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
    def test_it_opens_with_its_credit_and_returns_credit_in_halves(self) -> None:
        consumer = Consumer()
        consumer.hears_batches(0, 1, 2, 3)
        assert consumer.polls() == [[1]] * 4
        assert [(header.kind, header.sequence, header.first) for header in consumer.sent] == [
            (FrameKind.OPEN, 0, 4),
            (FrameKind.CREDIT, 1, 2),
            (FrameKind.CREDIT, 2, 2),
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

    def test_more_batches_than_credit_break_the_channel(self) -> None:
        consumer = Consumer()
        consumer.hears_batches(0, 1, 2, 3, 4)
        assert "5 batches came on a credit of 4" in consumer.fails()

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


@pytest.mark.parametrize("credit", [1, 2, 3, 8])
def test_the_two_ends_together_never_have_more_under_way_than_the_credit(credit: int) -> None:
    under_way: list[tuple[Header, Payload | None]] = []
    most = 0
    consumer: RemoteInputChannel
    pending: list[Callable[[], object]] = []

    def to_consumer(_: bytes, frame: Frame) -> None:
        under_way.append((unpack_header(frame[0]), frame[1] if len(frame) == 2 else None))

    def to_producer(frame: tuple[bytes]) -> None:
        pending.append(lambda: producer.receive(ME, unpack_header(frame[0])))

    producer = RemoteOutputChannel(CHANNEL, to_consumer, lambda _: None, 1000)
    consumer = RemoteInputChannel(CHANNEL, credit, lambda: None, to_producer, lambda _: None)
    consumer.open()
    for n in range(50):
        producer.send([n])
    received: list[Element] = []
    while pending:
        pending.pop(0)()
        most = max(most, len(under_way))
        while under_way:
            consumer.deliver(*under_way.pop(0))
            received.extend(iter(consumer.poll, None))
    assert received == [[n] for n in range(50)]
    assert most <= credit
