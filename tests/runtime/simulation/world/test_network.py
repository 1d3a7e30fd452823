"""Network: what a connection promises, and how it can end.

Facts about real connections of ZeroMQ over TCP: runtime/system/remote/zmq_transport.py and runtime/transport/.
"""

from __future__ import annotations

import pytest

from understudy.runtime.simulation.world.network import NetworkOptions, ProcessNetwork
from understudy.runtime.simulation.world.world import ProcessKilled

from .connection import Ear, Two, is_prefix


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
