"""Pid files, logs that rotate, and the end by a signal."""

from __future__ import annotations

import errno
import os
import pwd
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from understudy import CurveKeys, InsecureKeyFile, InvalidSettings, NoKeyFile, ProcessFailed
from understudy.runtime.hosts.background import stop_processes
from understudy.runtime.hosts.keys import load_keys, make_key, receive_key
from understudy.runtime.hosts.machines import Machines, Place
from understudy.runtime.hosts.settings import HostSettings
from understudy.runtime.hosts.settings_sources import load_settings
from understudy.runtime.hosts.standing_process import (
    PidFile,
    Role,
    Stop,
    other_cluster,
    running_processes,
)
from understudy.state import UnwritableFolder


def test_a_pid_file_says_what_runs_as_long_as_it_does(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    assert running_processes(folder) == []
    with closing(PidFile(folder, "jobmanager", "/log")) as file:
        file.update(address="tcp://h:1")
        (state,) = running_processes(folder)
        assert (state.name, state.pid, state.address, state.is_ready) == ("jobmanager", os.getpid(), "tcp://h:1", False)
        assert state.log_file == "/log/jobmanager.log"
        with pytest.raises(ProcessFailed, match=rf"jobmanager runs here already \(process {os.getpid()}"):
            PidFile(folder, "jobmanager", "/log")
        file.update(is_ready=True)
        assert running_processes(folder)[0].is_ready
    assert running_processes(folder) == []
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("role", ["jobmanager", "taskmanager"])
def test_a_process_of_another_cluster_in_the_same_run_dir_is_neither_taken_for_ours_nor_ended(
    tmp_path: Path, role: Role, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed: list[int] = []
    monkeypatch.setattr(os, "kill", lambda pid, _: killed.append(pid))
    loaded = load_settings(flags={"run.dir": str(tmp_path), "storage.dir": "/ours"}, environment={})
    settings = loaded.settings
    with closing(PidFile(tmp_path, role, "/log", "/theirs")) as file:
        with pytest.raises(
            ProcessFailed, match=r"its storage.dir is /theirs, and this one's is /ours.*log\.dir of its own"
        ):
            stop_processes(settings, role)
        (found,), missing = Machines(loaded).split([Place(role, "localhost")])
        assert (found.is_done, missing) == (False, [])
        assert "belongs to another cluster" in found.text
        file.update(is_ready=True)
        assert other_cluster(file.state, settings) != ""
    assert killed == []
    with closing(PidFile(tmp_path, role, "/log", "/ours")) as file:
        assert other_cluster(file.state, settings) == ""


def test_several_taskmanagers_of_one_host_have_numbers(tmp_path: Path) -> None:
    first, second = (PidFile(tmp_path, "taskmanager", "/log") for _ in range(2))
    assert [each.name for each in running_processes(tmp_path, "taskmanager")] == ["taskmanager-1", "taskmanager-2"]
    first.close()
    third = PidFile(tmp_path, "taskmanager", "/log")
    assert third.state.name == "taskmanager-1"
    assert running_processes(tmp_path, "jobmanager") == []
    second.close()
    third.close()


def test_the_file_of_a_killed_process_is_no_obstacle_and_goes(tmp_path: Path) -> None:
    code = (
        "import os, sys; from understudy.runtime.hosts.standing_process import PidFile; "
        "PidFile(sys.argv[1], 'jobmanager', '/log'); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert [path.name for path in tmp_path.iterdir()] == ["jobmanager.json"]
    PidFile(tmp_path, "jobmanager", "/log").close()
    assert running_processes(tmp_path) == []
    (tmp_path / "taskmanager-1.json").write_text("what a killed one left")
    assert running_processes(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_a_pid_file_that_cannot_be_written_names_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("json.dump", no_room)
    with pytest.raises(UnwritableFolder, match=f"cannot write to {tmp_path}: its disk is full"):
        PidFile(tmp_path, "jobmanager", "/log")


def test_a_folder_of_another_user_is_an_error_with_the_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As root, who may write everywhere, there is no such folder."""

    def forbidden(path: Any, *_: object) -> int:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr("os.open", forbidden)
    belongs = f"run.dir: {tmp_path} cannot be used: Permission denied .*: it belongs to {pwd.getpwuid(os.getuid())[0]}"
    with pytest.raises(InvalidSettings, match=f"{belongs}: do this as that user, or name a folder of this one"):
        PidFile(tmp_path, "jobmanager", "/log")
    with pytest.raises(InvalidSettings, match=belongs):
        running_processes(tmp_path)


@pytest.mark.parametrize("has_terminal", [False, True])
def test_sighup_ends_only_a_process_that_has_a_terminal(has_terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """logrotate and others send it to daemons to have files opened again; they do not mean an end."""
    monkeypatch.setattr("understudy.runtime.hosts.standing_process.has_terminal", lambda: has_terminal)
    stop, before = Stop(), signal.getsignal(signal.SIGHUP)
    with stop.on_signals():
        os.kill(os.getpid(), signal.SIGHUP)
        assert stop.reason == ("SIGHUP" if has_terminal else "")
    assert signal.getsignal(signal.SIGHUP) == before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_wait_and_the_handlers_are_put_back(number: signal.Signals) -> None:
    stop, before = Stop(), signal.getsignal(number)
    with stop.on_signals():
        os.kill(os.getpid(), number)
        assert stop.wait() == number.name
    assert signal.getsignal(number) == before


def test_without_settings_a_missing_key_says_that_none_were_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("UNDERSTUDY_CONFIG", raising=False)
    with pytest.raises(NoKeyFile, match=f"There is no understudy.yaml in {tmp_path}, .* name them with --config"):
        load_keys(load_settings().settings)
    (tmp_path / "understudy.yaml").write_text("taskmanager.slots: 1")
    with pytest.raises(NoKeyFile) as raised:
        load_keys(load_settings().settings)
    assert "There is no understudy.yaml" not in str(raised.value)


def test_a_key_is_made_once_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    settings = HostSettings(key_file=str(tmp_path / "new" / "key"))
    with pytest.raises(NoKeyFile, match="`understudy cluster key`"):
        load_keys(settings)
    assert make_key(settings)
    keys = load_keys(settings)
    assert not make_key(settings)
    assert load_keys(settings) == keys
    (tmp_path / "new" / "key").chmod(0o640)
    with pytest.raises(InsecureKeyFile):
        load_keys(settings)


def test_a_key_that_is_sent_is_taken_unless_there_is_another_one(tmp_path: Path) -> None:
    here, there = (HostSettings(key_file=str(tmp_path / name / "key")) for name in ("here", "there"))
    make_key(here)
    text = Path(here.key_file).read_text()
    receive_key(there, text)
    receive_key(there, text)
    assert load_keys(there) == load_keys(here)
    CurveKeys.generate().save(tmp_path / "other")
    with pytest.raises(InvalidSettings, match="another cluster's key"):
        receive_key(there, (tmp_path / "other").read_text())
    assert load_keys(there) == load_keys(here)
    assert [path.name for path in (tmp_path / "there").iterdir()] == ["key"]
