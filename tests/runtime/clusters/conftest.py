"""Clusters of real processes, and the check that nothing of them stays behind."""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import psutil
import pytest

from understudy import LocalCluster

from . import jobs
from .jobs import eventually

cloudpickle.register_pickle_by_value(jobs)

MARK = "UNDERSTUDY_TEST"
"""Environment variable by which the processes that a test has started are known, whoever their parent is by now."""


@pytest.fixture(autouse=True, scope="module")
def _ship_by_value(request: pytest.FixtureRequest) -> Iterator[None]:
    """TaskManagers cannot import test modules: what a test defines travels whole."""
    cloudpickle.register_pickle_by_value(request.module)
    yield
    cloudpickle.unregister_pickle_by_value(request.module)


@pytest.fixture(autouse=True)
def nothing_is_left(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """After every test: no process, no thread and no temporary file that was not there before.

    A cluster that lives on keeps its pool of threads, which grows when it is used.
    """
    shared = request.getfixturevalue("shared_cluster") if "shared_cluster" in request.fixturenames else None
    with _nothing_left(tmp_path_factory.mktemp("temporary"), "-blocking_" if shared else None) as folder:
        yield folder
        for job in shared._handles if shared else ():  # those of a test that has failed
            job.cancel()


@pytest.fixture(scope="module")
def shared_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """Two TaskManagers of one slot, for tests that do the cluster no harm. It leaves nothing behind either."""
    with _nothing_left(tmp_path_factory.mktemp("temporary")), LocalCluster(2, heartbeat_interval_ms=200) as cluster:
        yield cluster


@pytest.fixture
def start_cluster() -> Iterator[Callable[..., LocalCluster]]:
    """Make and start a cluster of the test's own; closed after the test if the test does not."""
    with contextlib.ExitStack() as stack:

        def start(task_managers: int = 2, **settings: Any) -> LocalCluster:
            return stack.enter_context(LocalCluster(task_managers=task_managers, **settings))

        yield start


@contextlib.contextmanager
def _nothing_left(temporary: Path, but_threads: str | None = None) -> Iterator[Path]:
    mark = uuid.uuid4().hex
    before = (os.environ.get(MARK), os.environ.get("TMPDIR"), tempfile.tempdir)
    threads, processes = set(threading.enumerate()), set(psutil.Process().children(recursive=True))
    os.environ[MARK], os.environ["TMPDIR"], tempfile.tempdir = mark, str(temporary), str(temporary)
    try:
        yield temporary
    finally:
        _restore("UNDERSTUDY_TEST", before[0])
        _restore("TMPDIR", before[1])
        tempfile.tempdir = before[2]
    left = [process for process in processes_of(mark) if process not in processes]
    for process in left:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    assert not left, f"left running: {left}"
    eventually(lambda: not set(psutil.Process().children(recursive=True)) - processes, "the end of child processes")
    eventually(lambda: not _new_threads(threads, but_threads), f"the end of {_new_threads(threads, but_threads)}")
    assert os.listdir(temporary) == []


def _new_threads(before: set[threading.Thread], but: str | None) -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each not in before and not (but and but in each.name)]


def _restore(name: str, value: str | None) -> None:
    if value is None:
        del os.environ[name]
    else:
        os.environ[name] = value


def processes_of(mark: str) -> list[psutil.Process]:
    """Every living process that was started with this mark in its environment."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE and process.environ().get(MARK) == mark:
                found.append(process)
    return found
