"""Network: what a connection promises, and how it can end.

Facts about real connections are from ZeroMQ over TCP: see runtime/system/zmq_transport.py and runtime/transport/.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from understudy.runtime.simulation.world.network import End, Network, NetworkOptions, ProcessNetwork
from understudy.runtime.simulation.world.world import Process, ProcessKilled, World

OPTIONS = NetworkOptions(connect_timeout_ms=3_000, heartbeat_timeout_ms=2_000, data_timeout_ms=10_000)


class Ear:
    """A listener that remembers."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.heard: list[bytes] = []
        self.lost: list[str] = []
        self.lost_ms = 0.0
        self.end: End
        self.answer: Callable[[bytes], None] = lambda _: None

    def on_frame(self, parts: Sequence[bytes]) -> None:
        assert not self.lost, "a frame after the loss"
        self.heard.append(parts[0])
        self.answer(parts[0])

    def on_lost(self, reason: str) -> None:
        self.lost.append(reason)
        self.lost_ms = self.world.now_ms


class Two:
    """A client's and a server's process, and the ears of one connection."""

    def __init__(self, seed: int = 0, options: NetworkOptions = OPTIONS) -> None:
        self.world = World(seed)
        self.network = Network(self.world, options)
        self.client, self.server = self.world.process("client"), self.world.process("server")
        self.of_client, self.of_server = self.network.of(self.client), self.network.of(self.server)
        self.far: list[Ear] = []
        self.of_server.listen("server:1", self._accept)
        self.near = Ear(self.world)

    def _accept(self, end: End) -> Ear:
        ear = Ear(self.world)
        ear.end = end
        self.far.append(ear)
        return ear

    def connect(self) -> End:
        self.near = Ear(self.world)
        self.near.end = self.of_client.connect("server:1", self.near)
        return self.near.end

    def connected(self) -> End:
        end = self.connect()
        self.world.run_for(20)
        assert end.is_connected
        return end

    def send(self, count: int, every_ms: float = 0.0, first: int = 0) -> None:
        """Numbered frames from the client, on behalf of its process."""
        for number in range(first, first + count):
            self.world.after(every_ms * (number - first), self.client, self.near.end.send, (b"%d" % number,))

    def freeze(self, process: Process, at_ms: float, for_ms: float) -> None:
        self.world.after(at_ms, None, process.freeze)
        self.world.after(at_ms + for_ms, None, process.thaw)

    @property
    def numbers(self) -> list[int]:
        return [int(frame) for frame in self.far[0].heard]


def is_prefix(numbers: Sequence[int]) -> bool:
    return list(numbers) == list(range(len(numbers)))


@pytest.fixture
def two() -> Two:
    return Two()


