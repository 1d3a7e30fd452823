"""The data plane under failure: lost peers, strangers at the port, frames out of place, and its own end."""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import zmq

from understudy.actors.errors import ChannelBroken
from understudy.actors.flow.elements import EndOfPartition
from understudy.messages import ChannelId, pack_plain
from understudy.runtime.system import CurveKeys
from understudy.runtime.transport import ZmqDataPlane, router
from understudy.runtime.transport.frames import FrameKind, Header, pack_header, unpack_header

from .ends import CLUSTER, Waker, descriptor, eventually, ipc_planes, open_channel, raised_by, tcp_planes

Planes = tuple[ZmqDataPlane, ZmqDataPlane]


@pytest.fixture
def planes() -> Iterator[Planes]:
    with tcp_planes() as both:
        yield both


@pytest.fixture
def context() -> Iterator[zmq.Context[zmq.Socket[bytes]]]:
    with zmq.Context() as context:
        yield context


def frame(kind: FrameKind, channel: int, sequence: int, first: int = 0) -> bytes:
    return pack_header(Header(kind, ChannelId(channel), sequence, first))


def raw_consumer(context: zmq.Context[zmq.Socket[bytes]], plane: ZmqDataPlane) -> zmq.Socket[bytes]:
    """A DEALER that holds the cluster's key and says what it likes."""
    dealer = context.socket(zmq.DEALER)
    dealer.linger = 0
    dealer.rcvtimeo = 30_000
    CLUSTER.secure_client(dealer)
    dealer.connect(plane.endpoint)
    return dealer


def raw_producer(context: zmq.Context[zmq.Socket[bytes]]) -> zmq.Socket[bytes]:
    """A bound ROUTER that holds the cluster's key and says what it likes."""
    router = context.socket(zmq.ROUTER)
    router.linger = 0
    router.rcvtimeo = 30_000
    CLUSTER.secure_server(router)
    router.setsockopt(zmq.ZAP_ENFORCE_DOMAIN, 0)
    router.bind("tcp://127.0.0.1:0")
    return router


def next_element(dealer: zmq.Socket[bytes]) -> Header:
    """The next frame that is not a PING."""
    while True:
        header = unpack_header(dealer.recv_multipart()[0])
        if header.kind is not FrameKind.PING:
            return header


