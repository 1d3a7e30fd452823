"""DurableFiles: an fsspec file system, used so that sealed and renamed files survive a power cut.

There are three kinds of file system below it:

- the local one, by way of the operating system;
- one that offers `DurableFileSystem` itself, as the simulated disk does;
- the rest, such as object stores. They show a file when it is whole and keep what they show; they have no folders
  that could be synced or be empty, and they rename by copying. Failed requests are tried again: store_requests.

On the first two, a file's content lasts when the file is synced, and a name (made, changed or removed) when its
folder is. No state of its own, so it is safe from any thread. It checks nothing and catches nothing unless it says so;
that of a disk which takes no more becomes UnwritableFolder.
"""

from __future__ import annotations

import errno
import os
import posixpath
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import lru_cache
from typing import Any, BinaryIO, Protocol, Self, runtime_checkable

from fsspec import AbstractFileSystem
from fsspec.implementations.local import LocalFileSystem

from .descriptor_patience import with_a_descriptor
from .file_locations import file_system_at
from .full_disk import folder_named
from .store_requests import StoreRequests

_NOT_OURS = frozenset({errno.EACCES, errno.EPERM, errno.EINVAL, errno.EROFS})
"""Syncing a folder fails so if it may only be passed through, or is of a file system that never changes."""
_CANNOT_SAY = frozenset({errno.EACCES, errno.EPERM, errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.ENOTCONN})
"""Whether a file is there nobody can say: this user may not look, or the disk or its server does not answer."""


@runtime_checkable
class DurableFileSystem(Protocol):
    """What an fsspec file system offers beyond fsspec if it is a disk with folders, as POSIX has them."""

    def sync_file(self, file: BinaryIO) -> None:
        """See that the content of an open file lasts; all of it was flushed."""

    def sync_path(self, path: str) -> None:
        """The same for what a file of this name holds now, whoever wrote it. Raises FileNotFoundError."""

    def sync_directory(self, path: str) -> None:
        """See that the names in a folder last, and also that those taken out of it are gone."""

    def replace(self, source: str, target: str) -> None:
        """Rename a file in one step, in place of another one if there is one. Raises FileNotFoundError."""

    def rename_new(self, source: str, target: str) -> None:
        """The same where there is none yet; raises FileExistsError, having changed nothing. Of several one succeeds."""

    def rmdir(self, path: str) -> None:
        """Remove an empty folder; raises OSError when it is not empty, or missing."""


class _OperatingSystem:
    """The local disk."""

    def sync_file(self, file: BinaryIO) -> None:
        os.fsync(file.fileno())

    def sync_path(self, path: str) -> None:
        with _opened(path) as descriptor:
            os.fsync(descriptor)

    def sync_directory(self, path: str) -> None:
        self.sync_path(path)

    def replace(self, source: str, target: str) -> None:
        os.replace(source, target)

    def rename_new(self, source: str, target: str) -> None:
        os.link(source, target)
        os.unlink(source)

    def rmdir(self, path: str) -> None:
        os.rmdir(path)


@contextmanager
def _opened(path: str) -> Iterator[int]:
    descriptor = with_a_descriptor(lambda: os.open(path, os.O_RDONLY))
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@lru_cache(maxsize=64)
def _is_durable(kind: type) -> bool:
    """Whether file systems of this class offer it; a Protocol is slow to ask."""
    return issubclass(kind, DurableFileSystem)


