"""SimulatedZooKeeper: sessions that expire, a queue of candidates, watches, and records that only the leader may write.

The ensemble itself answers always, and everybody sees the same. Faults are between it and a process: the process
dies, stands still, or is cut off, and then a write may be done though nobody hears the answer. An operation is
one of the process's, so a process may die or freeze in the middle of it, before and after it took effect.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from ....messages import LeaderSessionId
from ....state.errors import LostLeadership
from ...high_availability.errors import NotReachable
from ...high_availability.leader import Leader
from ...high_availability.leader_node import leader_bytes
from ...high_availability.listeners import HeardLeader, Listeners
from ...high_availability.nodes import CANDIDATE, Place, Watch, place_in_queue, who_leads
from ...high_availability.term import LOOKS, Term, TermLeadership
from .world import Process, World

LEADER = "/leader"
WATCH_MS = (0.2, 5.0)
"""How long the word of a watch is on its way."""
_AGAIN_MS = 100.0


class SimulatedZooKeeper:
    """One for all processes of a world."""

    def __init__(self, world: World, session_timeout_ms: float) -> None:
        self.world = world
        self.session_timeout_ms = session_timeout_ms
        self.records: dict[str, bytes] = {}
        self.cut_off: set[Process] = set()
        """They reach nobody here."""
        self.refused = 0
        """How many writes of leaders were refused whose session had ended."""
        self.nodes: dict[str, tuple[SimulatedSession, bytes]] = {}
        """The ephemeral ones, by path, with their owners and their data."""
        self._watches: dict[tuple[str, bool], list[tuple[SimulatedSession, Watch]]] = {}
        """By path, and whether they are for its children."""
        self._count = 0
        self._chance = world.chance("zookeeper")

    @property
    def is_free(self) -> bool:
        """Whether nobody stands in the queue."""
        return not self.nodes

    def stand(self, process: Process) -> SimulatedCandidate:
        """This process queues up."""
        return SimulatedCandidate(self, process)

    def listen(self, process: Process) -> SimulatedRetrieval:
        """This process wants to know who leads."""
        return SimulatedRetrieval(self, process)

    def takes_effect_unheard(self) -> bool:
        """Of a write whose answer is lost."""
        return self._chance.random() < 0.5

    # -- nodes

    def create(self, session: SimulatedSession, folder: str, prefix: str) -> str:
        """An ephemeral node with a number that none has had; returns its name."""
        name = f"{prefix}{self._count:010}"
        self._count += 1
        self.nodes[f"{folder}/{name}"] = session, b""
        self._changed(folder, f"{folder}/{name}")
        return name

    def set(self, path: str, data: bytes) -> None:
        """Of a node that is there."""
        self.nodes[path] = self.nodes[path][0], data
        self._changed("", path)

    def end(self, session: SimulatedSession) -> None:
        """Its nodes go, and its watches."""
        for path in [path for path, (owner, _) in self.nodes.items() if owner is session]:
            del self.nodes[path]
            self._changed(path.rpartition("/")[0], path)

    def watch(self, session: SimulatedSession, path: str, watch: Watch | None, *, children: bool) -> None:
        if watch is not None:
            self._watches.setdefault((path, children), []).append((session, watch))

    def _changed(self, folder: str, path: str) -> None:
        """The node, and what lies in the folder; each watch is good for one word."""
        for session, watch in self._watches.pop((path, False), []) + self._watches.pop((folder, True), []):
            self.world.after(self._chance.uniform(*WATCH_MS), session.process, self._say, session, watch)

    def _say(self, session: SimulatedSession, watch: Watch) -> None:
        """To a session that is over nothing is said; to one that is cut off, when it is back."""
        if session.process in self.cut_off and not session.is_over:
            self.world.after(_AGAIN_MS, session.process, self._say, session, watch)
        elif not session.is_over:
            watch()


class SimulatedSession:
    """One process's, from now on: it lives as long as its process says so often enough. Its Nodes, too."""

    def __init__(self, zookeeper: SimulatedZooKeeper, process: Process) -> None:
        self.zookeeper, self.process = zookeeper, process
        self.heard_ms = zookeeper.world.now_ms
        self.is_over = False
        self._beat_ms = zookeeper.session_timeout_ms / LOOKS
        process.loop.call_later(self._beat_ms / 1000, self._beat)
        self._expire()

    @property
    def is_cut_off(self) -> bool:
        return self.process in self.zookeeper.cut_off

    def end(self) -> None:
        """It was given up, or has expired."""
        if not self.is_over:
            self.is_over = True
            self.zookeeper.end(self)

    def reach(self) -> SimulatedZooKeeper:
        """Raises NotReachable, also for one that is over."""
        if self.is_cut_off or self.is_over:
            raise NotReachable("cut off" if self.is_cut_off else "the session has ended")
        return self.zookeeper

    def _beat(self) -> None:
        if self.is_over:
            return
        if not self.is_cut_off:
            self.heard_ms = self.zookeeper.world.now_ms
        self.process.loop.call_later(self._beat_ms / 1000, self._beat)

    def _expire(self) -> None:
        silent_ms = self.zookeeper.world.now_ms - self.heard_ms
        if silent_ms >= self.zookeeper.session_timeout_ms:
            self.end()
        elif not self.is_over:
            left_ms = max(1.0, self.zookeeper.session_timeout_ms - silent_ms)
            self.zookeeper.world.after(left_ms, None, self._expire)

    # -- Nodes

    def children(self, path: str, watch: Watch | None = None) -> list[str]:
        zookeeper = self.reach()
        zookeeper.watch(self, path, watch, children=True)
        return [each.rpartition("/")[2] for each in zookeeper.nodes if each.rpartition("/")[0] == path]

    def is_there(self, path: str, watch: Watch | None = None) -> bool:
        zookeeper = self.reach()
        zookeeper.watch(self, path, watch, children=False)
        return path in zookeeper.nodes

    def read(self, path: str, watch: Watch | None = None) -> bytes | None:
        zookeeper = self.reach()
        if path not in zookeeper.nodes:
            return None
        zookeeper.watch(self, path, watch, children=False)
        return zookeeper.nodes[path][1]