class TestFramesOutOfPlace:
    def test_a_gap_in_the_credit_breaks_that_channel_and_no_other(
        self, planes: Planes, context: zmq.Context[zmq.Socket[bytes]]
    ) -> None:
        plane, _ = planes
        bad, good = (plane.open_output(descriptor(n, plane.endpoint), Waker()) for n in (1, 2))
        dealer = raw_consumer(context, plane)
        for data in (frame(FrameKind.OPEN, 1, 0, 8), frame(FrameKind.OPEN, 2, 0, 8), frame(FrameKind.CREDIT, 1, 2, 1)):
            dealer.send(data)
        assert next_element(dealer).kind is FrameKind.ABORT
        assert "frame 2" in str(raised_by(lambda: bad.send([1]), ChannelBroken))
        good.send([1])
        header = next_element(dealer)
        assert (header.channel_id, header.sequence) == (2, 0)

    @pytest.mark.parametrize("sequence", [0, 2], ids=["duplicate", "gap"])
    def test_a_batch_out_of_place_breaks_that_channel_and_no_other(
        self, planes: Planes, context: zmq.Context[zmq.Socket[bytes]], sequence: int
    ) -> None:
        _, plane = planes
        router = raw_producer(context)
        endpoint = router.get_string(zmq.LAST_ENDPOINT)
        woken = Waker(), Waker()
        bad, good = (plane.open_input(descriptor(n, endpoint), woken[n - 1]) for n in (1, 2))
        consumer = router.recv_multipart()[0]
        batch = pack_plain([7])
        router.send_multipart((consumer, frame(FrameKind.RECORDS, 1, 0), batch))
        router.send_multipart((consumer, frame(FrameKind.RECORDS, 1, sequence), batch))
        router.send_multipart((consumer, frame(FrameKind.RECORDS, 2, 0), batch))
        woken[1].wait()
        assert good.poll() == [7]
        assert bad.poll() == [7]
        with pytest.raises(ChannelBroken, match=f"frame {sequence}"):
            bad.poll()

    @pytest.mark.parametrize("last", [(b"",), (b"garbage",), (b"\1" * 34,), (b"a", b"b", b"c")])
    def test_a_last_frame_that_cannot_be_read_breaks_what_waits_for_it(
        self, planes: Planes, context: zmq.Context[zmq.Socket[bytes]], last: tuple[bytes, ...]
    ) -> None:
        _, plane = planes
        router, waker = raw_producer(context), Waker()
        endpoint = router.get_string(zmq.LAST_ENDPOINT)
        channel = plane.open_input(descriptor(1, endpoint), waker)
        consumer = router.recv_multipart()[0]
        router.send_multipart((consumer, frame(FrameKind.RECORDS, 1, 0), pack_plain([7])))
        router.send_multipart((consumer, *last))
        waker.wait()
        assert channel.poll() == [7]
        error = raised_by(channel.poll, ChannelBroken)
        assert f"at {endpoint} sent a frame that cannot be read: " in str(error)
        plane.open_input(descriptor(2, endpoint), Waker())
        assert router.recv_multipart()[0] != consumer, "a new channel has a new connection"

    @pytest.mark.parametrize("last", [(b"",), (b"garbage",), (b"\1" * 34,), (b"a", b"b")])
    def test_credit_that_cannot_be_read_breaks_what_waits_for_it(
        self, planes: Planes, context: zmq.Context[zmq.Socket[bytes]], last: tuple[bytes, ...]
    ) -> None:
        plane, _ = planes
        waker, dealer = Waker(), raw_consumer(context, plane)
        bad, good = plane.open_output(descriptor(1, plane.endpoint), waker), open_channel(*planes, 2)
        dealer.send(frame(FrameKind.OPEN, 1, 0, 1))
        bad.send([1])
        bad.send([2])
        assert next_element(dealer).kind is FrameKind.RECORDS
        waker.event.clear()
        dealer.send_multipart(last)
        waker.wait()
        assert "sent a frame that cannot be read: " in str(raised_by(lambda: bad.send([3]), ChannelBroken))
        assert next_element(dealer).kind is FrameKind.NOT_UNDERSTOOD
        good.output.send([1])
        assert good.take(1) == [[1]]

    def test_a_consumer_that_is_not_understood_waits_for_nothing(
        self, planes: Planes, context: zmq.Context[zmq.Socket[bytes]]
    ) -> None:
        _, plane = planes
        router, waker = raw_producer(context), Waker()
        channel = plane.open_input(descriptor(1, router.get_string(zmq.LAST_ENDPOINT)), waker)
        router.send_multipart((router.recv_multipart()[0], frame(FrameKind.NOT_UNDERSTOOD, 0, 0)))
        waker.wait()
        assert "could not read a frame of this one" in str(raised_by(channel.poll, ChannelBroken))

    def test_what_is_not_understood_is_counted(self, planes: Planes, context: zmq.Context[zmq.Socket[bytes]]) -> None:
        plane, consumer = planes
        dealer = raw_consumer(context, plane)
        for parts in ((b"",), (b"garbage",), (os.urandom(34),), (frame(FrameKind.OPEN, 1, 0, 8), b"payload")):
            dealer.send_multipart(parts)
        dealer.send(frame(FrameKind.CREDIT, 99, 5, 1))
        eventually(lambda: plane.stats.frames_malformed == 4 and plane.stats.frames_dropped == 1)
        assert_works(plane, consumer)

    def test_a_second_consumer_is_turned_away(self, planes: Planes, context: zmq.Context[zmq.Socket[bytes]]) -> None:
        ends = open_channel(*planes, 1)
        ends.output.send([1])
        ends.take(1)
        dealer = raw_consumer(context, planes[0])
        dealer.send(frame(FrameKind.OPEN, 1, 0, 8))
        assert next_element(dealer).kind is FrameKind.ABORT
        ends.output.send([2])
        assert ends.take(1) == [[2]]


