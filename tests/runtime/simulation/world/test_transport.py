"""SimulatedTransport under Remoting's contract: what was sent, what was not, and who is lost. See zmq_transport.py."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

import pytest

from understudy.runtime.simulation.world.network import Network
from understudy.runtime.simulation.world.transport import SimulatedTransport, control_address
from understudy.runtime.simulation.world.world import Process, World


class Inbox:
    """A receiver that remembers."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.lost: list[tuple[str, str, list[bytes]]] = []

    def on_frame(self, peer: str, frame: bytes) -> None:
        self.frames.append(frame)

    def on_peer_lost(self, peer: str, reason: str, unsent: Sequence[bytes], *, is_refused: bool = False) -> None:
        self.lost.append((peer, reason, list(unsent)))


class Host:
    def __init__(self, world: World, network: Network, name: str) -> None:
        self.process = world.process(name)
        self.inbox = Inbox()
        self.transport = SimulatedTransport(network.of(self.process))
        run(self.process, self.transport.open(self.inbox))


def run(process: Process, coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    tasks: list[asyncio.Task[Any]] = []
    process.loop.call_soon(lambda: tasks.append(process.loop.create_task(coroutine)))
    process.world.run_for(0)  # type: ignore[attr-defined]
    return tasks[0]


@pytest.fixture
def world() -> World:
    return World(seed=2)


@pytest.fixture
def network(world: World) -> Network:
    return Network(world)


@pytest.fixture
def hosts(world: World, network: Network) -> tuple[Host, Host]:
    return Host(world, network, "one"), Host(world, network, "other")


def test_frames_arrive_in_order(world: World, hosts: tuple[Host, Host]) -> None:
    one, other = hosts
    for number in range(100):
        assert one.transport.send(other.transport.address, b"%d" % number)
        world.run_for(0.1)
    world.run_for(100)
    assert other.inbox.frames == [b"%d" % number for number in range(100)]


def test_both_directions_are_connections_of_their_own(world: World, hosts: tuple[Host, Host]) -> None:
    one, other = hosts
    one.transport.send(other.transport.address, b"there")
    other.transport.send(one.transport.address, b"back")
    world.run_for(100)
    assert (one.inbox.frames, other.inbox.frames) == ([b"back"], [b"there"])


def test_a_peer_that_cannot_be_reached_is_lost_with_what_was_not_sent(world: World, hosts: tuple[Host, Host]) -> None:
    one, _ = hosts
    nobody = control_address("nobody")
    for frame in (b"a", b"b"):
        assert one.transport.send(nobody, frame)
    world.run_for(5_000)
    assert one.inbox.lost == [(nobody, "it cannot be reached", [b"a", b"b"])]


def test_a_connection_that_breaks_does_not_say_what_has_arrived(world: World, hosts: tuple[Host, Host]) -> None:
    one, other = hosts
    one.transport.send(other.transport.address, b"a")
    world.run_for(100)
    other.process.kill("SIGKILL")
    one.transport.send(other.transport.address, b"b")
    world.run_for(100)
    assert one.inbox.lost == [(other.transport.address, "the connection broke", [])]


def test_the_next_send_makes_a_new_connection(world: World, network: Network, hosts: tuple[Host, Host]) -> None:
    one, other = hosts
    one.transport.send(other.transport.address, b"a")
    world.run_for(100)
    network.cut(one.process, other.process)
    world.run_for(100)
    one.transport.send(other.transport.address, b"b")
    world.run_for(100)
    assert other.inbox.frames == [b"a", b"b"]
    assert len(one.inbox.lost) == 1


def test_only_the_sender_hears_of_a_loss(world: World, network: Network, hosts: tuple[Host, Host]) -> None:
    """A ROUTER does not tell whose connection is gone."""
    one, other = hosts
    one.transport.send(other.transport.address, b"a")
    world.run_for(100)
    network.cut(one.process, other.process)
    world.run_for(100)
    assert other.inbox.lost == []


def test_before_open_and_after_close_nothing_is_sent(world: World, network: Network, hosts: tuple[Host, Host]) -> None:
    one, other = hosts
    unopened = SimulatedTransport(network.of(world.process("third")))
    assert not unopened.send(one.transport.address, b"x")
    run(one.process, one.transport.close(500))
    world.run_for(600)
    assert not one.transport.send(other.transport.address, b"x")


def test_what_was_sent_just_before_the_close_arrives(world: World, hosts: tuple[Host, Host]) -> None:
    one, other = hosts
    assert one.transport.send(other.transport.address, b"last words")
    closing = run(one.process, one.transport.close(500))
    world.run_for(100)
    assert closing.done()
    assert other.inbox.frames == [b"last words"]


def test_a_close_does_not_wait_for_the_unreachable_for_long(world: World, hosts: tuple[Host, Host]) -> None:
    one, _ = hosts
    one.transport.send(control_address("nobody"), b"x")
    closing = run(one.process, one.transport.close(500))
    world.run_for(499)
    assert not closing.done()
    world.run_for(2)
    assert closing.done()


def test_a_peer_whose_connection_was_lost_may_be_sent_to_from_within_the_notice(
    world: World, hosts: tuple[Host, Host]
) -> None:
    one, _ = hosts
    nobody = control_address("nobody")

    def again(peer: str, reason: str, unsent: Sequence[bytes], *, is_refused: bool = False) -> None:
        one.inbox.lost.append((peer, reason, list(unsent)))
        if len(one.inbox.lost) < 3:
            one.transport.send(peer, b"again")

    one.transport._receiver = one.inbox
    one.inbox.on_peer_lost = again  # type: ignore[method-assign]
    one.transport.send(nobody, b"first")
    world.run_for(20_000)
    assert [unsent for _, _, unsent in one.inbox.lost] == [[b"first"], [b"again"], [b"again"]]
