"""A ZooKeeper of one's own, on loopback: `zookeeper` is one server for all tests of a worker, each of which uses a
cluster id of its own; an ensemble of three is made by the test that needs it.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.handlers.threading import KazooTimeoutError

from understudy.runtime.high_availability.errors import NoZooKeeperHere
from understudy.runtime.high_availability.trial_zookeeper import TrialZooKeeper, free_peers

from ..prepared import PATIENCE_SECONDS
from . import SystemMissing, given


class Ensemble:
    """Some servers, started. Raises SystemMissing."""

    def __init__(self, count: int = 1) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="understudy-zookeeper-", dir="/tmp"))
        self.servers: list[TrialZooKeeper] = []
        peers = free_peers(count)
        try:
            for number, peer in enumerate(peers, 1):
                server = TrialZooKeeper(self._folder / str(number), peer, number, peers if count > 1 else ())
                self.servers.append(server)
                server.start()
            for server in self.servers:
                server.await_ready(PATIENCE_SECONDS)
        except NoZooKeeperHere as error:
            self.stop()
            raise SystemMissing("ZooKeeper", str(error)) from error

    @property
    def quorum(self) -> str:
        return ",".join(server.address for server in self.servers)

    def stop(self) -> None:
        for server in self.servers:
            server.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def end_session(client: KazooClient, quorum: str) -> None:
    """The session of a client ends, and the client has not heard of that yet. ZooKeeper cannot tell a session that
    another client of the same session closes from one that is over. While both live, each takes the session from the
    other, and may not hold it any more when it closes it; so this tries again until the server knows it no more.
    """
    session, is_over = client.client_id, False
    while not is_over:
        same = KazooClient(quorum, client_id=session)
        try:
            same.start()
            is_over = same.client_id[0] != session[0]  # the server knew none, and began another
        except KazooTimeoutError:  # kazoo says so as soon as it was connected and is not any more
            continue
        finally:
            same.stop()
            same.close()


@pytest.fixture(scope="session")
def zookeeper() -> Iterator[Ensemble]:
    ensemble = given(Ensemble)
    yield ensemble
    ensemble.stop()