class TestEarlyConsumers:
    def test_credit_that_comes_before_the_producer_is_kept(self, planes: Planes) -> None:
        producer, consumer = planes
        woken = Waker()
        described = descriptor(1, producer.endpoint)
        input_ = consumer.open_input(described, woken)
        eventually(lambda: producer.stats.frames_received == 1)
        producer.open_output(described, Waker()).send([1])
        woken.wait()
        assert input_.poll() == [1]

    def test_too_many_of_them_break_the_oldest(self) -> None:
        with ZmqDataPlane(curve=CLUSTER, max_early_channels=2) as producer, ZmqDataPlane(curve=CLUSTER) as consumer:
            inputs = [consumer.open_input(descriptor(n, producer.endpoint), Waker()) for n in range(3)]
            raised_by(inputs[0].poll, ChannelBroken)
            assert producer.stats.channels_given_up == 1
            producer.open_output(descriptor(1, producer.endpoint), Waker()).send([1])
            eventually(lambda: inputs[1].poll() == [1])

    def test_a_channel_is_opened_once(self, planes: Planes) -> None:
        open_channel(*planes, 1)
        with pytest.raises(ValueError, match="open already"):
            open_channel(*planes, 1)


CHILD = """
import sys
from understudy.messages import ChannelDescriptor
from understudy.runtime.system import CurveKeys
from understudy.runtime.transport import ZmqDataPlane

plane = ZmqDataPlane(curve=CurveKeys(sys.argv[1].encode(), sys.argv[2].encode()))
plane.start()
def described(channel_id, endpoint):
    return ChannelDescriptor(channel_id, 0, 0, 0, "tm-0", "tm-1", endpoint)
output = plane.open_output(described(1, plane.endpoint), lambda: None)
output.send([1])
print(plane.endpoint, flush=True)
input = plane.open_input(described(2, sys.stdin.readline().strip()), lambda: None)
while input.poll() is None:
    pass
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def child() -> Iterator[subprocess.Popen[str]]:
    """A process with a data plane: channel 1 comes from it, channel 2 goes to it."""
    command = [sys.executable, "-c", CHILD, CLUSTER.public.decode(), CLUSTER.secret.decode()]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


@pytest.mark.chaos
@pytest.mark.parametrize("fate", [signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP])
def test_a_peer_that_is_killed_or_frozen_breaks_the_channels_in_both_directions(
    child: subprocess.Popen[str], fate: signal.Signals
) -> None:
    assert child.stdin is not None
    assert child.stdout is not None
    with ZmqDataPlane(curve=CLUSTER, heartbeat_timeout_ms=2_000) as plane:
        output = plane.open_output(descriptor(2, plane.endpoint), Waker())
        output.send([2])
        woken = Waker()
        input_ = plane.open_input(descriptor(1, child.stdout.readline().strip()), woken)
        child.stdin.write(plane.endpoint + "\n")
        child.stdin.flush()
        assert child.stdout.readline() == "ready\n"
        woken.wait()
        child.send_signal(fate)
        assert input_.poll() == [1]
        raised_by(input_.poll, ChannelBroken)
        eventually(lambda: plane.stats.connections_lost == 2)
        with pytest.raises(ChannelBroken, match="lost"):
            output.send([3])
        output.send(EndOfPartition())


class TestLostPeers:
    def test_an_endpoint_where_nobody_listens_breaks_the_channel(self, planes: Planes) -> None:
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            endpoint = f"tcp://127.0.0.1:{unused.getsockname()[1]}"
            input_ = planes[1].open_input(descriptor(1, endpoint), Waker())
            raised_by(input_.poll, ChannelBroken)

    @pytest.mark.parametrize("endpoint", ["tcp://", "tcp://127.0.0.1:x", "nonsense", "quic://127.0.0.1:1"])
    def test_an_impossible_endpoint_breaks_the_channel(self, planes: Planes, endpoint: str) -> None:
        input_ = planes[1].open_input(descriptor(1, endpoint), Waker())
        assert "cannot connect" in str(raised_by(input_.poll, ChannelBroken))
        assert_works(*planes)

    def test_a_new_channel_gets_a_new_connection(self, planes: Planes) -> None:
        _, consumer = planes
        with ZmqDataPlane("tcp://127.0.0.1:0", CLUSTER) as first:
            endpoint = first.endpoint
            ends = open_channel(first, consumer, 1)
        raised_by(ends.input.poll, ChannelBroken)
        with ZmqDataPlane(endpoint, CLUSTER) as second:
            assert_works(second, consumer)

    def test_a_producer_learns_of_a_closed_consumer_while_it_waits(self, planes: Planes) -> None:
        producer, _ = planes
        with ZmqDataPlane(curve=CLUSTER, window_bytes=1) as consumer:
            ends = open_channel(producer, consumer, 1)
            for n in range(10):
                ends.output.send([n])
            ends.take(1)
            ends.producer.event.clear()
        ends.until_available()
        with pytest.raises(ChannelBroken, match="lost"):
            ends.output.send([4])

    def test_a_connection_that_ends_has_the_consumers_looked_at(
        self, planes: Planes, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Without it, only the look at all consumers every half second would find who is gone."""
        producer, _ = planes
        with ZmqDataPlane(curve=CLUSTER) as consumer:
            ends = open_channel(producer, consumer, 1)
            ends.output.send([1])
            ends.take(1)
            monkeypatch.setattr(router, "_PROBE_EVERY_S", 1e9)
            sent = producer.stats.frames_sent
            eventually(lambda: producer.stats.frames_sent > sent)  # the last look
        raised_by(lambda: ends.output.send([2]), ChannelBroken)

    def test_all_that_was_sent_before_a_close_arrives(self) -> None:
        with ZmqDataPlane(curve=CLUSTER, window_bytes=1_000_000) as consumer:
            with ZmqDataPlane(curve=CLUSTER) as producer:
                described = descriptor(1, producer.endpoint)
                output = producer.open_output(described, Waker())
                woken = Waker()
                input_ = consumer.open_input(described, woken)
                output.send([0])
                woken.wait()
                for n in range(1, 4):
                    output.send([n] * 100_000)
                output.send(EndOfPartition())
                output.close()
            sizes: list[int] = []
            eventually(lambda: _take_size(input_.poll(), sizes))
            assert sizes == [1, 100_000, 100_000, 100_000]


