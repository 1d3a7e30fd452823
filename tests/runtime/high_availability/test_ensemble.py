"""Three real ZooKeeper servers: one may die, and nothing happens; without two the leader steps down before anybody else
can lead, and when they are back somebody goes on.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from understudy.runtime.high_availability.zookeeper_election import ZooKeeperLeadership
from understudy.state.errors import LostLeadership

from ...prepared import PATIENCE_SECONDS
from ...systems import given
from ...systems.zookeeper import Ensemble
from .clusters import Candidates, config

pytestmark = [pytest.mark.processes, pytest.mark.slow]
TIMEOUT_MS = 8_000


@pytest.fixture
def ensemble() -> Iterator[Ensemble]:
    made = given(lambda: Ensemble(3))
    yield made
    made.stop()


@pytest.fixture
def candidates(tmp_path: Path, ensemble: Ensemble) -> Iterator[Candidates]:
    made = Candidates(config(tmp_path, ensemble.quorum, TIMEOUT_MS))
    yield made
    made.close()


def server_of(leader: ZooKeeperLeadership, ensemble: Ensemble) -> int:
    """The number of the server that it is connected to."""
    port = leader._client._connection._socket.getpeername()[1]
    return next(number for number, each in enumerate(ensemble.servers) if each.address.endswith(f":{port}"))


def test_of_three_servers_one_may_die_and_it_goes_on_leading(candidates: Candidates, ensemble: Ensemble) -> None:
    """Also the one that it is connected to."""
    leader, lost = candidates.win(), threading.Event()
    assert isinstance(leader, ZooKeeperLeadership)
    leader.on_lost(lambda _: lost.set())
    leader.write("job", b"before")
    ensemble.servers[server_of(leader, ensemble)].kill()
    leader.write("job", b"after")
    assert (dict(leader.read()), leader.is_sure, lost.is_set()) == ({"job": b"after"}, True, False)


def test_without_two_of_three_it_steps_down_and_when_they_are_back_somebody_leads(
    candidates: Candidates, ensemble: Ensemble
) -> None:
    leader, lost = candidates.win(), threading.Event()
    leader.on_lost(lambda _: lost.set())
    leader.write("job", b"before")
    for server in ensemble.servers[:2]:
        server.kill()
    with pytest.raises(LostLeadership):
        leader.write("job", b"lost")
    assert lost.wait(TIMEOUT_MS / 1000)
    assert not leader.is_sure
    for server in ensemble.servers[:2]:
        server.start()
    for server in ensemble.servers:
        server.await_ready(PATIENCE_SECONDS)
    leader.resign()
    successor = candidates.win()
    assert dict(successor.read())["job"] in (b"before", b"lost")


_FROZEN = """
import sys, threading
from understudy.runtime.high_availability.services import HighAvailabilityServices
from understudy.runtime.high_availability.settings import HighAvailabilitySettings
from understudy.state.errors import LostLeadership

leader = HighAvailabilityServices(HighAvailabilitySettings.of(eval(sys.argv[1]))).election().campaign(threading.Event())
leader.write("job", b"first")
print("leads", flush=True)
sys.stdin.readline()
for act in (leader.read, lambda: leader.write("job", b"late"), lambda: leader.publish("tcp://127.0.0.1:1")):
    try:
        act()
    except LostLeadership:
        print("refused", flush=True)
    else:
        print("done", flush=True)
leader.resign()
"""


def test_a_process_that_is_frozen_for_longer_and_woken_finds_each_of_its_acts_refused(
    tmp_path: Path, zookeeper: Ensemble
) -> None:
    settings = config(tmp_path, zookeeper.quorum, 2_000)
    frozen = subprocess.Popen(
        [sys.executable, "-c", _FROZEN, repr(settings)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    candidates = Candidates(settings)
    assert frozen.stdout is not None
    try:
        assert frozen.stdout.readline() == "leads\n"
        os.kill(frozen.pid, signal.SIGSTOP)
        successor = candidates.win()
        successor.write("job", b"second")
        os.kill(frozen.pid, signal.SIGCONT)
        said, _ = frozen.communicate("go on\n", timeout=60)
        assert said.split() == ["refused"] * 3
        assert dict(successor.read()) == {"job": b"second"}
    finally:
        frozen.kill()
        frozen.wait()
        candidates.close()
