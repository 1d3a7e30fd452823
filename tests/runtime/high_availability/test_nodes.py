"""A real ZooKeeper passes the contract that the simulated one passes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest
from kazoo.client import KazooClient

from understudy.runtime.high_availability.nodes import CANDIDATE
from understudy.runtime.high_availability.zookeeper_client import KazooNodes

from ...contracts.nodes import NodesContract
from ...systems.zookeeper import Ensemble, end_session

pytestmark = pytest.mark.processes
WAIT_S = 60


class TestZooKeeper(NodesContract):
    @pytest.fixture(autouse=True)
    def _clients(self, zookeeper: Ensemble) -> Iterator[None]:
        self.folder = f"/nodes-{uuid4().hex[:12]}"
        self.clients: dict[int, KazooClient] = {}
        self.over: list[KazooClient] = []
        self._quorum = zookeeper.quorum
        self.client(0).ensure_path(self.folder)
        yield
        for client in (*self.clients.values(), *self.over):
            client.stop()
            client.close()

    def client(self, session: int) -> KazooClient:
        if session not in self.clients:
            self.clients[session] = KazooClient(self._quorum)
            self.clients[session].start()
        return self.clients[session]

    def nodes(self, session: int) -> KazooNodes:
        return KazooNodes(self.client(session))

    def stand(self, session: int) -> str:
        made: str = self.client(session).create(f"{self.folder}/{CANDIDATE}", ephemeral=True, sequence=True)
        return made.rpartition("/")[2]

    def say(self, session: int, node: str, data: bytes) -> None:
        self.client(session).set(f"{self.folder}/{node}", data)

    def expire(self, session: int) -> None:
        over = self.clients.pop(session)
        self.over.append(over)
        end_session(over, self._quorum)

    def until(self, condition: Callable[[], Any]) -> None:
        deadline = time.monotonic() + WAIT_S
        while not condition():
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def settle(self) -> None:
        """Answers and words of one server come in their order."""
        for client in self.clients.values():
            client.sync(self.folder)
        time.sleep(0.05)
