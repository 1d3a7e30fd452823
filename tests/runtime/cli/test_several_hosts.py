"""A cluster of three hosts that have nothing in common but a folder and a network: namespaces, with a network each.

In the place of ssh stands `ip netns exec`: the commands that it is given are the same, and each host has a home folder
of its own, with its own key, logs and pid files. Needs root and iproute2.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ...prepared import PATIENCE_SECONDS
from ...systems import SystemMissing, given
from .conftest import Done, eventually

pytestmark = pytest.mark.slow

RECORDS, RATE, KEYS = 12_000, 1_000, 24
JOB = f"""
from understudy import FileSink, KeyedOperator, StreamEnvironment, ValueState, fixed_delay


class Counting(KeyedOperator):
    seen = ValueState(int, default=0)

    def process(self, record, out):
        self.seen.update(self.seen.value() + 1)
        out.collect({{"key": self.key, "number": self.seen.value(), "index": record}})


def build(folder):
    env = StreamEnvironment(
        parallelism=2,
        checkpoint_interval_ms=200,
        checkpoint_dir=folder + "/checkpoints",
        restart_strategy=fixed_delay(attempts=20, delay_ms=100),
    )
    numbers = env.generate(lambda index: index, {RECORDS}, records_per_second={RATE}, name="numbers")
    counted = numbers.key_by(lambda index: index % {KEYS}).process(Counting, name="count")
    counted.sink_to(FileSink(folder + "/out", "jsonl"), name="out")
    return env
"""
SETTINGS = """
jobmanager.host: {master}
taskmanager.slots: 2
storage.dir: {folder}/storage
cluster:
  workers: [{workers}]
  ssh: {folder}/ssh
  command: {python} -m understudy