class TestUndisturbed:
    def test_frames_arrive_in_order_each_once(self, two: Two) -> None:
        two.connected()
        two.send(200, every_ms=0.2)
        two.world.run_for(1_000)
        assert two.numbers == list(range(200))

    def test_both_directions_work(self, two: Two) -> None:
        end = two.connected()
        two.far[0].answer = lambda frame: two.far[0].end.send((b"re " + frame,))
        end.send((b"hello",))
        two.world.run_for(20)
        assert two.near.heard == [b"re hello"]

    def test_a_frame_takes_as_long_as_the_options_say(self) -> None:
        arrived = []
        for seed in range(50):
            two = Two(seed, NetworkOptions(min_latency_ms=5, max_latency_ms=6))
            end = two.connected()
            before = two.world.now_ms
            end.send((b"x",))
            two.world.run_until(lambda two=two: bool(two.far[0].heard), 1_000)
            arrived.append(two.world.now_ms - before)
        assert 5 <= min(arrived) < max(arrived) <= 6

    def test_what_is_sent_early_waits_for_the_handshake_and_comes_first(self, two: Two) -> None:
        end = two.connect()
        for number in range(3):
            end.send((b"%d" % number,))
        assert end.unsent() == [b"0", b"1", b"2"]
        two.world.run_for(20)
        assert end.unsent() == []
        end.send((b"3",))
        two.world.run_for(20)
        assert two.numbers == [0, 1, 2, 3]

    def test_a_view_of_a_buffer_is_sent_as_it_is_now(self, two: Two) -> None:
        end, buffer = two.connected(), bytearray(b"now")
        end.send((memoryview(buffer),))
        buffer[:] = b"xxx"
        two.world.run_for(20)
        assert two.far[0].heard == [b"now"]

    def test_an_end_that_is_closed_lets_what_was_sent_arrive_and_tells_the_other(self, two: Two) -> None:
        two.connected()
        two.send(50)
        two.world.after(0, two.client, two.near.end.close)
        two.world.run_for(50)
        assert two.numbers == list(range(50))
        assert two.far[0].lost == ["the other end closed it"]
        assert two.near.lost == []

    def test_a_closed_end_hears_and_sends_nothing(self, two: Two) -> None:
        end = two.connected()
        two.far[0].end.send((b"under way",))
        end.close()
        end.send((b"too late",))
        two.world.run_for(50)
        assert two.near.heard == two.far[0].heard == []

    def test_two_connections_are_two(self, two: Two) -> None:
        first, second = two.connected(), two.connected()
        first.close()
        second.send((b"0",))
        two.world.run_for(50)
        assert [ear.heard for ear in two.far] == [[], [b"0"]]

    def test_an_endpoint_has_one_listener_while_that_lives(self, two: Two) -> None:
        with pytest.raises(OSError, match="in use"):
            two.of_client.listen("server:1", two._accept)
        two.server.kill("SIGKILL")
        two.of_client.listen("server:1", two._accept)

    def test_no_end_is_kept_account_of_for_longer_than_it_lives(self, two: Two) -> None:
        """In a long history there are many connections."""
        for number in range(60):
            two.connected()
            match number % 4:
                case 0:
                    two.near.end.close()
                case 1:
                    two.far[-1].end.close()
                case 2:
                    two.network.cut(two.client, two.server)
                case 3:
                    two.of_client.connect("nobody:1", Ear(two.world)).close()
                    two.near.end.close()
            two.world.run_for(100)
        assert two.network.open_ends == 0
        two.connected()
        assert two.network.open_ends == 2
        two.server.kill("SIGKILL")
        two.world.run_for(100)
        assert two.network.open_ends == 0


class TestConnecting:
    def test_where_nobody_listens_takes_until_the_timeout(self, two: Two) -> None:
        ear = Ear(two.world)
        end = two.of_client.connect("nobody:1", ear)
        end.send((b"unsent",))
        two.world.run_for(2_999)
        assert ear.lost == []
        two.world.run_for(1)
        assert ear.lost == ["it cannot be reached"]
        assert end.unsent() == [b"unsent"]

    def test_succeeds_when_somebody_listens_in_time(self, two: Two) -> None:
        """ZeroMQ tries again and again."""
        late = two.world.process("late")
        ear = Ear(two.world)
        end = two.of_client.connect("late:1", ear)
        end.send((b"0",))
        two.world.after(1_500, late, two.network.of(late).listen, "late:1", two._accept)
        two.world.run_for(2_000)
        assert two.numbers == [0]
        assert ear.lost == []

    def test_of_a_data_plane_fails_at_once_where_nobody_listens(self, two: Two) -> None:
        ear = Ear(two.world)
        two.network.data_of(two.client).connect("nobody:1", ear)
        two.world.run_for(20)
        assert ear.lost == ["nobody answers there"]

    def test_of_a_data_plane_takes_its_time_where_nothing_comes_back(self, two: Two) -> None:
        two.server.kill("SIGKILL")
        two.network.block("server", "client")
        ear = Ear(two.world)
        two.network.data_of(two.client).connect("server:1", ear)
        two.world.run_for(9_999)
        assert ear.lost == []
        two.world.run_for(1)
        assert ear.lost == ["it cannot be reached"]

    @pytest.mark.parametrize("direction", [("client", "server"), ("server", "client")])
    def test_needs_both_directions(self, two: Two, direction: tuple[str, str]) -> None:
        two.network.block(*direction)
        end = two.connect()
        end.send((b"0",))
        two.world.run_for(4_000)
        assert two.near.lost == ["it cannot be reached"]
        assert end.unsent() == [b"0"]
        two.network.unblock(*direction)
        two.world.run_for(1_000)
        assert all(ear.heard == [] for ear in two.far)  # what was reported as unsent never arrives

    def test_to_a_frozen_process_succeeds_when_it_thaws_in_time(self, two: Two) -> None:
        two.freeze(two.server, at_ms=0, for_ms=1_000)
        two.world.run_for(1)
        two.connect().send((b"0",))
        two.world.run_for(1_100)
        assert two.numbers == [0]

    def test_to_a_frozen_process_fails_and_nothing_arrives_when_it_thaws_too_late(self, two: Two) -> None:
        two.freeze(two.server, at_ms=0, for_ms=5_000)
        two.world.run_for(1)
        end = two.connect()
        end.send((b"0",))
        two.world.run_for(6_000)
        assert two.near.lost == ["it cannot be reached"]
        assert end.unsent() == [b"0"]
        assert all(ear.heard == [] and ear.lost for ear in two.far)


