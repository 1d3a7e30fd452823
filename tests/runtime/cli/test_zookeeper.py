"""`understudy key` and `understudy zookeeper start`."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner

from understudy.runtime.cli import main
from understudy.runtime.high_availability.trial_zookeeper import free_peers
from understudy.runtime.system import CurveKeys

from ...systems.zookeeper import Ensemble


@pytest.mark.every_run
def test_a_key_is_written_once_and_can_be_loaded(tmp_path: Path) -> None:
    path = tmp_path / "cluster.key"
    assert CliRunner().invoke(main, ["key", str(path)]).exit_code == 0
    keys = CurveKeys.load(path)
    again = CliRunner().invoke(main, ["key", str(path)])
    assert again.exit_code == 1
    assert f"{path} is there already" in again.output
    assert CurveKeys.load(path) == keys


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        answer = CliRunner().invoke(main, ["zookeeper", "start", "--port", port, "--folder", str(tmp_path)])
    assert answer.exit_code == 1
    assert f"port {port} cannot be used" in answer.output


def test_without_java_it_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    answer = CliRunner().invoke(
        main, ["zookeeper", "start", "--port", str(free_peers(1)[0].client_port), "--folder", str(tmp_path / "data")]
    )
    assert answer.exit_code == 1
    assert "ZooKeeper needs Java, and there is none on the PATH" in answer.output


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_server_runs_until_it_is_interrupted_and_says_how_to_use_it(
    tmp_path: Path, zookeeper: Ensemble, how: signal.Signals
) -> None:
    port = free_peers(1)[0].client_port
    command = ["-m", "understudy", "zookeeper", "start", "--port", str(port), "--folder", str(tmp_path / "data")]
    process = subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process.stdout as lines:
        assert (
            lines.readline() == f"-D recovery.mode=zookeeper -D high-availability.zookeeper.quorum=127.0.0.1:{port}\n"
        )
        (server,) = psutil.Process(process.pid).children()
        process.send_signal(how)
        assert process.wait(60) == 128 + how
        assert not server.is_running()
