"""Network: connections between simulated processes, with latency, and with all that can go wrong on real ones.

Within one direction of a connection order is kept, and loss takes a suffix, as with ZeroMQ over TCP; nothing here can
drop a frame from the middle. A connection breaks when one of its ends dies or closes, when it is cut, or when an end
receives nothing for its heartbeat timeout, since a link is blocked or the other process is frozen; the other end
notices that as soon as the link lets it. What is under way on a blocked link arrives when the link opens again, if
somebody is still there for it. Links are between hosts: a process that is started again on the same one inherits them.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass

from .connection import Arrival, End, Frame, Link, Patience, Slowdown
from .process import Event
from .wires import Listener
from .world import Process, World

__all__ = ["End", "Link", "Network", "NetworkOptions", "ProcessNetwork"]

Accept = Callable[[End], Listener]

_TRY_AGAIN_MS = 100.0


@dataclass(frozen=True, slots=True)
class NetworkOptions:
    """The latencies of an undisturbed network, and the timeouts of the two kinds of connections on it."""

    min_latency_ms: float = 0.1
    max_latency_ms: float = 3.0
    connect_timeout_ms: float = 3_000.0
    heartbeat_timeout_ms: float = 2_000.0
    """Both of control connections, between actor systems."""
    data_timeout_ms: float = 10_000.0
    """Either of data connections, between TaskManagers."""


class Network:
    """All connections of one world."""

    def __init__(self, world: World, options: NetworkOptions = NetworkOptions()) -> None:
        self._world = world
        self._options = options
        self._control = Patience(options.connect_timeout_ms, options.heartbeat_timeout_ms, tries_again=True)
        self._data = Patience(options.data_timeout_ms, options.data_timeout_ms, tries_again=False)
        self._chance = world.chance("network")
        self._listening: dict[str, tuple[Process, Accept]] = {}
        """Also by those who are dead: their hosts say so."""
        self._links: dict[tuple[str, str], Link] = {}
        self._ends: dict[Process, dict[End, None]] = {}
        """The ends of connections that are open or about to be, of each living process."""

    def of(self, process: Process) -> ProcessNetwork:
        """The network as a process's actor system sees it."""
        return self._of(process, self._control)

    def data_of(self, process: Process) -> ProcessNetwork:
        """The network as a process's data plane sees it."""
        return self._of(process, self._data)

    def _of(self, process: Process, patience: Patience) -> ProcessNetwork:
        if process not in self._ends:
            self._ends[process] = {}
            process.when_ended(lambda _: self._process_ended(process))
            process.when_frozen(lambda: self._process_frozen(process))
        return ProcessNetwork(self, process, patience)

    @property
    def open_ends(self) -> int:
        """How many ends are kept account of."""
        return sum(map(len, self._ends.values()))

    # ---- for processes

    def listen(self, process: Process, endpoint: str, accept: Accept) -> None:
        found = self._listening.get(endpoint)
        if found is not None and found[0].is_alive:
            raise OSError(errno.EADDRINUSE, f"{endpoint} is in use")
        self._listening[endpoint] = (process, accept)

    def connect(self, process: Process, endpoint: str, listener: Listener, patience: Patience) -> End:
        near = End(self, process, patience, listener)
        self._ends[process][near] = None
        near.deadline = self._world.after(patience.connect_timeout_ms, process, self._give_up, near)
        self._try(near, endpoint)
        return near

    def transmit(self, end: End, parts: Frame) -> None:
        other = _other(end)
        self._send(end, lambda when_ms: other.deliver(parts, when_ms), sum(map(len, parts)))

    def closed(self, end: End) -> None:
        """An end was closed by its process; what it sent before still arrives."""
        if end.deadline is not None:
            end.deadline.cancel()
        self._hang_up(end, "the other end closed it")

    def forget(self, end: End) -> None:
        self._ends.get(end.process, {}).pop(end, None)

    # ---- faults

    def link(self, source: str, target: str) -> Link:
        """The direction from one host to another; there need not be any of these yet."""
        found = self._links.get((source, target))
        if found is None:
            found = self._links[source, target] = Link()
        return found

    def is_cut_off(self, one: Process, other: Process) -> bool:
        """Whether nothing gets from one to the other, or nothing back."""
        return self.link(one.host, other.host).blocks + self.link(other.host, one.host).blocks > 0

    def block(self, source: str, target: str) -> None:
        """Nothing gets through in this direction, until `unblock`."""
        link = self.link(source, target)
        link.blocks += 1
        if link.blocks == 1:
            link.blocked_since_ms = self._world.now_ms
            for end in self._all_ends():
                if end.process.host == source and end.other is not None and end.other.process.host == target:
                    self._watch_for_silence(end.other)

    def unblock(self, source: str, target: str) -> None:
        link = self.link(source, target)
        link.blocks -= 1
        if link.blocks == 0:
            held, link.held = link.held, []
            for end, arrive, size_bytes in held:
                self._send(end, arrive, size_bytes)

    def slow(self, source: str, target: str, extra_ms: float, bytes_per_ms: float) -> Callable[[], None]:
        """Make a direction slow; returns what makes it as it was."""
        link, slowdown = self.link(source, target), Slowdown(extra_ms, bytes_per_ms)
        link.slowdowns.append(slowdown)
        return lambda: link.slowdowns.remove(slowdown)

    def cut(self, one: Process, other: Process) -> int:
        """Break all connections between two processes now; messages under way are lost from some point on."""
        ends = [end for end in self._ends.get(one, ()) if end.other is not None and end.other.process is other]
        for end in ends:
            for each in (end, _other(end)):
                self._lose_suffix(each, 0.0)
                when_ms = each.lost_from_ms or 0.0
                self._world.schedule(Event(each.process, each.lose, ("the connection broke",), when_ms, lane=each))
        return len(ends)

    # ---- inside: connecting

    def _try(self, near: End, endpoint: str) -> None:
        """On behalf of its process."""
        if not near.is_open:
            return
        found = self._listening.get(endpoint)
        if found is not None and found[0].is_alive:
            peer, accept = found
            far = End(self, peer, near.patience, None)
            near.other, far.other = far, near
            self._ends[peer][far] = None
            self._send(near, lambda _: self._accept(far, accept))
        elif near.patience.tries_again:
            self._world.after(_TRY_AGAIN_MS, near.process, self._try, near, endpoint)
        elif found is None or not self.is_cut_off(near.process, found[0]):
            self._world.after(2 * self._latency_ms(), near.process, near.lose, "nobody answers there")

    def _accept(self, far: End, accept: Accept) -> None:
        if far.is_open:
            far.connected()
            far.listener = accept(far)
            self._watch_for_silence(far)
            near = _other(far)
            self._send(far, lambda _: self._accepted(near))

    def _accepted(self, near: End) -> None:
        near.connected()
        self._watch_for_silence(near)

    def _give_up(self, near: End) -> None:
        if near.is_open and not near.is_connected:
            self._hang_up(near, "the other end gave up")
            near.lose("it cannot be reached")

    # ---- inside: under way

    def _latency_ms(self) -> float:
        return self._chance.uniform(self._options.min_latency_ms, self._options.max_latency_ms)

    def _send(self, end: End, arrive: Arrival, size_bytes: int = 0) -> None:
        """Have `arrive` called on behalf of the other end's process, in order with all else that is sent from here."""
        other = _other(end)
        link = self.link(end.process.host, other.process.host)
        if link.blocks:
            link.held.append((end, arrive, size_bytes))
            return
        free_ms = max(end.free_ms, self._world.now_ms)
        arrives_ms = free_ms
        if link.slowdowns:
            free_ms += link.transfer_ms(size_bytes)
            arrives_ms = free_ms + link.extra_latency_ms
        arrives_ms = max(end.arrives_ms, arrives_ms + self._latency_ms())
        end.free_ms, end.arrives_ms = free_ms, arrives_ms
        self._world.schedule(Event(other.process, arrive, (arrives_ms,), arrives_ms, lane=other))

    def _hang_up(self, end: End, reason: str) -> None:
        """It is over for this end; the other one is notified after what was sent before."""
        self.forget(end)
        other = end.other
        if other is not None and other.is_open:
            self._send(end, lambda _: other.lose(reason))

    def _lose_suffix(self, end: End, silent_ms: float) -> None:
        """Of what is under way to this end, some part arrives, and nothing after it."""
        chance, now_ms = self._chance, self._world.now_ms
        end.lost_from_ms = now_ms + chance.uniform(-silent_ms * chance.choice((0, 1)), 2 * self._options.max_latency_ms)
        link = self.link(_other(end).process.host, end.process.host)
        own = [position for position, (sender, *_) in enumerate(link.held) if sender is end.other]
        lost = set(own[chance.randint(0, len(own)) :])
        link.held = [entry for position, entry in enumerate(link.held) if position not in lost]

    # ---- inside: silence and death

    def _all_ends(self) -> list[End]:
        return [end for ends in self._ends.values() for end in ends]

    def _silent_since(self, end: End) -> float | None:
        """Since when this end has received nothing; None when it receives from the other."""
        other = _other(end).process
        link = self.link(other.host, end.process.host)
        since = [link.blocked_since_ms] if link.blocks else []
        if other.is_stopped:
            since.append(other.frozen_since_ms)
        return min(since, default=None)

    def _watch_for_silence(self, end: End) -> None:
        """To be called whenever a silence begins, and when a connection is made."""
        if end.is_open and end.is_connected and (since := self._silent_since(end)) is not None:
            timeout_ms = end.patience.heartbeat_timeout_ms * self._chance.uniform(1.0, 1.25)
            self._world.at(max(since, end.connected_ms) + timeout_ms, end.process, self._still_silent, end)

    def _still_silent(self, end: End) -> None:
        """A heartbeat timeout, on behalf of the end's process."""
        since = self._silent_since(end) if end.is_open else None
        if since is None:
            return
        silent_ms = self._world.now_ms - max(since, end.connected_ms)
        if silent_ms < end.patience.heartbeat_timeout_ms:
            self._watch_for_silence(end)
            return
        self._lose_suffix(_other(end), silent_ms)
        self._hang_up(end, "the connection broke")
        end.lose("nothing was heard for the heartbeat timeout")

    def _process_frozen(self, process: Process) -> None:
        """Its peers will miss its heartbeats."""
        for end in self._ends[process]:
            if end.other is not None:
                self._watch_for_silence(end.other)

    def _process_ended(self, process: Process) -> None:
        """The operating system closes a dead process's connections; what it had not passed on yet is lost."""
        for end in list(self._ends.pop(process)):
            end.is_open = False
            if end.other is not None:
                self._lose_suffix(end.other, 0.0)
                self._hang_up(end, "the connection broke")
        for endpoint, (listening, _) in self._listening.items():
            if listening is process:
                self._listening[endpoint] = (process, _nobody)


class ProcessNetwork:
    """The two things that a process can do: listen and connect."""

    def __init__(self, network: Network, process: Process, patience: Patience) -> None:
        self._network = network
        self._process = process
        self._patience = patience

    @property
    def process(self) -> Process:
        return self._process

    def listen(self, endpoint: str, accept: Accept) -> None:
        self._process.operate()
        self._network.listen(self._process, endpoint, accept)

    def connect(self, endpoint: str, listener: Listener) -> End:
        self._process.operate()
        return self._network.connect(self._process, endpoint, listener, self._patience)


def _other(end: End) -> End:
    assert end.other is not None
    return end.other


def _nobody(_: End) -> Listener:
    raise AssertionError("a dead process accepts no connection")
