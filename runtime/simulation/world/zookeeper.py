"""SimulatedZooKeeper: sessions that expire, a queue of candidates, and records that only the first of it may write.

The ensemble itself answers always, and everybody sees the same. Faults are between it and a process: the process
dies, stands still, or is cut off, and then a write may be done though nobody hears the answer. An operation is
one of the process's, so a process may die or freeze in the middle of it, before and after it took effect.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ....messages import LeaderSessionId
from ....state.errors import LostLeadership
from ...high_availability.errors import NotReachable
from ...high_availability.leader import Leader
from ...high_availability.term import LOOKS, Term
from .world import Process, World


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
        self._leader: SimulatedLeadership | None = None
        self._terms = 0
        self._chance = world.chance("zookeeper")

    @property
    def is_free(self) -> bool:
        """Whether the next candidate would lead."""
        leader = self._leader
        return leader is None or leader.is_given_up or self.world.now_ms - leader.heard_ms > self.session_timeout_ms

    @property
    def leader(self) -> Leader | None:
        """For whoever looks for it."""
        return None if self._leader is None or self.is_free else self._leader.published

    def lead(self, process: Process) -> SimulatedLeadership:
        """This process wins; nobody else leads."""
        assert self.is_free, "somebody leads"
        self._terms += 1
        self._leader = SimulatedLeadership(self, process, self._terms)
        return self._leader

    def is_session(self, of: SimulatedLeadership) -> bool:
        """Whether this leader's session lives, as far as it is known here."""
        return self._leader is of and not self.is_free

    def takes_effect_unheard(self) -> bool:
        """Of a write whose answer is lost."""
        return self._chance.random() < 0.5


class SimulatedLeadership:
    """From `lead`."""

    def __init__(self, zookeeper: SimulatedZooKeeper, process: Process, number: int) -> None:
        self._zookeeper = zookeeper
        self._process = process
        self.heard_ms = zookeeper.world.now_ms
        self.is_given_up = False
        self.published: Leader | None = None
        clock, timeout_s = process.clock, zookeeper.session_timeout_ms / 1000
        session = LeaderSessionId(f"{number}-{process.name}")
        self._term = Term(session, timeout_s, clock.now_ms() / 1000, lambda: clock.now_ms() / 1000, self._look)
        self._beat_ms = zookeeper.session_timeout_ms / LOOKS
        process.loop.call_later(self._beat_ms / 1000, self._beat)

    @property
    def session(self) -> LeaderSessionId:
        return self._term.session

    @property
    def is_sure(self) -> bool:
        return self._term.is_sure

    def publish(self, address: str) -> None:
        self._term.check()
        self.published = Leader(address, self.session)

    def on_lost(self, callback: Callable[[str], None]) -> None:
        self._term.on_lost(callback)

    def resign(self) -> None:
        self._term.end()
        self.is_given_up = True

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

    def _operate(self, what: str, name: str, do: Callable[[], object]) -> None:
        """One transaction. A way that is cut off ends the term: the real one repeats it until then."""

        def change() -> None:
            do()
            self._process.world.trace.add(self._process.name, "record", what, name)

        self._term.check()
        self._process.operate()
        if self._process in self._zookeeper.cut_off:
            if self._zookeeper.is_session(self) and self._zookeeper.takes_effect_unheard():
                change()
            self._term.lose("ZooKeeper does not answer")
        elif self._zookeeper.is_session(self):
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
        if self._process in self._zookeeper.cut_off:
            raise NotReachable("cut off")
        if not self._zookeeper.is_session(self):
            raise LostLeadership(self.session)
        self.heard_ms = self._zookeeper.world.now_ms
        return self._process.clock.now_ms() / 1000