def _take_size(element: object, sizes: list[int]) -> bool:
    if isinstance(element, list):
        sizes.append(len(element))
    return isinstance(element, EndOfPartition)


class TestStrangers:
    @pytest.mark.parametrize(
        "data",
        [
            os.urandom(4096),
            b"GET / HTTP/1.1\r\n\r\n",
            b"\xff\0\0\0\0\0\0\0\x01\x7f",
            b"\xff\0\0\0\0\0\0\0\x01\x7f\x03\x01CURVE" + b"\0" * 48 + b"\x06" + struct.pack("!Q", 2**40),
            b"\xff\0\0\0\0\0\0\0\x01\x7f\x03\x00NULL" + b"\0" * 49 + b"\x04\x26\x05READY" + b"\0" * 32,
        ],
        ids=["random", "http", "truncated", "oversized", "null mechanism"],
    )
    def test_bytes_from_a_stranger_disturb_nothing(self, planes: Planes, data: bytes) -> None:
        plane, _ = planes
        ends = open_channel(*planes, 1)
        ends.output.send([1])
        ends.take(1)
        address = urlsplit(plane.endpoint)
        stranger = socket.create_connection((address.hostname, address.port or 0))
        with stranger, suppress(OSError):  # it may have hung up on us already
            stranger.sendall(data)
            stranger.shutdown(socket.SHUT_WR)
            while stranger.recv(4096):
                pass
        eventually(lambda: plane.stats.connections_ended > 0)
        ends.output.send([2])
        assert ends.take(1) == [[2]]
        assert plane.stats.frames_malformed == plane.stats.connections_lost == 0

    @pytest.mark.parametrize("kind", ["no key", "another cluster's", "the server's with its own"])
    def test_a_peer_without_the_cluster_key_is_refused(
        self, planes: Planes, context: zmq.Context[zmq.Socket[bytes]], kind: str
    ) -> None:
        plane, _ = planes
        dealer = context.socket(zmq.DEALER)
        dealer.linger = 0
        own = CurveKeys.generate()
        if kind != "no key":
            own.secure_client(dealer)
        if kind == "the server's with its own":
            dealer.curve_serverkey = CLUSTER.public
        dealer.connect(plane.endpoint)
        dealer.send(frame(FrameKind.OPEN, 1, 0, 8))
        eventually(lambda: plane.stats.connections_ended > 0)
        assert_works(*planes)
        assert plane.stats.frames_malformed == 0

    def test_a_consumer_with_another_key_fails_by_name(self, planes: Planes) -> None:
        producer, _ = planes
        with ZmqDataPlane(curve=CurveKeys.generate()) as foreign:
            input_ = foreign.open_input(descriptor(1, producer.endpoint), Waker())
            raised_by(input_.poll, ChannelBroken)

    def test_tcp_without_keys_is_refused(self, planes: Planes) -> None:
        with pytest.raises(ValueError, match="CURVE keys"):
            ZmqDataPlane().start()
        with (
            tempfile.TemporaryDirectory() as folder,
            ipc_planes(Path(folder)) as (plane, _),
            pytest.raises(ValueError, match="CURVE keys"),
        ):
            plane.open_input(descriptor(1, planes[0].endpoint), Waker())

    def test_ipc_in_a_folder_open_to_others_is_refused(self, tmp_path: Path) -> None:
        tmp_path.chmod(0o755)
        with pytest.raises(ValueError, match="0700"):
            ZmqDataPlane(f"ipc://{tmp_path}/a").start()


