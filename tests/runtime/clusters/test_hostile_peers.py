"""Whatever comes to a cluster's open ports while a job runs, the job runs on and its result is right.

Everything here stays on the loopback interface and within a few hundred connections.
"""

from __future__ import annotations

import contextlib
import os
import random
import socket
import stat
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import msgpack
import psutil
import pytest
import zmq

from understudy import JobHandle, LocalCluster
from understudy.messages import (
    MAX_MESSAGE_BYTES,
    CancelJob,
    CheckpointId,
    ExecutionAttemptId,
    Heartbeat,
    JobId,
    LeaderSessionId,
    LeaderSessionMessage,
    ListenToJob,
    RegisterTaskManager,
    ReleaseTaskManager,
    RequestJobStatus,
    TaskManagerId,
    TriggerCheckpoint,
    encode,
)
from understudy.runtime.system import CurveKeys
from understudy.runtime.system.remote.envelope import Envelope, pack_payload

from .jobs import WAIT_S, Gate, Witness, counted, counting, counts_of, environment

GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00"
"""How a ZMTP 3 peer begins; its mechanism and 32 bytes more follow."""


@pytest.fixture
def stage(tcp_cluster: LocalCluster, tmp_path: Path) -> Iterator[Stage]:
    """A job in the middle of its work; afterwards it must have ended as if nothing had been."""
    cluster = tcp_cluster
    env, gate = environment(), Gate(tmp_path)
    counting(env, 2500, 2000, gate=gate).collect(name="all")
    job = cluster.submit(env)
    witness = Witness(job)
    witness.checkpoints(1)
    pids = witness.pids(2)
    yield Stage(cluster, job, [[int(cluster.address.rpartition(":")[2])], *map(_ports, pids.values())])
    gate.open()
    assert job.wait(timeout=WAIT_S).restarts == 0
    assert counts_of(job.results("all")) == counted(2500)
    assert witness.pids(0) in ({}, pids), "nobody was replaced"


class Stage:
    def __init__(self, cluster: LocalCluster, job: JobHandle, ports: list[list[int]]) -> None:
        self.cluster, self.job = cluster, job
        self.ports = [port for several in ports for port in several]
        assert set(ports[0]) <= set(_ports(os.getpid())), "the driver: control"
        assert [len(several) for several in ports[1:]] == [2, 2], "a TaskManager: control and data"

    def goes_on(self) -> None:
        """What was sent has time to come, or to be thrown away: all tasks pass barriers meanwhile."""
        Witness(self.job).checkpoints(5)

    @property
    def keys(self) -> CurveKeys:
        return self.cluster._curve


def _ports(pid: int) -> list[int]:
    connections = psutil.Process(pid).net_connections(kind="tcp")
    assert all(each.laddr.ip == "127.0.0.1" for each in connections if each.status == psutil.CONN_LISTEN)
    return sorted({each.laddr.port for each in connections if each.status == psutil.CONN_LISTEN})


