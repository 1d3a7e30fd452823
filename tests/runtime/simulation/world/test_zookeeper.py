"""The simulated ZooKeeper passes the contract of the real one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from understudy.runtime.high_availability.nodes import CANDIDATE
from understudy.runtime.simulation.world.world import World
from understudy.runtime.simulation.world.zookeeper import LEADER, SimulatedSession, SimulatedZooKeeper

from ....contracts.nodes import NodesContract


class TestSimulatedZooKeeper(NodesContract):
    folder = LEADER

    @pytest.fixture(autouse=True)
    def _world(self) -> None:
        self.world = World(0)
        self.zookeeper = SimulatedZooKeeper(self.world, 1_000)
        self.sessions: dict[int, SimulatedSession] = {}

    def nodes(self, session: int) -> SimulatedSession:
        if session not in self.sessions:
            process = self.world.process(f"process-{session}")
            self.sessions[session] = SimulatedSession(self.zookeeper, process)
        return self.sessions[session]

    def stand(self, session: int) -> str:
        return self.zookeeper.create(self.nodes(session), LEADER, CANDIDATE)

    def say(self, session: int, node: str, data: bytes) -> None:
        self.zookeeper.set(f"{LEADER}/{node}", data)

    def expire(self, session: int) -> None:
        self.nodes(session).process.kill("kill -9")

    def until(self, condition: Callable[[], Any]) -> None:
        assert self.world.run_until(lambda: bool(condition()), self.world.now_ms + 10_000)

    def settle(self) -> None:
        self.world.run_for(20)

    def test_a_word_waits_for_a_process_that_is_cut_off_and_is_lost_with_its_session(self) -> None:
        said: list[int] = []
        own = self.stand(1)
        for session in (2, 3):
            self.nodes(session).is_there(f"{LEADER}/{own}", lambda session=session: said.append(session))
        self.zookeeper.cut_off |= {self.nodes(2).process, self.nodes(3).process}
        self.zookeeper.end(self.nodes(1))
        self.world.run_for(500)
        assert said == []
        self.zookeeper.cut_off.discard(self.nodes(2).process)
        self.world.run_for(2_000)
        assert (said, self.nodes(2).is_over, self.nodes(3).is_over) == ([2], False, True)
