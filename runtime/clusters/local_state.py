"""Where a TaskManager's process keeps state on its own machine: a folder of its own for what it works on, and one for
copies of snapshots, which the next process reads that comes back here.

    <folder>/understudy-state-<job>/working/<TaskManager>         goes with its process
    <folder>/understudy-state-<job>/working/<TaskManager>.lock    held as long as the process lives
    <folder>/understudy-state-<job>/copies/...                    goes with the last process that ends in order

A process that was killed leaves its folder behind: the next one of the job on this machine finds nobody holding the
lock, and removes it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO
from urllib.parse import quote

from ...messages import JobId, LocalState, TaskManagerId
from ...state import ROCKSDB, UnwritableRoot, WorkingState
from ..connectors.errors import check_extra

_LOCK = ".lock"


@contextmanager
def local_state_of(
    wanted: LocalState,
    state_backend: str,
    job_id: JobId,
    task_manager_id: TaskManagerId,
    *,
    slots: int,
    otherwise: str | None,
) -> Iterator[WorkingState]:
    """For the life of the process. `otherwise`: the folder where the job's settings name none; None: that of temporary
    files. Raises UnwritableRoot, and MissingExtra if RocksDB is wanted and not installed.
    """
    is_rocks = state_backend == ROCKSDB
    if not (is_rocks or wanted.copies):
        yield WorkingState()
        return
    if is_rocks:
        check_extra("rocksdict", extra="rocksdb", wanted_by='state_backend="rocksdb"')
    root = wanted.directory or otherwise or tempfile.gettempdir()
    of_job = os.path.join(root, f"understudy-state-{quote(job_id, safe='')}")
    working, copies = os.path.join(of_job, "working"), os.path.join(of_job, "copies")
    own = os.path.join(working, task_manager_id)
    try:
        os.makedirs(copies, mode=0o700, exist_ok=True)
        os.makedirs(own, mode=0o700)
        lock = _own_lock(own + _LOCK)
    except OSError as error:
        raise UnwritableRoot(root, error, "folder for local state (state_dir)") from error
    with lock:
        _sweep(working)
        memory_mb = wanted.memory_mb * slots
        try:
            yield WorkingState(own, memory_mb, copies=copies if wanted.copies else None)
        finally:
            shutil.rmtree(own, ignore_errors=True)
            with suppress(OSError):
                os.unlink(own + _LOCK)
            _sweep(working)
            with suppress(OSError):  # others of this job still run here
                os.rmdir(working)
                shutil.rmtree(of_job, ignore_errors=True)


def _own_lock(path: str) -> IO[bytes]:
    """Locked before it has its name: whoever sees it finds it held."""
    unnamed = path + "-new"
    lock = _locked(unnamed)
    assert lock is not None, f"{path} is of another process"
    os.rename(unnamed, path)
    return lock


def _sweep(working: str) -> None:
    """Remove what processes have left that are gone."""
    for name in os.listdir(working):
        if not name.endswith(_LOCK):
            continue
        path = os.path.join(working, name)
        with suppress(OSError):
            lock = _locked(path)
            if lock is not None:
                with lock:
                    shutil.rmtree(path.removesuffix(_LOCK), ignore_errors=True)
                    os.unlink(path)


def _locked(path: str) -> IO[bytes] | None:
    """The file, locked; None while another process holds it."""
    file = open(path, "ab")  # noqa: SIM115 - it is open as long as it is held
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file
