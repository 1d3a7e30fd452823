"""One connection of the simulated network between two processes, and its listeners, for the tests of the network."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from understudy.runtime.simulation.world.network import End, Network, NetworkOptions
from understudy.runtime.simulation.world.world import Process, World

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