def _throw(port: int, *parts: bytes) -> None:
    """Send bytes over a plain connection; whether the other side takes them is its affair."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=WAIT_S) as connection:
        connection.settimeout(0.05)
        for part in parts:
            connection.sendall(part)
            with contextlib.suppress(TimeoutError):
                connection.recv(4096)


def test_bytes_that_are_no_zeromq_are_harmless(stage: Stage) -> None:
    chance = random.Random(11)
    for port in stage.ports:
        for size in (1, 64, 10_000):
            _throw(port, chance.randbytes(size))
        _throw(port, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        _throw(port, b"POST / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n", b"x" * 10_000)
        _throw(port, b"")


def test_peers_that_speak_zeromq_wrongly_are_harmless(stage: Stage) -> None:
    chance = random.Random(12)
    for port in stage.ports:
        for mechanism in (b"NULL", b"PLAIN", b"CURVE", b"NOSUCH"):
            greeting = GREETING[:10] + b"\x03\x00" + mechanism.ljust(20, b"\0") + bytes(32)
            _throw(port, greeting[:12])
            _throw(port, greeting, chance.randbytes(500))
            _throw(port, greeting, b"\x04\x05READY" + chance.randbytes(50))
            _throw(port, greeting, b"\x06" + struct.pack(">Q", 2**62) + b"x" * 1000)
            _throw(port, greeting, b"\x04\xc8\x05HELLO\x01\x00" + chance.randbytes(193))


def _messages() -> list[bytes]:
    heartbeat = encode(Heartbeat("tm-0", 1))
    good = encode(Envelope("job-manager", "", pack_payload(Heartbeat("tm-0", 1))))
    return [
        b"",
        heartbeat,
        good[:-5],
        msgpack.packb(["Envelope", {"target": 7}]),
        msgpack.packb(["Envelope", {"target": "job-manager", "sender": "", "payload": b"\x93"}]),
        msgpack.packb(["NoSuchMessage", {}]),
        random.Random(13).randbytes(1000),
        b"\x91" * 5000,
        b"x" * (MAX_MESSAGE_BYTES + 1),
    ]


@pytest.mark.parametrize("who", ["without-a-key", "with-a-key-of-his-own", "with-the-servers-key-only"])
def test_strangers_are_not_let_in(stage: Stage, who: str) -> None:
    mine = CurveKeys.generate()
    with zmq.Context() as context, ExitStack() as sockets:
        for port in stage.ports:
            dealer = sockets.enter_context(context.socket(zmq.DEALER))
            dealer.linger = 0
            if who != "without-a-key":
                dealer.curve_serverkey = mine.public if who == "with-a-key-of-his-own" else stage.keys.public
                dealer.curve_publickey, dealer.curve_secretkey = mine.public, mine.secret
            dealer.connect(f"tcp://127.0.0.1:{port}")
            for message in _messages():
                with contextlib.suppress(zmq.Again):  # he has been thrown out already
                    dealer.send(message, zmq.NOBLOCK)
        stage.goes_on()


def test_malformed_messages_of_one_who_has_the_key_are_dropped(stage: Stage) -> None:
    chance = random.Random(14)
    with zmq.Context() as context, ExitStack() as sockets:
        for port in stage.ports:
            dealer = sockets.enter_context(context.socket(zmq.DEALER))
            dealer.linger = 1000
            stage.keys.secure_client(dealer)
            dealer.connect(f"tcp://127.0.0.1:{port}")
            for message in _messages()[:-1]:
                dealer.send(message)
                dealer.send_multipart([message, message, b"more"])
            for kind in range(30):  # the data plane's headers: for channels that are there and for others
                for channel in (0, 1, 2, 10**9, -1):
                    dealer.send(struct.pack("!BBqQqq", 1, kind, channel, chance.choice((0, 1, 10**6)), 5, 5))
        stage.goes_on()


def test_an_oversized_message_of_one_who_has_the_key_costs_only_his_connection(stage: Stage) -> None:
    with zmq.Context() as context, ExitStack() as sockets:
        for port in stage.ports:
            dealer = sockets.enter_context(context.socket(zmq.DEALER))
            dealer.linger = 0
            stage.keys.secure_client(dealer)
            dealer.connect(f"tcp://127.0.0.1:{port}")
            dealer.send(_messages()[-1])
        stage.goes_on()


def test_senseless_messages_of_one_who_has_the_key_are_survived(stage: Stage) -> None:
    """Well-formed, but of an old leader, of strangers, about nothing that is there, or to the wrong actor."""
    job_id, old = stage.job.job_id, LeaderSessionId("session-of-yesterday")
    unknown = JobId("no-such-job")
    attempt = ExecutionAttemptId("attempt-x")
    messages = [
        LeaderSessionMessage(old, ReleaseTaskManager(TaskManagerId("tm-0"), "an old leader says so")),
        LeaderSessionMessage(old, TriggerCheckpoint(job_id, attempt, CheckpointId(1), 1)),
        LeaderSessionMessage(old, Heartbeat("tm-0", 1)),
        RegisterTaskManager(TaskManagerId("tm-9"), unknown, 9, 1, "tcp://127.0.0.1:9/tm", "tcp://127.0.0.1:9", 1, "h"),
        RegisterTaskManager(TaskManagerId("tm-9"), unknown, 9, 1, "nowhere at all", "neither", 1, "h"),
        RequestJobStatus(unknown),
        ListenToJob(unknown, "tcp://127.0.0.1:9/nobody"),
        ListenToJob(job_id, "nowhere at all"),
        CancelJob(unknown),
        Heartbeat("tm-from-nowhere", 7),
        TriggerCheckpoint(job_id, attempt, CheckpointId(1), 1),
    ]
    with zmq.Context() as context, ExitStack() as sockets:
        for port in stage.ports:
            dealer = sockets.enter_context(context.socket(zmq.DEALER))
            dealer.linger = 1000
            stage.keys.secure_client(dealer)
            dealer.connect(f"tcp://127.0.0.1:{port}")
            for target in ("job-manager", "task-manager", "nobody"):
                for message in messages:
                    dealer.send(encode(Envelope(target, "", pack_payload(message))))
        stage.goes_on()


def test_a_flood_of_connections_is_survived(stage: Stage) -> None:
    with ExitStack() as connections:
        for port in stage.ports:
            for number in range(100):
                connection = connections.enter_context(socket.create_connection(("127.0.0.1", port), timeout=WAIT_S))
                if number % 2:
                    connection.sendall(GREETING)
        witness = Witness(stage.job)
        witness.checkpoints(2)
    for port in stage.ports:
        for _ in range(100):
            socket.create_connection(("127.0.0.1", port), timeout=WAIT_S).close()


def test_between_local_task_managers_records_pass_where_only_their_user_can_enter(
    start_cluster: Callable[..., LocalCluster], tmp_path: Path
) -> None:
    others = set(_ports(os.getpid()))  # of clusters that tests of this process share
    cluster = start_cluster(heartbeat_interval_ms=200)
    assert len(set(_ports(os.getpid())) - others) == 1, "the driver: control"
    env, gate = environment(), Gate(tmp_path)
    counting(env, 2500, 2000, gate=gate).collect(name="all")
    job = cluster.submit(env)
    witness = Witness(job)
    witness.checkpoints(1)
    pids = witness.pids(2)
    assert [len(_ports(pid)) for pid in pids.values()] == [1, 1], "control only"
    for pid in pids.values():
        paths = {Path(each.laddr) for each in psutil.Process(pid).net_connections(kind="unix") if each.laddr}
        (path,) = [path for path in paths if path.is_socket() and path.name.startswith("tm-")]
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    gate.open()
    job.wait(timeout=WAIT_S)
    assert counts_of(job.results("all")) == counted(2500)
