"""SimulatedFileSystem: URLs of the form `sim://folder/file`, on the simulated disk of the world that is current.

    disk = SimulatedDisk()
    with using(disk):
        CheckpointStorage("sim://storage/checkpoints")

Importing this module makes the protocol known to fsspec. A file system belongs to the disk that was current when it
was made. Whatever touches the disk is an operation that the disk's hook is asked about, those of clean-up handlers
too, so a process that the hook has ended can change nothing more. Everything happens on one thread.
"""

from __future__ import annotations

import errno
import io
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, BinaryIO

import fsspec

from .disk import OpenFile, SimulatedDisk

_BUFFER_BYTES = 64 * 1024
"""A file open for writing passes on what it was given when it has gathered so much."""

_current: SimulatedDisk | None = None


@contextmanager
def using(disk: SimulatedDisk) -> Iterator[SimulatedDisk]:
    """Let `sim://` mean this disk within; afterwards it means what it meant before."""
    global _current
    previous, _current = _current, disk
    try:
        yield disk
    finally:
        _current = previous


def current_disk() -> SimulatedDisk:
    """The innermost `using`'s disk; raises RuntimeError outside of all."""
    if _current is None:
        raise RuntimeError(
            "sim:// is the disk of a simulated cluster, and this process is none: run the job with assert_exactly_once "
            "or SimulatedCluster, or give it a real path"
        )
    return _current


@lru_cache(maxsize=4096)
def _without_protocol(path: str) -> str:
    return "/" + path.removeprefix("sim://").strip("/")


class SimulatedFile(io.RawIOBase):
    """A file open for writing, with a buffer. What is in the buffer reaches the disk on `flush` and `close` only.

    It is not closed by being forgotten: that would write at the will of the garbage collector, and perhaps on behalf
    of dead processes. After a write failed, the file is of no more use: all that is done with it fails the same way,
    though `close` closes it.
    """

    def __init__(self, disk: SimulatedDisk, path: str, *, append: bool) -> None:
        super().__init__()
        self._file: OpenFile = disk.open(path, append=append)
        self._owner = disk.owner()
        self._buffer: list[bytes] = []
        self._buffered_bytes = 0
        self._position = self._file.size_bytes
        self._error: OSError | None = None

    @property
    def name(self) -> str:
        return self._file.path

    def __del__(self) -> None:
        """Unlike other files, it does nothing."""

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def write(self, data: Any) -> int:
        self._check()
        piece = data if isinstance(data, bytes) else bytes(data)
        self._buffer.append(piece)
        self._buffered_bytes += len(piece)
        self._position += len(piece)
        if self._buffered_bytes >= _BUFFER_BYTES:
            self.flush()
        return len(piece)

    def flush(self) -> None:
        self._check()
        if self._buffer:
            data = self._buffer[0] if len(self._buffer) == 1 else b"".join(self._buffer)
            self._buffer, self._buffered_bytes = [], 0
            if self._is_forsaken:
                return
            try:
                self._file.write(data)
            except OSError as error:
                self._error = error
                raise

    def sync(self) -> None:
        """What was flushed lasts."""
        self._check()
        self._file.sync()

    def close(self) -> None:
        """Flush, and be closed whether that fails or not. Closing twice is fine."""
        if self._is_forsaken:
            self._buffer, self._error = [], None
        super().close()  # which flushes first

    @property
    def _is_forsaken(self) -> bool:
        return self._owner is not None and not self._owner.is_alive

    def _check(self) -> None:
        if self.closed:
            raise ValueError("the file is closed")
        if self._error is not None:
            raise self._error


class _NeverShared(type(fsspec.AbstractFileSystem)):  # type: ignore[misc]
    """fsspec reckons for each new file system whether it has the same one already, which here is never so."""

    def __call__(cls, *args: Any, **options: Any) -> Any:
        made = type.__call__(cls, *args, **options)
        made._fs_token_, made.storage_args, made.storage_options = "sim", args, options
        return made


