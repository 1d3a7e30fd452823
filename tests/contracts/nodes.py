"""NodesContract: what every Nodes must do, on a ZooKeeper or on the simulated one, so that who waits is woken."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from understudy.messages import LeaderSessionId
from understudy.runtime.high_availability.leader import Leader
from understudy.runtime.high_availability.leader_node import leader_bytes
from understudy.runtime.high_availability.nodes import CANDIDATE, Nodes, Place, place_in_queue, who_leads

LEADER = Leader("tcp://127.0.0.1:1", LeaderSessionId("1"))


class Calls:
    """A watch that counts."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        self.count += 1


class NodesContract(ABC):
    """Subclass as `class TestMine(NodesContract)`. Sessions are named by numbers; each is made when it is asked for."""

    folder: str
    """Where candidates stand: empty, and there."""

    @abstractmethod
    def nodes(self, session: int) -> Nodes: ...

    @abstractmethod
    def stand(self, session: int) -> str:
        """Make an ephemeral node for it in the folder, with the next number; returns its name."""

    @abstractmethod
    def say(self, session: int, node: str, data: bytes) -> None:
        """Change the data of its node."""

    @abstractmethod
    def expire(self, session: int) -> None:
        """It ends, as of a process that died."""

    @abstractmethod
    def until(self, condition: Callable[[], Any]) -> None:
        """Let time pass; fails when the condition never holds."""

    @abstractmethod
    def settle(self) -> None:
        """Let what is under way arrive."""

    def _once(self, watch: Calls, do: Callable[[], Any]) -> None:
        self.settle()
        assert watch.count == 0
        do()
        self.until(lambda: watch.count == 1)

    def test_candidates_are_numbered_in_their_order_and_go_with_their_sessions(self) -> None:
        first, second = self.stand(1), self.stand(2)
        assert first.startswith(CANDIDATE)
        assert first < second
        assert sorted(self.nodes(3).children(self.folder)) == [first, second]
        self.expire(1)
        self.until(lambda: self.nodes(3).children(self.folder) == [second])
        assert self.stand(4) > second

    def test_a_watch_on_a_node_is_called_once_when_it_goes(self) -> None:
        own, watch = self.stand(1), Calls()
        assert self.nodes(2).is_there(f"{self.folder}/{own}", watch)
        self._once(watch, lambda: self.expire(1))
        assert not self.nodes(2).is_there(f"{self.folder}/{own}")
        self.settle()
        assert watch.count == 1

    def test_a_watch_on_data_is_called_once_when_they_change(self) -> None:
        own, watch = self.stand(1), Calls()
        path = f"{self.folder}/{own}"
        self.say(1, own, b"one")
        assert self.nodes(2).read(path, watch) == b"one"
        self._once(watch, lambda: self.say(1, own, b"other"))
        self.say(1, own, b"last")
        self.settle()
        assert (watch.count, self.nodes(2).read(path)) == (1, b"last")

    def test_a_watch_on_children_is_called_when_one_comes_and_when_one_goes(self) -> None:
        for change in (lambda: self.stand(1), lambda: self.expire(1)):
            watch = Calls()
            self.nodes(2).children(self.folder, watch)
            self._once(watch, change)

    def test_what_is_not_there_is_read_as_none_and_not_watched(self) -> None:
        watch = Calls()
        assert self.nodes(1).read(f"{self.folder}/candidate-none", watch) is None
        assert not self.nodes(1).is_there(f"{self.folder}/candidate-none")
        self.stand(2)
        self.settle()
        assert watch.count == 0

    def test_each_candidate_is_woken_by_the_one_before_it_and_by_no_other(self) -> None:
        first, second, third = (self.stand(session) for session in (1, 2, 3))
        woken = {2: Calls(), 3: Calls()}
        assert place_in_queue(self.nodes(1), self.folder, first, Calls()) is Place.FIRST
        assert place_in_queue(self.nodes(2), self.folder, second, woken[2]) is Place.BEHIND
        assert place_in_queue(self.nodes(3), self.folder, third, woken[3]) is Place.BEHIND
        self._once(woken[2], lambda: self.expire(1))
        assert place_in_queue(self.nodes(2), self.folder, second, Calls()) is Place.FIRST
        self._once(woken[3], lambda: self.expire(2))
        assert place_in_queue(self.nodes(3), self.folder, third, Calls()) is Place.FIRST
        assert place_in_queue(self.nodes(3), self.folder, second, Calls()) is Place.OUT

    def test_who_leads_is_the_first_once_it_has_said_where_it_is(self) -> None:
        watch = Calls()
        assert who_leads(self.nodes(9), self.folder, watch) is None
        self._once(watch, lambda: self.stand(1))
        watch = Calls()
        (own,) = self.nodes(9).children(self.folder)
        assert who_leads(self.nodes(9), self.folder, watch) is None
        self._once(watch, lambda: self.say(1, own, leader_bytes(LEADER)))
        watch = Calls()
        assert who_leads(self.nodes(9), self.folder, watch) == LEADER
        self.settle()
        assert watch.count == 0
        self.expire(1)
        self.until(lambda: watch.count > 0)
        assert who_leads(self.nodes(9), self.folder, Calls()) is None
