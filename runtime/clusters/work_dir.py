"""The folder in which a process keeps what goes with it: `understudy-*.d`, in the temporary folder, mode 0700.

Systems clean their temporary folders of what is old, and a process may live for years. So it holds a lock on its
folder, which systemd-tmpfiles heeds, and looks before each use whether another cleaner has removed it. An empty one
without a lock is of a process that was killed: the next one that makes its own removes it.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import re
import shutil
import stat
import tempfile
import time
from contextlib import suppress

from ...state.errors import UnwritableFolder

log = logging.getLogger(__name__)

WORK_DIR_PREFIX = "understudy-"
_SUFFIX = ".d"
"""By which it is known from `understudy-archives`, a folder of the user's."""
_MADE_HERE = re.compile(rf"{WORK_DIR_PREFIX}[a-z0-9_]{{8}}{re.escape(_SUFFIX)}")
"""No folder of a harness, or of RocksDB, which hold no lock."""
_SETTLED_S = 60.0
"""One that is younger may be about to be locked."""

_locks: dict[str, int] = {}
"""Of the folders of this process, descriptors that hold a lock on each."""


def made_work_dir() -> str:
    """A new one; whoever made it calls `remove_work_dir`. Raises UnwritableFolder."""
    _remove_left_behind()
    try:
        work_dir = tempfile.mkdtemp(prefix=WORK_DIR_PREFIX, suffix=_SUFFIX)
        _lock(work_dir)
    except OSError as error:
        raise UnwritableFolder(
            error.errno,
            f"no temporary folder can be written: {error.strerror}; set TMPDIR to a folder that this user can write "
            "to (in a container with a read-only file system: an emptyDir or tmpfs)",
        ) from error
    return work_dir


def _remove_left_behind() -> None:
    """The empty ones of this user whose processes have ended. What holds anything stays: somebody may want it."""
    with suppress(OSError), os.scandir(tempfile.gettempdir()) as found:
        for each in found:
            if _MADE_HERE.fullmatch(each.name) and each.is_dir(follow_symlinks=False):
                with suppress(OSError):
                    _remove_if_left(each)


def _remove_if_left(folder: os.DirEntry[str]) -> None:
    """Raises OSError for one that is not, or holds something."""
    about = folder.stat(follow_symlinks=False)
    is_own = about.st_uid == os.geteuid() and stat.S_IMODE(about.st_mode) == 0o700
    if not is_own or time.time() - about.st_mtime < _SETTLED_S or os.listdir(folder.path):
        return
    lock = os.open(folder.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.rmdir(folder.path)
    finally:
        os.close(lock)


def see_work_dir(work_dir: str) -> None:
    """Make it again if somebody has removed it. Raises UnwritableFolder where something of others is in its place, and
    OSError.
    """
    try:
        os.mkdir(work_dir, 0o700)
    except FileExistsError:
        found = os.lstat(work_dir)
        is_own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
        if not is_own or stat.S_IMODE(found.st_mode) & 0o022:
            raise UnwritableFolder(
                errno.EPERM,
                f"{work_dir} is not the folder that this process made there, which nobody else can write to: somebody "
                "has put something else in its place; remove that",
            ) from None
        if stat.S_IMODE(found.st_mode) == 0o700:
            return
        os.chmod(work_dir, 0o700)  # whoever wrote a checkpoint of this process there has made it again
    log.warning(
        "the work folder %s was removed by somebody, and is made again: let what cleans %s leave %s* alone, or set "
        "TMPDIR to a folder that nobody cleans",
        work_dir,
        os.path.dirname(work_dir),
        WORK_DIR_PREFIX,
    )
    _lock(work_dir)


def remove_work_dir(work_dir: str) -> None:
    """With all that it holds, as far as that can be removed; again, it does nothing."""
    shutil.rmtree(work_dir, ignore_errors=True)
    if (lock := _locks.pop(work_dir, None)) is not None:
        os.close(lock)


def where_work_dirs_are() -> str | None:
    """The temporary folder; None where none can be written: no process that had one is here then."""
    try:
        return tempfile.gettempdir()
    except OSError:
        return None


def _lock(work_dir: str) -> None:
    """A shared one, as nobody is to be kept from it but cleaners. Some file systems lock nothing."""
    lock = os.open(work_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    with suppress(OSError):
        fcntl.flock(lock, fcntl.LOCK_SH)
    if (before := _locks.pop(work_dir, None)) is not None:
        os.close(before)
    _locks[work_dir] = lock