class TestDeath:
    def test_of_the_receiver_is_noticed_by_the_sender(self, two: Two) -> None:
        two.connected()
        two.server.kill("SIGKILL")
        two.world.run_for(50)
        assert two.near.lost == ["the connection broke"]
        assert two.near.end.unsent() == []  # they have left, and nobody knows how far they came

    def test_of_the_sender_loses_a_suffix(self) -> None:
        lengths = set()
        for seed in range(60):
            two = Two(seed)
            two.connected()
            two.send(20, every_ms=0.1)
            two.world.after(2.05, None, two.client.kill, "SIGKILL")
            two.world.run_for(100)
            assert is_prefix(two.numbers)
            assert two.far[0].lost == ["the connection broke"]
            lengths.add(len(two.numbers))
        assert 20 in lengths
        assert min(lengths) < 15

    def test_ends_all_sending(self, two: Two) -> None:
        end = two.connected()
        two.client.kill("SIGKILL")
        with pytest.raises(ProcessKilled):
            end.send((b"from beyond",))
        with pytest.raises(ProcessKilled):
            two.of_client.connect("server:1", Ear(two.world))
        with pytest.raises(ProcessKilled):
            two.of_client.listen("client:1", two._accept)
        end.close()
        two.world.run_for(50)
        assert two.far[0].heard == []

    def test_behind_a_blocked_link_is_noticed_by_the_silence(self, two: Two) -> None:
        two.connected()
        two.network.block("server", "client")
        two.server.kill("SIGKILL")
        two.world.run_for(1_900)
        assert two.near.lost == []
        two.world.run_for(800)
        assert two.near.lost == ["nothing was heard for the heartbeat timeout"]

    def test_of_a_frozen_process_is_noticed_at_once(self, two: Two) -> None:
        """The operating system closes its connections, whatever state it was in."""
        two.connected()
        two.server.freeze()
        two.server.kill("SIGKILL")
        two.world.run_for(50)
        assert two.near.lost == ["the connection broke"]

    def test_before_it_could_accept_is_noticed(self, two: Two) -> None:
        two.connect().send((b"0",))
        two.server.kill("SIGKILL")
        two.world.run_for(50)
        assert len(two.near.lost) == 1
        assert two.near.end.unsent() == [b"0"]


class TestCut:
    def test_both_ends_hear_of_it_once_after_a_prefix_of_what_was_under_way(self) -> None:
        lengths = set()
        for seed in range(40):
            two = Two(seed)
            two.connected()
            two.send(30, every_ms=0.1)
            two.world.after(2.05, None, two.network.cut, two.client, two.server)
            two.world.run_for(100)
            assert is_prefix(two.numbers)
            assert two.near.lost == two.far[0].lost == ["the connection broke"]
            lengths.add(len(two.numbers))
        assert len(lengths) > 5

    def test_leaves_others_alone_and_new_connections_possible(self, two: Two) -> None:
        third = two.world.process("third")
        of_third, ear = two.network.of(third), Ear(two.world)
        other = of_third.connect("server:1", ear)
        two.connected()
        assert two.network.cut(two.client, two.server) == 1
        two.world.run_for(20)
        other.send((b"still there",))
        two.connect().send((b"again",))
        two.world.run_for(20)
        assert ear.lost == []
        assert [each.heard for each in two.far] == [[b"still there"], [], [b"again"]]

    def test_finds_nothing_where_there_is_nothing(self, two: Two) -> None:
        assert two.network.cut(two.client, two.server) == 0


