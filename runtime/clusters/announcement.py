"""Announcement: a small file by which other processes of the same user find a running cluster's JobManager.

It lies in the cluster's work folder (`understudy-*` in the temporary folder, mode 0700), beside the key file, so that
what removes the folder removes both. As long as the cluster runs, its process holds a lock on the file, which the
kernel lets go when the process ends in whatever way: an announcement without a lock is stale, and is removed by whoever
finds it. It holds no secret; where the key is, it says.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import stat
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from ..system.remote.address import is_reachable_base
from .work_dir import WORK_DIR_PREFIX, where_work_dirs_are

FILE_NAME = "jobmanager.json"
KEY_NAME = "key"
_MAX_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Announcement:
    """Where a JobManager is, and the key that it wants."""

    address: str
    """tcp://host:port"""
    key_file: str
    pid: int


@dataclass(frozen=True, slots=True)
class Found:
    """The announcements of this user's clusters that run, and the files of which nothing could be made."""

    running: tuple[Announcement, ...]
    unreadable: tuple[str, ...]
    """Each with why; whoever wrote it still runs."""


class Announced:
    """An announcement that stands until `close`, or until the process ends."""

    def __init__(self, folder: str | Path, address: str, key_file: str | Path) -> None:
        self.announcement = Announcement(address, str(key_file), os.getpid())
        self._path = Path(folder) / FILE_NAME
        self._file = self._write()

    def close(self) -> None:
        """Take it back; again, it does nothing."""
        if not self._file.closed:
            self._path.unlink(missing_ok=True)
            self._file.close()

    def _write(self) -> IO[str]:
        """Locked before it can be found, so nobody takes it for a stale one."""
        draft = self._path.with_suffix(".draft")
        file = os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            json.dump(asdict(self.announcement), file)
            file.flush()
            draft.rename(self._path)
        except BaseException:
            file.close()
            draft.unlink(missing_ok=True)
            raise
        return file


def find_announcements(folder: str | Path | None = None) -> Found:
    """Look through `folder`, the temporary folder when it is None. Files of clusters that are gone are removed."""
    folder = folder or where_work_dirs_are()
    if folder is None:
        return Found((), ())
    running: list[Announcement] = []
    unreadable: list[str] = []
    for path in sorted(_own_files(Path(folder))):
        try:
            running += _read(path)
        except (OSError, ValueError, TypeError) as error:
            unreadable.append(f"{path}: {error}")
    return Found(tuple(running), tuple(unreadable))


def _own_files(folder: Path) -> Iterator[Path]:
    """Announcements in folders that belong to this user and that nobody else can write to or look into."""
    for work_dir in folder.glob(f"{WORK_DIR_PREFIX}*"):
        with contextlib.suppress(OSError):
            status = work_dir.lstat()
            private = stat.S_ISDIR(status.st_mode) and not stat.S_IMODE(status.st_mode) & 0o077
            if private and status.st_uid == os.geteuid() and (work_dir / FILE_NAME).is_file():
                yield work_dir / FILE_NAME


def _read(path: Path) -> list[Announcement]:
    """What it says, if its cluster runs; a stale one is removed. Raises ValueError for something else."""
    try:
        file = path.open("rb")
    except FileNotFoundError:  # it went meanwhile
        return []
    with file:
        if _is_stale(file):
            _remove(path)
            return []
        return [_parse(file.read(_MAX_BYTES))]


def _is_stale(file: IO[bytes]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _remove(path: Path) -> None:
    """The announcement and the key beside it; the folder too if it held nothing else, as checkpoints."""
    path.unlink(missing_ok=True)
    (path.parent / KEY_NAME).unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        path.parent.rmdir()


def _parse(data: bytes) -> Announcement:
    said = json.loads(data)
    if not isinstance(said, dict) or set(said) != {"address", "key_file", "pid"}:
        raise ValueError(f"wanted address, key_file and pid, found {said!r:.80}")
    found = Announcement(**said)
    if not isinstance(found.address, str) or not is_reachable_base(found.address):
        raise ValueError(f"{found.address!r:.80} is no address: wanted tcp://host:port")
    if not isinstance(found.key_file, str) or not isinstance(found.pid, int):
        raise ValueError(f"wanted a path and a process id, found {said!r:.80}")
    return found
