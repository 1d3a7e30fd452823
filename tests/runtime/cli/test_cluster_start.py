"""`understudy cluster start` says done only of processes that stay."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.free_port import free_port
from understudy.runtime.hosts.machines import Machines, Outcome, Place
from understudy.runtime.hosts.settings_sources import load_settings

from .conftest import Shell

SETTINGS = """
jobmanager: {{host: 127.0.0.1, port: {port}}}
recovery.mode: storage
high-availability.session-timeout-ms: 2000
storage.dir: ../storage
security.key-file: ./key
run.dir: ./run
log.dir: ./log
"""


def test_a_jobmanager_that_waits_behind_another_cluster_has_not_started(shell: Shell) -> None:
    """It ends with AnotherCluster, once it has seen that the other one's leader lives."""
    mine, other = shell.folder / "mine", shell.folder / "other"
    for folder in (mine, other):
        folder.mkdir()
        (folder / "understudy.yaml").write_text(SETTINGS.format(port=free_port()))
    try:
        started = shell("cluster", "start", "--config", str(mine / "understudy.yaml"))
        assert (started.code, started.err.count("started")) == (0, 2), started.err
        refused = shell("cluster", "start", "--config", str(other / "understudy.yaml"))
        assert refused.code == 1
        assert "FAILED: the jobmanager process ended with exit code 1" in refused.err
        assert "high-availability.cluster-id" in refused.err
        assert "taskmanager" not in refused.err, "nobody could register"
    finally:
        for folder in (other, mine):
            shell("cluster", "stop", "--config", str(folder / "understudy.yaml"))


def test_a_jobmanager_that_has_ended_since_is_a_failure_with_the_end_of_its_log(tmp_path: Path) -> None:
    file = tmp_path / "understudy.yaml"
    file.write_text("run.dir: run\nlog.dir: log\n")
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "jobmanager.log").write_text("listens\nthe JobManager ends: the disk is full\n")
    manager, worker = Place("jobmanager", "localhost"), Place("taskmanager", "localhost")
    outcomes = [Outcome(manager, True, "started"), Outcome(worker, True, "started")]
    ended, other = Machines(load_settings(file)).still_there(outcomes)
    assert (ended.is_done, other) == (False, outcomes[1])
    assert ended.text.startswith("the jobmanager has started, and has ended since; the end of its log")
    assert ended.text.endswith("the JobManager ends: the disk is full")


def test_settings_that_nobody_has_set_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster with them may be one that was started in the wrong folder: `start` says so."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert load_settings(environment={}).is_default
    assert not load_settings(environment={}, flags={"jobmanager.port": "7421"}).is_default
    assert not load_settings(environment={"UNDERSTUDY_JOBMANAGER_PORT": "7421"}).is_default
    (tmp_path / "understudy.yaml").write_text("")
    assert not load_settings(environment={}).is_default