def special_kind(path: str) -> str | None:
    """What a local path leads to, if that is neither a file nor a folder: a pipe, a socket, a device."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return None
    special = {stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket"}
    is_usual = stat.S_ISREG(mode) or stat.S_ISDIR(mode)
    return None if is_usual else special.get(stat.S_IFMT(mode), "a device")


@contextmanager
def _as_far_as_one_can() -> Iterator[None]:
    """Another owner syncs what lies in a place of his."""
    try:
        yield
    except OSError as error:
        if error.errno not in _NOT_OURS:
            raise


def _go_ahead() -> None:
    """Folders may be made anywhere."""


class DurableFiles:
    """All paths are `fs`'s own, without a protocol."""

    def __init__(self, fs: AbstractFileSystem) -> None:
        self.fs = fs
        self._is_local = isinstance(fs, LocalFileSystem)
        self._disk: DurableFileSystem | None = None
        if self._is_local:
            self._disk = _OperatingSystem()
        elif _is_durable(fs.__class__):
            self._disk = fs
        self._requests = StoreRequests(fs) if self._disk is None else None
        self.before_making_folders: Callable[[], None] = _go_ahead
        """Raises where there should be folders already, as on a disk that is not there."""

    @classmethod
    def at(cls, url: str) -> tuple[Self, str]:
        """The files of a local path or a URL that fsspec knows, and the path in them."""
        fs, path = file_system_at(url)
        return cls(fs), path

    @property
    def is_local(self) -> bool:
        """Whether its paths are those of this machine's file system."""
        return self._is_local

    @property
    def has_folders(self) -> bool:
        """Whether folders exist by themselves; else they are but the beginnings of names."""
        return self._disk is not None

    def _named(self, path: str) -> AbstractContextManager[None]:
        return folder_named(path, is_local=self._is_local)

    def canonical(self, path: str) -> str:
        """One path for all ways to write it; the links of a local one are followed."""
        if self._is_local:
            return os.path.realpath(path)
        return posixpath.normpath(path).rstrip("/") if path else path

    # ---- writing

    def create(self, path: str, local: Callable[[str], BinaryIO] | None = None) -> BinaryIO:
        """A new, empty file, open for writing, in place of another one if there is one. `local`: what opens it on the
        local disk, if not Python's `open`.
        """
        with self._named(path):
            opened = local if self._is_local and local is not None else lambda path: self.fs.open(path, "wb")
            file: Any = with_a_descriptor(lambda: opened(path))
        return file  # type: ignore[no-any-return]

    def write(self, path: str, parts: Iterable[bytes]) -> None:
        """A file with this content, which lasts; its name does when its folder is synced. A store shows it whole, or
        not at all.
        """
        if self._requests is not None:
            self._requests.write(path, b"".join(parts))
            return
        with self._named(path), self.create(path) as file:
            for part in parts:
                file.write(part)
            self.sync(file)

    def write_new(self, path: str, temporary: str, parts: Iterable[bytes]) -> None:
        """A file with this content, there whole or not at all; FileExistsError if there is one already. Its name lasts
        once its folder is synced. Of several at once one succeeds, in a store that can create without replacing.
        """
        if self._requests is not None:
            self._requests.write_new(path, b"".join(parts))
            return
        assert self._disk is not None, "a disk, or a store that is asked by requests"
        self.write(temporary, parts)
        self._disk.rename_new(temporary, path)

    def seal(self, file: BinaryIO) -> None:
        """Close a file whose content lasts from now on. If that fails, the file may still be open."""
        self.sync(file)
        file.close()

    def sync(self, file: BinaryIO) -> None:
        """See that what was written to an open file lasts."""
        file.flush()
        if self._disk is not None:
            self._disk.sync_file(file)

    # ---- reading

    def read(self, path: str, start: int | None = None, end: int | None = None, *, is_there: bool = False) -> bytes:
        """The whole file, or the bytes from `start` to `end`. `is_there`: it was written, so a store that does not find
        it is asked again. Raises FileNotFoundError; of a disk what it raises, of a store RequestFailed.
        """
        if self._requests is not None:
            return self._requests.read(path, start, end, is_there=is_there)
        data: bytes = self.fs.cat_file(path, start=start, end=end)
        return data

    def size_bytes(self, path: str, *, is_there: bool = False) -> int:
        """Of a file; raises as `read`."""
        if self._requests is not None:
            return self._requests.size_bytes(path, is_there=is_there)
        return int(self.fs.info(path)["size"])

    def opened_size_bytes(self, path: str) -> int:
        """The same on the local disk, as it is once the file is open: NFS may know an older size by the name."""
        with _opened(path) as descriptor:
            return os.fstat(descriptor).st_size

    # ---- names

    def replace(self, source: str, target: str) -> None:
        """Rename a sealed file, in place of another one if there is one; the new name lasts."""
        self.rename(source, target)
        self.sync_folder(posixpath.dirname(target))

    def rename(self, source: str, target: str) -> None:
        """The same, but that the new name lasts only once its folder is synced."""
        if self._disk is None:
            self.fs.mv(source, target)
        else:
            self._disk.replace(source, target)

    def remove(self, path: str) -> None:
        """Remove a file; an absent one is fine. It may be back after a power cut, unless its folder is synced."""
        if self._requests is not None:
            self._requests.remove(path)
            return
        with suppress(FileNotFoundError):
            self.fs.rm_file(path)

    def touch(self, path: str) -> None:
        """Make a file young, on the local disk. Raises FileNotFoundError."""
        os.utime(path)

    def exists(self, path: str) -> bool:
        """Whether there is a file or folder now."""
        self.fs.invalidate_cache()
        return bool(self.fs.exists(path) if self._requests is None else self._requests.kind(path))

    def is_file(self, path: str) -> bool:
        """Whether there is a file now. Raises OSError where a local folder cannot be looked into."""
        if self._requests is not None:
            return self._requests.kind(path) == "file"
        if self._is_local and os.path.isabs(path):
            try:
                os.stat(path)
            except OSError as error:
                if error.errno in _CANNOT_SAY:
                    raise
        return bool(self.fs.isfile(path))

    def sync_folder(self, path: str) -> None:
        """See that all names in a folder last."""
        if self._disk is not None:
            with self._named(f"{path}/"):
                self._disk.sync_directory(path)

    # ---- folders

    def make_folder(self, path: str) -> None:
        """Make a folder and those above it, if they are missing. Those that were made here last. Raises what
        `before_making_folders` does, too.

        One that is there already may be another process's, which did not come to sync it: see `sync_up`.
        """
        if self._requests is not None:
            self._requests.make_folder(path)
            return
        there = path
        while not self.fs.isdir(there) and there != posixpath.dirname(there):
            there = posixpath.dirname(there)
        if there != path:
            self.before_making_folders()
            with self._named(f"{path}/"):
                self.fs.makedirs(path, exist_ok=True)
            self.sync_up(posixpath.dirname(path), there)

    def sync_up(self, path: str, top: str) -> None:
        """Sync the folder `path` and all those above it up to `top`, whoever made them, as far as one can."""
        while self._disk is not None:
            with _as_far_as_one_can(), self._named(f"{path}/"):
                self._disk.sync_directory(path)
            if len(path) <= len(top):
                return
            path = posixpath.dirname(path)

    def sync_found(self, path: str, top: str) -> None:
        """See that a file lasts as it was just read, with its name and the folders above it up to `top`. Its writer may
        have died, or stand still, before it came to that. As far as one can; raises FileNotFoundError.
        """
        if self._disk is not None:
            with _as_far_as_one_can():
                self._disk.sync_path(path)
            self.sync_up(posixpath.dirname(path), top)

    def remove_folder(self, path: str) -> None:
        """With all that is in it. Raises FileNotFoundError, also half-way, when others remove from it too."""
        if self._requests is not None:
            self._requests.remove_folder(path)
        else:
            self.fs.rm(path, recursive=True)

    def remove_empty_folder(self, path: str) -> bool:
        """Whether it was there and empty, and could be removed; a store without folders keeps none."""
        if self._disk is not None:
            with suppress(OSError):
                self._disk.rmdir(path)
                return True
        return False

    def remove_empty_folders(self, folder: str) -> None:
        """Those below a folder, the deepest first; they are gone permanently, with what was removed there before."""
        if self._disk is None:
            return
        self.fs.invalidate_cache()
        for path in sorted(self.fs.find(folder, withdirs=True), key=len, reverse=True):
            if path != folder and self.fs.isdir(path):
                self.remove_empty_folder(path)
        self.sync_folder(folder)

    def names(self, folder: str) -> list[str]:
        """The names of all that lies in a folder, in order; none for a missing one."""
        self.fs.invalidate_cache()
        try:
            found = self.fs.ls(folder, detail=False) if self._requests is None else self._requests.names(folder)
        except FileNotFoundError:
            return []
        return sorted(path.rstrip("/").rpartition("/")[2] for path in found)

    def find(self, folder: str, *, is_whole: bool = False) -> list[str]:
        """The paths of all files below a folder; none for a missing one. `is_whole`: raises OSError where a local
        folder below it cannot be listed, as one that this user may not read; else what is in that is left out.
        """
        self.fs.invalidate_cache()
        if is_whole and self._is_local:
            return sorted(self._below(folder))
        return list(self.fs.find(folder)) if self._requests is None else self._requests.find(folder)

    def _below(self, folder: str) -> Iterator[str]:
        try:
            found = self.fs.ls(folder, detail=True)
        except (FileNotFoundError, NotADirectoryError):  # also one that was removed just now
            return
        except PermissionError as error:
            raise PermissionError(
                error.errno,
                f"{error.strerror}: cannot look into {folder}: user {os.geteuid()} of this host may not: let that user "
                "read what is there",
            ) from error
        for each in found:
            if each["type"] == "directory":
                yield from self._below(each["name"])
            else:
                yield each["name"]
