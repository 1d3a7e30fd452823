"""Clusters of real processes, and the check that nothing of them stays behind."""

from __future__ import annotations

import contextlib
import os
import re
import sys
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
from understudy.runtime.clusters import local_launcher

from ...prepared import Prepared, Started
from . import jobs
from .jobs import eventually

cloudpickle.register_pickle_by_value(jobs)

MARK = "UNDERSTUDY_TEST"
"""Environment variable by which the processes that a test has started are known, whoever their parent is by now."""


_templates: dict[int, str] = {}
"""Process groups of forked template processes, and the mark that each was started with."""


@pytest.fixture(autouse=True, scope="module")
def _forked_templates(prepared: Prepared) -> Iterator[None]:
    """A cluster's template process is forked from one that has everything imported. That a new interpreter does as
    well, scripts show that are started as users start them: test_ending.py, test_readme.py, test_demo.py.

    For the modules of this folder alone: others know their processes by the environment that these were started with.
    """

    def start(*arguments: Any) -> Started:
        template = prepared.start_template(*arguments)
        _templates[template.pid] = os.environ.get(MARK, "")
        return template

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local_launcher, "start_template", start)
        yield


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
    shared = [request.getfixturevalue(name) for name in _SHARED if name in request.fixturenames]
    before = [len(cluster.handles) for cluster in shared]
    with _nothing_left(tmp_path_factory.mktemp("temporary"), "-blocking_" if shared else None) as folder:
        yield folder
        for cluster, count in zip(shared, before, strict=True):
            for job in cluster.handles[count:]:  # those of a test that has failed
                job.cancel()


_SHARED = ("shared_cluster", "tcp_cluster")


@pytest.fixture(scope="session")
def shared_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """Two TaskManagers of one slot, for tests that do the cluster no harm; one cluster for all tests of a worker."""
    yield from _living_on(tmp_path_factory.mktemp("temporary"), LocalCluster(2, heartbeat_interval_ms=200))


@pytest.fixture(scope="session")
def tcp_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """The same, where records pass through TCP."""
    cluster = LocalCluster(2, heartbeat_interval_ms=200, unix_sockets=False)
    yield from _living_on(tmp_path_factory.mktemp("temporary"), cluster)


def _living_on(temporary: Path, cluster: LocalCluster) -> Iterator[LocalCluster]:
    """It leaves no process and no file behind either. Its threads are not looked for here: other tests' threads start
    and end beside it, and tests with a cluster of their own look for theirs.
    """
    with _marked(temporary) as mark:
        cluster.start()
    yield cluster
    cluster.close()
    assert not processes_of(mark)
    assert os.listdir(temporary) == []


@pytest.fixture
def start_cluster() -> Iterator[Callable[..., LocalCluster]]:
    """Make and start a cluster of the test's own; closed after the test if the test does not."""
    with contextlib.ExitStack() as stack:

        def start(task_managers: int = 2, **settings: Any) -> LocalCluster:
            return stack.enter_context(LocalCluster(task_managers=task_managers, **settings))

        yield start


@contextlib.contextmanager
def _nothing_left(temporary: Path, but_threads: str | None = None) -> Iterator[Path]:
    threads, processes = set(threading.enumerate()), _descendants()
    with _marked(temporary) as mark:
        yield temporary
    left = [process for process in processes_of(mark) if process.pid not in processes]
    for process in left:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    assert not left, f"left running: {left}"
    eventually(lambda: not _descendants() - processes, "the end of child processes")
    eventually(lambda: not _new_threads(threads, but_threads), f"the end of {_new_threads(threads, but_threads)}")
    assert os.listdir(temporary) == []


@contextlib.contextmanager
def _marked(temporary: Path) -> Iterator[str]:
    """Processes that are started meanwhile bear a mark, and have `temporary` for their temporary files."""
    mark = uuid.uuid4().hex
    before = (os.environ.get(MARK), os.environ.get("TMPDIR"), tempfile.tempdir)
    os.environ[MARK], os.environ["TMPDIR"], tempfile.tempdir = mark, str(temporary), str(temporary)
    try:
        yield mark
    finally:
        _restore(MARK, before[0])
        _restore("TMPDIR", before[1])
        tempfile.tempdir = before[2]


def _new_threads(before: set[threading.Thread], but: str | None) -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each not in before and not (but and but in each.name)]


def _restore(name: str, value: str | None) -> None:
    if value is None:
        del os.environ[name]
    else:
        os.environ[name] = value


def processes_of(mark: str) -> list[psutil.Process]:
    """Every living process that was started with this mark in its environment, or by a template that was."""
    found = []
    for pid in psutil.pids():
        with contextlib.suppress(psutil.Error, OSError):
            if mark in (_mark_of(pid), _templates.get(os.getpgid(pid))):
                process = psutil.Process(pid)
                if process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
    return found


def _mark_of(pid: int) -> str | None:
    """Where there is /proc it is read at once: each test looks at all processes that there are."""
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except FileNotFoundError:
        return psutil.Process(pid).environ().get(MARK)
    found = re.search(rb"(?:^|\0)%s=([^\0]*)" % MARK.encode(), environment)
    return found[1].decode() if found else None


def _descendants() -> set[int]:
    if sys.platform != "linux":
        return {each.pid for each in psutil.Process().children(recursive=True)}
    found: set[int] = set()
    waiting = {os.getpid()}
    while waiting:
        children = set(_children(waiting.pop()))
        found |= children
        waiting |= children
    return found


def _children(pid: int) -> Iterator[int]:
    with contextlib.suppress(OSError):  # it has ended
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):
                yield from map(int, Path(f"/proc/{pid}/task/{thread}/children").read_text().split())
