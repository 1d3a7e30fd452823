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
_CHUNK = 1 << 20
_PAGE = 4096


class CannotMount(Exception):
    """A small disk could not be mounted here."""


class SmallDisk:
    """A mounted small disk. `folder` is where others write; the ballast lies beside it."""

    def __init__(self, root: Path) -> None:
        self.folder = root / "files"
        self.folder.mkdir()
        self._ballast = root / _BALLAST

    def fill(self) -> None:
        """Take every byte that is left. What others delete later is free again, unless this is called again."""
        file = os.open(self._ballast, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            for size in (_CHUNK, _PAGE):
                _write_until_full(file, bytes(size))
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
        raise CannotMount(f"{command[0]}: {done.stderr.strip()}")


def _write_until_full(file: int, chunk: bytes) -> None:
    try:
        while os.write(file, chunk) == len(chunk):
            pass
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
