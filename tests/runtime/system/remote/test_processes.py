"""Real processes: one is killed or frozen, and the other hears of it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from understudy.actors.actor import Terminated
from understudy.runtime.system import ActorSystem, CurveKeys, TransportOptions, Unreachable

WAIT_S = 120
SCRIPT = Path(__file__).with_name("peer_process.py")


@pytest.fixture
def key_file(tmp_path):
    path = tmp_path / "cluster.key"
    CurveKeys.generate().save(path)
    return path


@pytest.fixture
def peer(key_file):
    command = [sys.executable, str(SCRIPT), str(key_file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            process.address = process.stdout.readline().strip()  # type: ignore[attr-defined]
            yield process
        finally:
            process.kill()


@pytest.fixture
def watched(peer, key_file, recorder):
    """A reference to the peer's actor, and an actor that watches it from here."""
    options = TransportOptions(heartbeat_interval_ms=100, heartbeat_timeout_ms=400)
    with ActorSystem("here", bind="tcp://127.0.0.1:0", curve=CurveKeys.load(key_file), options=options) as system:
        ref = system.actor_of(peer.address)
        watcher = recorder(ref)
        system.spawn(watcher).ask("ready?").result(timeout=WAIT_S)
        watcher.next()
        assert ref.ask("hello").result(timeout=WAIT_S) == "hello"
        yield ref, watcher


@pytest.mark.chaos
def test_a_killed_process_terminates_its_actors_and_fails_asks(peer, watched):
    ref, watcher = watched
    silence = ref.ask("silence")
    ref.ask("behind it").result(timeout=WAIT_S)
    peer.send_signal(signal.SIGKILL)
    assert watcher.next() == Terminated(ref.address, "unreachable: the connection broke", may_be_there=True)
    with pytest.raises(Unreachable, match="connection broke"):
        silence.result(timeout=WAIT_S)


@pytest.mark.chaos
def test_a_frozen_process_is_noticed_by_its_heartbeat(peer, watched):
    ref, watcher = watched
    peer.send_signal(signal.SIGSTOP)
    assert watcher.next().address == ref.address
    peer.send_signal(signal.SIGCONT)
    assert ref.ask("back?").result(timeout=WAIT_S) == "back?"


def test_a_process_that_ends_in_order_says_so(peer, watched):
    ref, watcher = watched
    peer.stdin.close()
    assert watcher.next() == Terminated(ref.address, "stopped")
    assert peer.wait(WAIT_S) == 0
