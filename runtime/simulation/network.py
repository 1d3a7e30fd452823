"""Network: connections between simulated processes, with latency, and with all that can go wrong on real ones.

Within one direction of a connection order is kept, and loss takes a suffix, as with ZeroMQ over TCP; nothing here can
drop a frame from the middle. A connection breaks when one of its ends dies or closes, when it is cut, or when its
ends hear nothing of each other for the heartbeat timeout, be it that a link is blocked or that one of them is frozen.
What is under way on a blocked link arrives when the link opens again, if the connection has survived until then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .frame_text import FrameText
from .wires import Listener
from .world import Process, World

Frame = Sequence[bytes]
Accept = Callable[["End"], Listener]
Arrival = Callable[[], None]


@dataclass(frozen=True, slots=True)
class NetworkOptions:
    """What an undisturbed network is like."""

    min_latency_ms: float = 0.1
    max_latency_ms: float = 3.0
    connect_timeout_ms: float = 3_000.0
    heartbeat_timeout_ms: float = 2_000.0


class Link:
    """One direction between two processes, whatever connections use it."""

    def __init__(self) -> None:
        self.extra_latency_ms = 0.0
        self.bytes_per_ms: float | None = None
        self.blocks = 0
        """By how many faults it is blocked just now."""


class End:
    """One end of one connection, as its process holds it."""

    other: End
    listener: Listener | None

    def __init__(self, network: Network, process: Process, peer: Process, listener: Listener | None) -> None:
        self.process = process
        self.peer = peer
        self.listener = listener
        self.is_open = True
        self.held: list[tuple[Arrival, int]] = []
        """Sent into a blocked link: what happens when it arrives, and its size in bytes."""
        self.is_connected = False
        self.sent_early: list[Frame] = []
        """Sent before the other side had accepted."""
        self.arrives_ms = 0.0
        """When the last frame that was sent from here arrives."""
        self.lost_from_ms: float | None = None
        """What would arrive at this end later than this does not."""
        self._network = network

    def send(self, parts: Frame) -> None:
        """Raises ProcessKilled when the process is dead."""
        self.process.operate()
        if self.is_open:
            frame = [bytes(part) for part in parts]
            if not self.is_connected:
                self.sent_early.append(frame)
            self._network.transmit(self, frame)

    def unsent(self) -> list[bytes]:
        """The first parts of the frames that never left, because the connection never came to be."""
        return [frame[0] for frame in self.sent_early] if not self.is_connected else []

    def close(self) -> None:
        if self.is_open:
            self.is_open = False
            self._network.closed(self)

    def deliver(self, parts: Frame) -> None:
        """On behalf of this end's process: a frame has come."""
        if self.is_open and self.listener is not None:
            self.process.world.trace.add(self.process.name, "received", FrameText(self.peer.name, parts))
            self.listener.on_frame(parts)

    def lose(self, reason: str) -> None:
        """On behalf of this end's process: nothing comes any more."""
        if self.is_open:
            self.is_open = False
            if self.listener is not None:
                self.listener.on_lost(reason)


