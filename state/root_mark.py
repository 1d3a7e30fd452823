"""RootMark: `.understudy-root`, the file by which a checkpoint directory on a disk is known from an empty folder.

Where a volume is not mounted, its checkpoint directory is an empty folder, or can be made as one. Whoever takes that
for the directory begins from the beginning, or writes checkpoints that are hidden when the volume is back. So the mark
is made when a job is submitted and with its checkpoints, and a storage that has once seen it does nothing without it.
That it was there before this process can only be said by whoever runs it: with UNDERSTUDY_STORAGE_MUST_EXIST=1 a
directory is used only if it, or one above it, has the mark. The file is empty, and its age tells when the directory was
last used. Object stores have none.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from .durable_files import DurableFiles
from .errors import UnreachableRoot

MARK = ".understudy-root"
VARIABLE = "UNDERSTUDY_STORAGE_MUST_EXIST"


class RootMark:
    """Of one root. Where `files` are none of this machine's disks, all of this does nothing.

    `is_expected`: it must be there, though this process has not seen it; only what reads asks for that.
    """

    def __init__(self, url: str, root: str, files: DurableFiles, *, is_expected: bool = False) -> None:
        self._url = url
        self._root = root
        self._path = f"{root}/{MARK}"
        self._files = files
        self._was_seen = files.is_local and files.exists(self._path)
        self._is_expected = is_expected and files.is_local

    def check_before(self) -> None:
        """Before the directory is made. Raises UnreachableRoot where it has to be there already, and is not."""
        if self._files.is_local and _must_exist() and not any(map(self._files.exists, self._paths_upwards())):
            raise UnreachableRoot(
                self._url,
                found=f"neither it nor a folder above it has a file {MARK}, and {VARIABLE} is set: mount the volume "
                f"on which it is; where it is used for the first time: mkdir -p {self._root} && touch {self._path}",
            )

    def make(self) -> None:
        """In the directory that is there now, if it has none yet; it lasts. Raises OSError."""
        if self._files.is_local and not self._files.exists(self._path):
            self._files.write(self._path, ())
            self._files.sync_folder(self._root)
        self._was_seen = self._files.is_local

    def renew(self) -> None:
        """After a write: it is younger now than what a cleaner would remove. Raises UnreachableRoot."""
        if not self._files.is_local:
            return
        try:
            if not self._was_seen and not _must_exist():
                self.make()
            if self._was_seen:
                self._files.touch(self._path)
        except FileNotFoundError:
            self.confirm()
        except OSError:
            return  # another user's: its age stays what it is

    def confirm(self) -> None:
        """That it is there still, if this process has seen it. Raises UnreachableRoot."""
        if self._was_seen and self._is_gone():
            raise self.lost()

    def confirm_made(self) -> None:
        """The same of a directory in which a checkpoint was stored: that makes the mark, where nobody else must. Raises
        UnreachableRoot.
        """
        if (self._was_seen or (self._is_expected and not _must_exist())) and self._is_gone():
            raise self.lost()

    def has_lost(self) -> bool:
        """Whether a file that is not there says nothing, as the whole directory is another one."""
        return (self._was_seen or self._is_expected) and self._is_gone()

    def lost(self) -> UnreachableRoot:
        return UnreachableRoot(
            self._url,
            found=f"the file {MARK} that was in it is gone, so its volume is not there: mount it again, or bring back "
            f"all that was in it; if only that file was deleted: touch {self._path}",
        )

    def _paths_upwards(self) -> Iterator[str]:
        """Where the mark may be: a volume that has one has it for all directories on it."""
        folder = self._root
        while folder.strip("/"):
            yield f"{folder}/{MARK}"
            folder = os.path.dirname(folder)

    def _is_gone(self) -> bool:
        """A disk that does not answer has not lost it; a file in the directory's place is for the caller to find."""
        try:
            self._files.size_bytes(self._path)
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return False


def _must_exist() -> bool:
    return os.environ.get(VARIABLE, "") not in ("", "0")