class SimulatedCandidate:
    """From `stand`. It looks where it stands when it is woken by its watch, as in reality."""

    def __init__(self, zookeeper: SimulatedZooKeeper, process: Process) -> None:
        self.process = process
        self.session = SimulatedSession(zookeeper, process)
        self.leads = False
        self.node = zookeeper.create(self.session, LEADER, CANDIDATE)
        self._look()

    def _look(self) -> None:
        """One that is cut off looks again later; one whose session has ended is no candidate any more."""
        if self.leads or self.session.is_over:
            return
        try:
            place = place_in_queue(self.session, LEADER, self.node, self._look)
        except NotReachable:
            self.process.loop.call_later(_AGAIN_MS / 1000, self._look)
            return
        if place is Place.FIRST:
            self.leads = True


class SimulatedRetrieval(HeardLeader):
    """From `listen`: a LeaderRetrieval, woken by its watches."""

    def __init__(self, zookeeper: SimulatedZooKeeper, process: Process) -> None:
        self._session = SimulatedSession(zookeeper, process)
        self._listeners = Listeners()
        self._look()

    def close(self) -> None:
        self._listeners.close()
        self._session.end()

    def _look(self) -> None:
        if self._session.is_over:
            return
        try:
            self._listeners.heard(who_leads(self._session, LEADER, self._look_again))
        except NotReachable:
            self._session.process.loop.call_later(_AGAIN_MS / 1000, self._look)

    def _look_again(self) -> None:
        self._session.process.loop.call_soon(self._look)


class SimulatedLeadership(TermLeadership):
    """Of a candidate that leads."""

    def __init__(self, zookeeper: SimulatedZooKeeper, candidate: SimulatedCandidate) -> None:
        self._zookeeper = zookeeper
        self._candidate = candidate
        self._process = process = candidate.process
        clock, timeout_s = process.clock, zookeeper.session_timeout_ms / 1000
        number = int(candidate.node.removeprefix(CANDIDATE)) + 1
        session = LeaderSessionId(f"{number}-{process.name}")
        self._term = Term(session, timeout_s, clock.now_ms() / 1000, lambda: clock.now_ms() / 1000, self._look)
        self._beat_ms = zookeeper.session_timeout_ms / LOOKS
        process.loop.call_later(self._beat_ms / 1000, self._beat)

    def publish(self, address: str) -> None:
        data = leader_bytes(Leader(address, self.session))
        path = f"{LEADER}/{self._candidate.node}"
        self._operate("says where it is", address, partial(self._zookeeper.set, path, data))

    def resign(self) -> None:
        self._term.end()
        self._candidate.session.end()

    # -- records

    def read(self) -> Mapping[str, bytes]:
        self._term.check()
        return dict(self._zookeeper.records)

    def write(self, name: str, data: bytes) -> None:
        self._operate("writes", name, lambda: self._zookeeper.records.update({name: data}))

    def remove(self, name: str) -> None:
        self._operate("removes", name, lambda: self._zookeeper.records.pop(name, None))

    def place(self, name: str) -> str:
        return f"the simulated ZooKeeper's jobs/{name}"

    # -- inside

    @property
    def is_session(self) -> bool:
        """Whether its session lives, as far as that is known in ZooKeeper: the check of each transaction."""
        return not self._candidate.session.is_over

    def _operate(self, what: str, name: str, do: Callable[[], object]) -> None:
        """One transaction. A way that is cut off ends the term: the real one repeats it until then."""

        def change() -> None:
            do()
            self._process.world.trace.add(self._process.name, "record", what, name)

        self._term.check()
        self._process.operate()
        if self._candidate.session.is_cut_off:
            if self.is_session and self._zookeeper.takes_effect_unheard():
                change()
            self._term.lose("ZooKeeper does not answer")
        elif self.is_session:
            change()
            self._process.operate()
            return
        else:
            self._zookeeper.refused += 1
            self._term.lose("its session with ZooKeeper has ended")
        raise LostLeadership(self.session)

    def _beat(self) -> None:
        try:
            self._term.check()
            self._term.renew(self._look())
        except LostLeadership:
            self._term.lose("its session with ZooKeeper has ended")
            return
        except NotReachable:
            pass
        self._process.loop.call_later(self._beat_ms / 1000, self._beat)

    def _look(self) -> float:
        if self._candidate.session.is_cut_off:
            raise NotReachable("cut off")
        if not self.is_session:
            raise LostLeadership(self.session)
        self._candidate.session.heard_ms = self._zookeeper.world.now_ms
        return self._process.clock.now_ms() / 1000