class TestPartition:
    def test_a_short_one_delays_everything_and_loses_nothing(self, two: Two) -> None:
        """TCP sends again."""
        two.connected()
        two.network.block("client", "server")
        two.network.block("server", "client")
        two.send(20, every_ms=10)
        two.world.run_for(1_000)
        assert two.numbers == []
        two.network.unblock("client", "server")
        two.network.unblock("server", "client")
        two.world.run_for(3_000)
        assert two.numbers == list(range(20))
        assert two.near.lost == two.far[0].lost == []

    def test_a_long_one_both_ends_notice_by_themselves(self, two: Two) -> None:
        two.connected()
        two.network.block("client", "server")
        two.network.block("server", "client")
        two.world.run_for(2_600)
        assert two.near.lost == two.far[0].lost == ["nothing was heard for the heartbeat timeout"]

    @pytest.mark.parametrize("direction", [("client", "server"), ("server", "client")])
    def test_a_half_open_one_is_noticed_by_who_hears_nothing_and_told_to_the_other(
        self, two: Two, direction: tuple[str, str]
    ) -> None:
        two.connected()
        two.network.block(*direction)
        two.world.run_for(2_600)
        deaf, other = (two.far[0], two.near) if direction[1] == "server" else (two.near, two.far[0])
        assert deaf.lost == ["nothing was heard for the heartbeat timeout"]
        assert other.lost == ["the connection broke"]
        assert deaf.lost_ms <= other.lost_ms

    def test_a_half_open_one_still_lets_the_other_direction_through(self, two: Two) -> None:
        two.connected()
        two.network.block("server", "client")
        two.send(5)
        two.world.run_for(100)
        assert two.numbers == [0, 1, 2, 3, 4]

    def test_two_at_once_must_both_be_over(self, two: Two) -> None:
        two.connected()
        two.network.block("client", "server")
        two.network.block("client", "server")
        two.send(1)
        two.network.unblock("client", "server")
        two.world.run_for(100)
        assert two.numbers == []
        two.network.unblock("client", "server")
        two.world.run_for(100)
        assert two.numbers == [0]

    def test_many_short_ones_are_no_long_one(self, two: Two) -> None:
        two.connected()
        for _ in range(10):
            two.network.block("server", "client")
            two.world.run_for(1_500)
            two.network.unblock("server", "client")
            two.world.run_for(10)
        assert two.near.lost == []

    def test_a_close_during_a_short_one_is_told_afterwards(self, two: Two) -> None:
        two.connected()
        two.network.block("client", "server")
        two.send(3)
        two.world.after(1, two.client, two.near.end.close)
        two.world.run_for(500)
        assert two.far[0].lost == []
        two.network.unblock("client", "server")
        two.world.run_for(100)
        assert two.numbers == [0, 1, 2]
        assert two.far[0].lost == ["the other end closed it"]

    def test_what_is_held_for_the_dead_goes_nowhere(self, two: Two) -> None:
        two.connected()
        two.network.block("client", "server")
        two.send(3)
        two.world.run_for(10)
        two.server.kill("SIGKILL")
        two.network.unblock("client", "server")
        two.world.run_for(100)
        assert two.numbers == []

    def test_a_data_connection_survives_for_longer(self, two: Two) -> None:
        of_data = two.network.data_of(two.client)
        ear = Ear(two.world)
        end = of_data.connect("server:1", ear)
        two.world.run_for(50)
        two.network.block("client", "server")
        end.send((b"0",))
        two.world.run_for(8_000)
        two.network.unblock("client", "server")
        two.world.run_for(50)
        assert two.numbers == [0]
        assert ear.lost == []

    def test_is_between_hosts_whoever_lives_there(self, two: Two) -> None:
        """A process that is started again on the same machine is behind the same partition."""
        two.network.block("client", "rack")
        for name in ("first", "second"):
            process = two.world.process(name, host="rack")
            two.network.of(process).listen(f"{name}:1", two._accept)
            ear = Ear(two.world)
            two.of_client.connect(f"{name}:1", ear)
            two.world.run_for(4_000)
            assert ear.lost == ["it cannot be reached"]
            process.kill("SIGKILL")