heartbeat: {{interval-ms: 300, timeout-ms: 3_000}}
"""
SSH = """#!/bin/sh
# HOST COMMAND, as ssh has it; the host's shell has no settings of ours.
host=$1; shift
own="HOME={folder}/home-$host TMPDIR={folder}/tmp-$host"
exec ip netns exec {prefix}-$host env -i PATH="$PATH" PYTHONPATH="$PYTHONPATH" $own sh -c "cd {folder}/home-$host && $*"
"""


class Lan:
    """A switch and hosts, each a namespace."""

    def __init__(self, folder: Path, addresses: list[str]) -> None:
        self.folder = folder
        self.prefix = f"us{os.getpid() % 100_000}"
        self.switch = f"{self.prefix}-switch"
        self.addresses = addresses
        self._made: list[str] = []

    def __enter__(self) -> Lan:
        self._add(self.switch)
        self._ip("-n", self.switch, "link", "add", "bridge", "type", "bridge")
        self._ip("-n", self.switch, "link", "set", "bridge", "up")
        for number, address in enumerate(self.addresses):
            name = f"{self.prefix}-{address}"
            self._add(name)
            port = f"port{number}"
            self._ip("-n", name, "link", "add", "eth0", "type", "veth", "peer", "name", port, "netns", self.switch)
            self._ip("-n", self.switch, "link", "set", port, "master", "bridge", "up")
            self._ip("-n", name, "addr", "add", f"{address}/24", "dev", "eth0")
            self._ip("-n", name, "link", "set", "lo", "up")
            self._ip("-n", name, "link", "set", "eth0", "up")
            for kind in ("home", "tmp"):
                (self.folder / f"{kind}-{address}").mkdir()
        return self

    def __exit__(self, *_: object) -> None:
        for name in self._made:
            for pid in self._ip("netns", "pids", name).split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            self._ip("netns", "del", name)

    def cable(self, address: str, state: str) -> None:
        """Pull it out ("down"), or put it in ("up")."""
        self._ip("-n", self.switch, "link", "set", f"port{self.addresses.index(address)}", state)

    def processes(self, address: str) -> list[int]:
        return [int(pid) for pid in self._ip("netns", "pids", f"{self.prefix}-{address}").split()]

    def _add(self, name: str) -> None:
        self._ip("netns", "add", name)
        self._made.append(name)

    @staticmethod
    def _ip(*arguments: str) -> str:
        return subprocess.run(["ip", *arguments], capture_output=True, text=True, check=True).stdout


MASTER, FIRST, SECOND = "10.77.0.1", "10.77.0.2", "10.77.0.3"


def check_namespaces() -> None:
    if os.geteuid() != 0:
        raise SystemMissing("network namespaces", "that takes root")
    if shutil.which("ip") is None:
        raise SystemMissing("network namespaces", "there is no `ip`: install iproute2")


@pytest.fixture
def lan(tmp_path: Path) -> Iterator[Lan]:
    given(check_namespaces)
    with Lan(tmp_path, [MASTER, FIRST, SECOND]) as lan:
        ssh = tmp_path / "ssh"
        ssh.write_text(SSH.format(prefix=lan.prefix, folder=tmp_path))
        ssh.chmod(0o755)
        settings = SETTINGS.format(master=MASTER, workers=f"{FIRST}, {SECOND}", folder=tmp_path, python=sys.executable)
        (tmp_path / "understudy.yaml").write_text(settings)
        (tmp_path / "job.py").write_text(JOB)
        yield lan


def on_master(lan: Lan, *arguments: str) -> Done:
    """A command of ours, as somebody types it there."""
    command = [
        str(lan.folder / "ssh"),
        MASTER,
        f"cd {lan.folder} && {sys.executable} -m understudy {' '.join(arguments)}",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
    return Done(done.returncode, done.stdout, done.stderr)


def alive(lan: Lan) -> list[tuple[str, bool]]:
    """The processes of `cluster status`, and whether each is registered."""
    status: Any = on_master(lan, "cluster", "status", "--json").json
    return [(each["host"], each["is_registered"]) for each in status["processes"]]


def committed(folder: Path) -> list[tuple[int, int, int]]:
    files = [path for path in folder.iterdir() if not path.name.startswith((".", "_"))]
    records = [json.loads(line) for path in files for line in path.read_text().splitlines()]
    return sorted((each["key"], each["number"], each["index"]) for each in records)


@pytest.mark.parametrize("loss", ["cable", "power"])
def test_a_lost_hosts_work_goes_on_on_another_and_the_output_is_exact(lan: Lan, loss: str) -> None:
    sent = on_master(lan, "cluster", "key", "--send")
    assert (sent.code, sent.err.count("has the key")) == (0, 2), sent.err
    started = on_master(lan, "cluster", "start")
    assert started.code == 0, started.err
    assert alive(lan) == [(MASTER, True), (FIRST, True), (SECOND, True)]
    assert on_master(lan, "submit", "--ready", "--name", "numbers", "job.py:build", "--", str(lan.folder)).code == 0
    eventually(lambda: any(each["status"] == "completed" for each in checkpoints(lan)), "a checkpoint")
    if loss == "cable":
        lan.cable(FIRST, "down")
    else:
        for pid in lan.processes(FIRST):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    (job,) = eventually(lambda: [job for job in jobs(lan) if job["status"] == "finished"], "the end of the job")
    assert job["restarts"] >= 1, "it was lost while the job ran"
    assert committed(lan.folder / "out") == sorted((index % KEYS, index // KEYS + 1, index) for index in range(RECORDS))
    if loss == "cable":
        lan.cable(FIRST, "up")
        eventually(lambda: (FIRST, True) in alive(lan), "the host to register again")
        assert on_master(lan, "cluster", "status").code == 0
    else:
        assert (FIRST, False) in alive(lan)
    stopped = on_master(lan, "cluster", "stop")
    assert stopped.code == 0, stopped.err
    assert [lan.processes(address) for address in lan.addresses] == [[], [], []]


def jobs(lan: Lan) -> Any:
    return on_master(lan, "list", "--all", "--json").json


def checkpoints(lan: Lan) -> Any:
    return on_master(lan, "checkpoints", "numbers", "--json").json["checkpoints"]