class TestItsLife:
    def test_nothing_exists_before_the_start(self) -> None:
        plane = ZmqDataPlane(curve=CLUSTER)
        with pytest.raises(RuntimeError, match="not been started"):
            _ = plane.endpoint
        plane.close()

    def test_the_close_leaves_no_thread_and_no_descriptor_behind(self) -> None:
        def leftovers() -> tuple[set[int | None], int]:
            return {thread.ident for thread in threading.enumerate()}, len(os.listdir("/proc/self/fd"))

        with tcp_planes() as planes:  # what libraries keep for ever, they keep from the first time on
            assert_works(*planes)
        before = leftovers()
        with tcp_planes() as planes:
            assert_works(*planes)
        with pytest.raises(ValueError, match="CURVE keys"):
            ZmqDataPlane().start()
        assert leftovers() == before

    def test_the_close_breaks_its_channels_and_wakes_their_tasks(self) -> None:
        with ZmqDataPlane(curve=CLUSTER) as plane, ZmqDataPlane(curve=CLUSTER) as other:
            out, in_ = open_channel(plane, other, 1), open_channel(other, plane, 2)
            plane.close()
            out.producer.wait()
            in_.consumer.wait()
            with pytest.raises(ChannelBroken, match="closed"):
                out.output.send([1])
            with pytest.raises(ChannelBroken, match="closed"):
                in_.input.poll()
            with pytest.raises(ChannelBroken, match="closed"):
                plane.open_output(descriptor(3, plane.endpoint), Waker())
            with pytest.raises(ChannelBroken, match="closed"):
                plane.open_input(descriptor(3, other.endpoint), Waker())
            plane.close()

    def test_a_second_start_is_refused(self) -> None:
        with ZmqDataPlane(curve=CLUSTER) as plane, pytest.raises(RuntimeError, match="already"):
            plane.start()


def assert_works(producer: ZmqDataPlane, consumer: ZmqDataPlane) -> None:
    ends = open_channel(producer, consumer, 1000)
    ends.output.send([1])
    assert ends.take(1) == [[1]]
