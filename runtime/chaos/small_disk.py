"""SmallDisk: a file system of a few megabytes that can be filled to the last byte and freed again.

A tmpfs, so it takes Linux and the right to mount: root's, or that of a user namespace of one's own (`unshare -rm`).
"""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

_BALLAST = "ballast"
_PAGE_BYTES = 4096
_SPARED_BYTES = 16 * _PAGE_BYTES
"""Left to be written page by page, as others take and free some meanwhile."""


class CannotMount(Exception):
    """A small disk could not be mounted here."""


class SmallDisk:
    """A mounted small disk. `folder` is where others write; the ballast lies beside it."""

    def __init__(self, root: Path) -> None:
        self.folder = root / "files"
        self.folder.mkdir()
        self._ballast = root / _BALLAST

    def fill(self) -> None:
        """Take every byte that is left. Space that others free later stays free, unless this is called again."""
        file = os.open(self._ballast, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            _allocate_most(file)
            _write_until_full(file, bytes(_PAGE_BYTES))
        finally:
            os.close(file)

    def free(self) -> None:
        """Give back what `fill` took."""
        self._ballast.unlink(missing_ok=True)


@contextlib.contextmanager
def small_disk(root: Path, size_bytes: int) -> Iterator[SmallDisk]:
    """Mount one at `root`, which is made, and take it away again. Raises CannotMount."""
    root.mkdir()
    _run("mount", "-t", "tmpfs", "-o", f"size={size_bytes},mode=700", "tmpfs", str(root))
    try:
        yield SmallDisk(root)
    finally:
        _run("umount", "--lazy", str(root))
        root.rmdir()


def _run(*command: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise CannotMount(f"cannot run {command[0]}: {error}") from error
    if done.returncode != 0:
        raise CannotMount(done.stderr.partition("\n")[0])


def _allocate_most(file: int) -> None:
    """At once, where writing would take a second."""
    disk = os.fstatvfs(file)
    size_bytes = disk.f_bavail * disk.f_frsize - _SPARED_BYTES
    if size_bytes > 0:
        with contextlib.suppress(OSError):  # somebody has taken it meanwhile
            os.posix_fallocate(file, os.fstat(file).st_size, size_bytes)


def _write_until_full(file: int, chunk: bytes) -> None:
    try:
        while os.write(file, chunk) == len(chunk):
            pass
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