class SimulatedFileSystem(fsspec.AbstractFileSystem, metaclass=_NeverShared):  # type: ignore[misc]
    """All of fsspec, most of it through its own slower ways; what we use goes straight to the disk."""

    protocol = "sim"
    root_marker = "/"
    cachable = False

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._disk = current_disk()
        self._owner = self._disk.owner()

    @property
    def disk(self) -> SimulatedDisk:
        """Its disk; raises ProcessLookupError when the process that made this is dead, whoever cleans up after it."""
        if self._owner is not None and not self._owner.is_alive:
            raise ProcessLookupError(errno.ESRCH, "the process whose file system this is has ended")
        return self._disk

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(each) for each in path]
        return _without_protocol(str(path))

    # ---- what a disk offers beyond fsspec, as DurableFileSystem wants it

    def sync_file(self, file: BinaryIO) -> None:
        assert isinstance(file, SimulatedFile), f"wanted a file opened here, found {file!r}"
        file.sync()

    def sync_path(self, path: str) -> None:
        self.disk.sync(self._strip_protocol(path))

    def sync_directory(self, path: str) -> None:
        self.disk.sync_directory(self._strip_protocol(path))

    def replace(self, source: str, target: str) -> None:
        self.disk.rename(self._strip_protocol(source), self._strip_protocol(target))

    def rename_new(self, source: str, target: str) -> None:
        self.disk.rename(self._strip_protocol(source), self._strip_protocol(target), replace=False)

    def rmdir(self, path: str) -> None:
        self.disk.rmdir(self._strip_protocol(path))

    # ---- files

    def open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        """`mode`: r, w or a, with b or t. Reads see the content of the time when the file was opened."""
        if "b" not in mode:
            text = {key: options.pop(key) for key in ("encoding", "errors", "newline") if key in options}
            return io.TextIOWrapper(self.open(path, mode.replace("t", "") + "b", **options), **text)
        path = self._strip_protocol(path)
        match mode:
            case "rb":
                return io.BytesIO(self.disk.read(path))
            case "wb" | "ab":
                return SimulatedFile(self.disk, path, append=mode == "ab")
            case _:
                raise ValueError(f"mode: wanted rb, wb or ab, found {mode!r}")

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        return self.disk.read(self._strip_protocol(path), start, end)

    def rm_file(self, path: str) -> None:
        self.disk.remove(self._strip_protocol(path))

    def _rm(self, path: str) -> None:
        self.rm_file(path)

    def rm(self, path: Any, recursive: bool = False, maxdepth: int | None = None) -> None:
        """Remove files, and with `recursive` folders with all that is in them, one after the other."""
        for each in path if isinstance(path, list) else [path]:
            each = self._strip_protocol(each)
            if not recursive or not self._is_folder(each):
                self.disk.remove(each)
                continue
            for name in self.disk.list(each):
                self.rm(f"{each}/{name}", recursive=True)
            if each != "/":
                self.disk.rmdir(each)

    def mv(self, path1: str, path2: str, **_: Any) -> None:
        """A rename; into the target if that is a folder."""
        source, target = self._strip_protocol(path1), self._strip_protocol(path2)
        if self.isdir(target):
            target = f"{target}/{source.rpartition('/')[2]}"
        self.disk.rename(source, target)

    def cp_file(self, path1: str, path2: str, **_: Any) -> None:
        if self.isdir(path1):
            self.makedirs(path2, exist_ok=True)
        else:
            self.pipe_file(path2, self.cat_file(path1))

    # ---- folders and names

    def mkdir(self, path: str, create_parents: bool = True, **_: Any) -> None:
        path = self._strip_protocol(path)
        if create_parents and (above := path.rpartition("/")[0]):
            self.makedirs(above, exist_ok=True)
        self.disk.mkdir(path)

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        path = self._strip_protocol(path)
        if self.exists(path):
            if exist_ok and self._is_folder(path):
                return
            self.disk.mkdir(path)  # which says what is wrong
        if above := path.rpartition("/")[0]:
            self.makedirs(above, exist_ok=True)
        try:
            self.disk.mkdir(path)
        except FileExistsError:  # somebody else was faster, which is no error where it may exist
            if not exist_ok or not self._is_folder(path):
                raise

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        path = self._strip_protocol(path)
        if not self._is_folder(path):
            return [self.info(path)] if detail else [path]
        paths = [f"{path.rstrip('/')}/{name}" for name in self.disk.list(path)]
        return [self.info(each) for each in paths] if detail else paths

    def find(
        self, path: str, maxdepth: int | None = None, withdirs: bool = False, detail: bool = False, **_: Any
    ) -> Any:
        """All files below a path, in order; a file finds itself, and what is missing finds nothing."""
        path = self._strip_protocol(path)
        found: list[str] = []
        if self.isfile(path):
            found.append(path)
        elif self.exists(path):
            self._find(path, maxdepth, withdirs, found)
        return {each: self.info(each) for each in found} if detail else found

    def _find(self, path: str, maxdepth: int | None, withdirs: bool, found: list[str]) -> None:
        if withdirs:
            found.append(path)
        for name in self.disk.list(path) if maxdepth != 0 else ():
            below = f"{path.rstrip('/')}/{name}"
            if self._is_folder(below):
                self._find(below, None if maxdepth is None else maxdepth - 1, withdirs, found)
            else:
                found.append(below)

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        path = self._strip_protocol(path)
        stat = self.disk.stat(path)
        if stat is None:
            return {"name": path, "size": 0, "type": "directory"}
        return {"name": path, "size": stat[0], "type": "file", "mtime": stat[1], "created": stat[1]}

    def exists(self, path: str, **_: Any) -> bool:
        try:
            self.disk.stat(self._strip_protocol(path))
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def isfile(self, path: str) -> bool:
        try:
            return not self._is_folder(self._strip_protocol(path))
        except (FileNotFoundError, NotADirectoryError):
            return False

    def isdir(self, path: str) -> bool:
        try:
            return self._is_folder(self._strip_protocol(path))
        except (FileNotFoundError, NotADirectoryError):
            return False

    def invalidate_cache(self, path: str | None = None) -> None:
        """There is none."""

    def _is_folder(self, path: str) -> bool:
        return self.disk.stat(path) is None


fsspec.register_implementation("sim", SimulatedFileSystem, clobber=True)
