"""LocalLauncher where the Python that it starts is no Python with Understudy."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from understudy import JobFailed, LocalCluster, StreamEnvironment
from understudy.runtime.clusters import local_launcher

START = local_launcher.start_template
"""As users have it: the fixtures of this folder put another one in its place."""


def test_a_python_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where Python is embedded in a server, which `sys.executable` names, or nothing at all."""
    monkeypatch.setattr(local_launcher, "start_template", START)
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    said = (
        r"no TaskManager can be started: No such file.*; they run in the Python that sys.executable names.*such/python"
    )
    with pytest.raises(FileNotFoundError, match=said):
        LocalCluster().start()


def test_a_python_that_ends_before_it_has_started_anything_is_named_in_the_jobs_failure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexit 3\n")
    python.chmod(0o755)
    monkeypatch.setattr(local_launcher, "start_template", START)
    monkeypatch.setattr(sys, "executable", str(python))
    env = StreamEnvironment()
    env.from_collection([1]).collect(name="out")
    with LocalCluster(slot_timeout_ms=500) as cluster:
        job = cluster.submit(env)
        with pytest.raises(
            JobFailed, match=rf"exited with code 3, before it had started anything \({python}\); they run"
        ):
            job.wait(timeout=400)
