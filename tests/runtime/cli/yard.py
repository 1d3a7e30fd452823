"""A cluster of processes that stand alone, as users start them in one folder."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

import pytest

from tests.free_port import free_port
from understudy import StandaloneCluster, StreamEnvironment
from understudy.runtime.hosts.standing_process import ProcessState, running_processes

from ...prepared import Command
from ..clusters.jobs import environment
from .conftest import WAIT_S, Shell, eventually

SETTINGS = """
jobmanager.port: {port}
taskmanager.slots: 2
storage.dir: storage
security.key-file: key
log.dir: log
run.dir: run
heartbeat:
  interval-ms: 100
  timeout-ms: 10_000
"""

SUCCESSION = {"recovery.mode": "storage", "high-availability.session-timeout-ms": "1000"}


class Yard:
    """A cluster of processes in the shell's folder."""

    def __init__(self, shell: Shell) -> None:
        self.shell = shell
        self.folder = shell.folder
        self.port = free_port()
        self.file = self.folder / "understudy.yaml"
        self.file.write_text(SETTINGS.format(port=self.port))
        assert shell("cluster", "key").out.strip() == str(self.folder / "key")

    def start(self, role: str, *flags: str) -> Command:
        """In the foreground; returns when it runs."""
        process = self.shell.start(role, *flags)
        self.until(lambda: self.state(process) is not None or process.poll() is not None, f"a {role}")
        assert process.poll() is None, process.communicate(WAIT_S)
        return process

    def state(self, process: Command) -> ProcessState | None:
        """What its pid file says, once it listens."""
        running = running_processes(self.folder / "run")
        return next((each for each in running if each.pid == process.pid and each.address), None)

    def until_registered(self, process: Command) -> None:
        self.until(lambda: (state := self.state(process)) is not None and state.is_ready, "a registration")

    def cluster(self) -> StandaloneCluster:
        return StandaloneCluster(self.file)

    def environment(self, **settings: Any) -> StreamEnvironment:
        return environment(checkpoint_dir=str(self.folder / "checkpoints"), **settings)

    def log(self, name: str) -> str:
        return (self.folder / "log" / f"{name}.log").read_text()

    def end(self, process: Command, number: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """Its exit code, and what it has said on standard error."""
        os.kill(process.pid, number)
        _, said = process.communicate(WAIT_S)
        return process.wait(), said

    @staticmethod
    def until(condition: Callable[[], Any], what: str) -> Any:
        return eventually(condition, what)


@pytest.fixture
def yard(shell: Shell, shipped_by_value: None) -> Yard:
    return Yard(shell)
