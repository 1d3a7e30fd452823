"""Network: what partitions, frozen processes and slow links do to its connections, and what they spare."""

from __future__ import annotations

import pytest

from .connection import Ear, Two, is_prefix


@pytest.fixture
def two() -> Two:
    return Two()


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
