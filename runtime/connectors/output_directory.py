"""OutputDirectory: where a sink's files are written, sealed and published.

Files in progress lie in a hidden folder below the output, whose name begins with a dot, so that Spark and other
readers do not see them. A file is published by renaming it, which is atomic on a file system; an object store
copies, and shows the copy when it is whole. On a local disk what was sealed or published also survives a power cut.
Any fsspec URL will do.
"""

from __future__ import annotations

import contextlib
import os
from typing import Any, BinaryIO

from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem

from .errors import LostTransaction

_TRIES = 5
"""Another subtask that ends may remove the hidden folder between its making and the file's."""


class OutputDirectory:
    """One output directory, with one hidden folder. All names are relative to these two."""

    def __init__(self, url: str, hidden: str) -> None:
        self._fs, root = url_to_fs(url)
        self.root = root.rstrip("/")
        self.hidden = f"{self.root}/{hidden}"
        self._local = isinstance(self._fs, LocalFileSystem)

    def create(self, name: str) -> BinaryIO:
        """A new file in progress."""
        path = f"{self.hidden}/{name}"
        for _ in range(_TRIES - 1):
            self._fs.makedirs(self.hidden, exist_ok=True)
            with contextlib.suppress(FileNotFoundError):
                return self._open(path)
        return self._open(path)

    def seal(self, file: BinaryIO) -> None:
        """Close the file and see that it lasts."""
        file.flush()
        if self._local:
            os.fsync(file.fileno())
        file.close()
        self._sync(self.hidden)

    def publish(self, name: str, final: str) -> None:
        """Make a sealed file visible as `final`. Doing it twice is doing it once; raises LostTransaction."""
        source, target = f"{self.hidden}/{name}", f"{self.root}/{final}"
        try:
            if self._local:
                os.replace(source, target)
            else:
                self._fs.mv(source, target)
        except FileNotFoundError:
            self._fs.invalidate_cache()
            if not self._fs.exists(target):
                raise LostTransaction(
                    f"neither the pre-committed file {source} nor the committed one {target} exists: "
                    "committed records are lost"
                ) from None
        self._sync(self.root)

    def remove(self, name: str) -> None:
        """Remove a file in progress; an absent one is fine."""
        with contextlib.suppress(FileNotFoundError):
            self._fs.rm_file(f"{self.hidden}/{name}")

    def in_progress(self) -> list[str]:
        """The names of all files in progress, of whichever subtask and attempt."""
        return self._names(self.hidden)

    def committed(self, beginning: str) -> list[str]:
        """The names of all visible files that begin so."""
        return [name for name in self._names(self.root) if name.startswith(beginning)]

    def take_back(self, final: str) -> None:
        """Remove a visible file; an absent one is fine."""
        with contextlib.suppress(FileNotFoundError):
            self._fs.rm_file(f"{self.root}/{final}")
        self._sync(self.root)

    def _names(self, folder: str) -> list[str]:
        self._fs.invalidate_cache()
        try:
            paths = self._fs.ls(folder, detail=False)
        except FileNotFoundError:
            return []
        return sorted(path.rstrip("/").rpartition("/")[2] for path in paths)

    def remove_hidden_if_empty(self) -> None:
        """Only on a local disk, which refuses to remove a folder that is not empty; object stores have no folders."""
        if self._local:
            with contextlib.suppress(OSError):
                os.rmdir(self.hidden)

    def _open(self, path: str) -> BinaryIO:
        file: Any = self._fs.open(path, "wb")
        return file  # type: ignore[no-any-return]

    def _sync(self, folder: str) -> None:
        """A rename or a new name lasts when its folder is synced."""
        if self._local:
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