class TestFreezing:
    def test_for_a_short_time_delays_what_comes(self, two: Two) -> None:
        two.connected()
        two.freeze(two.server, at_ms=0, for_ms=1_500)
        two.send(20, every_ms=50)
        two.world.run_for(1_499)
        assert two.numbers == []
        two.world.run_for(10)
        assert two.numbers == list(range(20))
        two.world.run_for(3_000)
        assert two.near.lost == two.far[0].lost == []

    def test_for_a_long_time_is_missed_heartbeats_to_the_other(self, two: Two) -> None:
        two.connected()
        two.freeze(two.server, at_ms=0, for_ms=5_000)
        two.world.run_for(2_600)
        assert two.near.lost == ["nothing was heard for the heartbeat timeout"]
        assert two.far[0].lost == []

    def test_that_thaws_after_the_loss_hears_a_prefix_and_then_of_the_loss(self) -> None:
        """What the kernel had taken for it is there; and nothing of the next connection comes before."""
        lengths = set()
        for seed in range(40):
            two = Two(seed)
            two.connected()
            two.freeze(two.server, at_ms=0, for_ms=5_000)
            two.send(20, every_ms=50)
            two.world.run_for(6_000)
            assert is_prefix(two.numbers)
            assert two.far[0].lost == ["the connection broke"]
            lengths.add(len(two.numbers))
        assert 20 in lengths
        assert min(lengths) < 20

    def test_of_the_sender_is_noticed_by_the_receiver(self, two: Two) -> None:
        two.connected()
        two.freeze(two.client, at_ms=0, for_ms=5_000)
        two.world.run_for(2_600)
        assert two.far[0].lost == ["nothing was heard for the heartbeat timeout"]
        two.world.run_for(3_000)
        assert two.near.lost == ["the connection broke"]

    def test_in_the_middle_of_a_send_counts_too(self, two: Two) -> None:
        two.connected()
        two.client.freeze_after(2, for_ms=5_000)
        two.world.after(0, two.client, lambda: [two.near.end.send((b"%d" % number,)) for number in range(3)])
        two.world.run_for(10)
        assert two.numbers == [0]
        assert two.far[0].lost == ["nothing was heard for the heartbeat timeout"]


class TestSlowness:
    def test_adds_to_the_latency_and_keeps_the_order(self, two: Two) -> None:
        two.connected()
        undo = two.network.slow("client", "server", 500, 1_000)
        two.send(10)
        two.world.run_for(400)
        undo()
        two.send(10, first=10)
        two.world.run_for(90)
        assert two.numbers == []
        two.world.run_for(100)
        assert two.numbers == list(range(20))

    def test_lets_large_frames_take_turns_on_the_wire(self, two: Two) -> None:
        end = two.connected()
        two.network.slow("client", "server", 0, bytes_per_ms=100)
        for number in range(5):
            end.send((b"%d" % number, bytes(10_000)))
        two.world.run_for(350)
        assert two.numbers == [0, 1, 2]
        two.world.run_for(200)
        assert two.numbers == [0, 1, 2, 3, 4]

    def test_of_two_faults_ends_with_the_last_in_whatever_order_they_end(self, two: Two) -> None:
        end = two.connected()
        first = two.network.slow("client", "server", 50, 10)
        second = two.network.slow("client", "server", 70, 5)
        first()
        end.send((b"0", bytes(500)))
        two.world.run_for(150)
        assert two.numbers == []
        second()
        two.world.run_for(100)
        end.send((b"1", bytes(500)))
        two.world.run_for(10)
        assert two.numbers == [0, 1]


class TestAccepting:
    def test_on_behalf_of_whom_things_happen(self, two: Two) -> None:
        seen: list[object] = []
        two.connected()
        two.far[0].answer = lambda _: seen.append(two.world.current)
        two.near.end.send((b"x",))
        two.world.run_for(20)
        assert seen == [two.server]

    def test_of_one_process_there_may_be_several_views(self, two: Two) -> None:
        """An actor system's and a data plane's; neither makes the other forget its connections."""
        two.connected()
        assert isinstance(two.network.data_of(two.client), ProcessNetwork)
        assert two.network.cut(two.client, two.server) == 1