class Network:
    """All connections of one world."""

    def __init__(self, world: World, options: NetworkOptions = NetworkOptions()) -> None:
        self._world = world
        self._options = options
        self._chance = world.chance("network")
        self._listening: dict[str, tuple[Process, Accept]] = {}
        self._links: dict[tuple[str, str], Link] = {}
        self._ends: dict[str, list[End]] = {}
        """Both ends of every connection that may live, by the name of the process."""

    def of(self, process: Process) -> ProcessNetwork:
        """The network as one process sees it."""
        self._ends[process.name] = []
        process.when_ended(lambda reason: self._process_ended(process, reason))
        return ProcessNetwork(self, process)

    # ---- for processes

    def listen(self, process: Process, endpoint: str, accept: Accept) -> None:
        assert endpoint not in self._listening, f"{endpoint} is in use"
        self._listening[endpoint] = (process, accept)

    def connect(self, process: Process, endpoint: str, listener: Listener) -> End:
        found = self._listening.get(endpoint)
        peer = found[0] if found is not None else self._nobody(endpoint)
        near, far = End(self, process, peer, listener), End(self, peer, process, None)
        near.other, far.other = far, near
        if found is None or not peer.is_alive:
            self._world.after(self._options.connect_timeout_ms, process, near.lose, "it cannot be reached")
            return near
        self._ends[process.name].append(near)
        self._ends[peer.name].append(far)
        if self._is_silent(near):
            self._expect_silence_to_end(near, self._options.connect_timeout_ms)
        accept = found[1]
        self._send(near, lambda: self._accept(far, accept))
        return near

    def transmit(self, end: End, parts: Frame) -> None:
        self._send(end, lambda: end.other.deliver(parts), sum(map(len, parts)))

    def closed(self, end: End) -> None:
        """An end was closed by its process; what it sent before still arrives."""
        self._forget(end)
        self._send(end, lambda: end.other.lose("the other end closed it"))

    # ---- faults

    def link(self, source: str, target: str) -> Link:
        """The direction from one process to another, by their names; there need not be any yet."""
        return self._links.setdefault((source, target), Link())

    def block(self, source: str, target: str) -> None:
        """Nothing gets through in this direction, until `unblock`."""
        self.link(source, target).blocks += 1
        self._expect_silence_between(source, target)

    def unblock(self, source: str, target: str) -> None:
        link = self.link(source, target)
        link.blocks -= 1
        if link.blocks == 0:
            for end in self._ends.get(source, []):
                if end.peer.name == target:
                    self._release(end)

    def slow(self, source: str, target: str, extra_ms: float, bytes_per_ms: float) -> Callable[[], None]:
        """Make a direction slow; returns what makes it as it was."""
        link = self.link(source, target)
        link.extra_latency_ms += extra_ms
        before, link.bytes_per_ms = link.bytes_per_ms, bytes_per_ms

        def undo() -> None:
            link.extra_latency_ms -= extra_ms
            link.bytes_per_ms = before

        return undo

    def cut(self, one: str, other: str) -> int:
        """Break all connections between two processes now; what was under way is lost from some point on."""
        ends = [end for end in self._ends.get(one, []) if end.peer.name == other]
        for end in ends:
            self._break(end, "the connection broke")
        return len(ends)

    def froze(self, process: Process) -> None:
        """A process stands still: its peers will miss its heartbeats."""
        for end in list(self._ends.get(process.name, [])):
            self._expect_silence_to_end(end, self._options.heartbeat_timeout_ms)

    # ---- inside

    def _nobody(self, endpoint: str) -> Process:
        process = Process(self._world, f"nobody at {endpoint}")
        process.is_alive = False
        return process

    def _accept(self, far: End, accept: Accept) -> None:
        if far.is_open:
            far.is_connected = far.other.is_connected = True
            far.other.sent_early.clear()
            far.listener = accept(far)

    def _send(self, end: End, arrive: Arrival, size_bytes: int = 0) -> None:
        """Have `arrive` called on behalf of the other end's process, in order with all else that is sent from here."""
        link = self.link(end.process.name, end.peer.name)
        if link.blocks:
            end.held.append((arrive, size_bytes))
            return
        options = self._options
        latency_ms = self._chance.uniform(options.min_latency_ms, options.max_latency_ms) + link.extra_latency_ms
        if link.bytes_per_ms is not None:
            latency_ms += size_bytes / link.bytes_per_ms
        end.arrives_ms = max(end.arrives_ms, self._world.now_ms + latency_ms)
        self._world.at(end.arrives_ms, end.peer, self._arrived, end.other, end.arrives_ms, arrive)

    def _arrived(self, end: End, when_ms: float, arrive: Arrival) -> None:
        """On behalf of the end's process, which may have been frozen when it came."""
        if end.lost_from_ms is None or when_ms <= end.lost_from_ms:
            arrive()

    def _release(self, end: End) -> None:
        held, end.held = end.held, []
        for arrive, size_bytes in held:
            self._send(end, arrive, size_bytes)

    def _is_silent(self, end: End) -> bool:
        """Whether the two ends hear nothing of each other at the moment; either direction is enough."""
        near, far = end.process, end.peer
        return (
            near.is_frozen
            or far.is_frozen
            or self.link(near.name, far.name).blocks > 0
            or self.link(far.name, near.name).blocks > 0
        )

    def _expect_silence_between(self, one: str, other: str) -> None:
        for end in list(self._ends.get(one, [])):
            if end.peer.name == other:
                self._expect_silence_to_end(end, self._options.heartbeat_timeout_ms)

    def _expect_silence_to_end(self, end: End, within_ms: float) -> None:
        self._world.after(within_ms, None, self._still_silent, end)

    def _still_silent(self, end: End) -> None:
        if (end.is_open or end.other.is_open) and self._is_silent(end):
            self._break(end, "nothing was heard for the heartbeat timeout")

    def _break(self, end: End, reason: str) -> None:
        """Both ends lose the connection; each has received some part of what was under way, and nothing after it."""
        for one in (end, end.other):
            self._forget(one)
            one.held.clear()
            now_ms = self._world.now_ms
            one.lost_from_ms = now_ms + self._chance.uniform(0, self._options.max_latency_ms)
            self._world.at(one.lost_from_ms, one.process, one.lose, reason)

    def _process_ended(self, process: Process, reason: str) -> None:
        for end in self._ends.pop(process.name, []):
            end.is_open = False
            self._break_after_death(end)
        self._listening = {endpoint: found for endpoint, found in self._listening.items() if found[0] is not process}

    def _break_after_death(self, dead: End) -> None:
        """The operating system resets a dead process's connections, if it can reach the other side."""
        other = dead.other
        if not other.is_open:
            return
        other.lost_from_ms = self._world.now_ms + self._chance.uniform(0, 2 * self._options.max_latency_ms)
        delay_ms = self._options.heartbeat_timeout_ms if self._is_silent(dead) else 0.0
        self._world.at(other.lost_from_ms + delay_ms, other.process, other.lose, "the connection broke")
        self._forget(other)

    def _forget(self, end: End) -> None:
        ends = self._ends.get(end.process.name)
        if ends is not None and end in ends:
            ends.remove(end)


class ProcessNetwork:
    """The two things that a process can do: listen and connect."""

    def __init__(self, network: Network, process: Process) -> None:
        self._network = network
        self._process = process

    @property
    def process(self) -> Process:
        return self._process

    def listen(self, endpoint: str, accept: Accept) -> None:
        self._network.listen(self._process, endpoint, accept)

    def connect(self, endpoint: str, listener: Listener) -> End:
        self._process.operate()
        return self._network.connect(self._process, endpoint, listener)
