"""SimulatedDisk: a tree of folders and files in memory, with faults, and with what POSIX promises about a crash.

Every write is visible at once, but lasts only when it was synced: a file's content when the file is synced, a
name (made, renamed, removed) when its folder is. `crash` is the power cut: of each file a prefix of what was not
synced is left, and of each folder a prefix of the changes since it was synced; a rename survives in both folders or
in neither. The death of a process is no crash: nothing of what it wrote is lost.

Each operation first asks the hook, which may count it, delay what comes after it, refuse it (OSError), tear it
(`TornWrite`), or kill whoever does it. An operation that was refused has done nothing. The disk knows no time but
`now` and no chance but what `crash` is given. Paths are absolute, and "." and ".." mean nothing special.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from random import Random
from typing import Literal, NamedTuple, Protocol

from .disk_nodes import Change, File, Folder, part

OperationKind = Literal[
    "open", "write", "read", "sync", "sync_directory", "rename", "remove", "list", "stat", "mkdir", "rmdir"
]


class DiskOperation(NamedTuple):
    """The next operation. "open" is for writing: it makes the file, or empties it, or appends to it."""

    kind: OperationKind
    path: str
    size_bytes: int = 0
    target: str = ""


class DiskHooks(Protocol):
    """Asked before each operation. See `SimulatedDisk` for what it may raise."""

    def before(self, operation: DiskOperation) -> None: ...


class Owner(Protocol):
    """Whoever acts on the disk: a process, say."""

    is_alive: bool


class NoFaults:
    """Every operation succeeds."""

    def before(self, operation: DiskOperation) -> None:
        pass


class TornWrite(Exception):
    """A hook's answer to a write: only `bytes_through` bytes arrive, and then `error` is raised."""

    def __init__(self, bytes_through: int, error: BaseException) -> None:
        super().__init__(f"{bytes_through} bytes arrive, then {error!r}")
        self.bytes_through = bytes_through
        self.error = error


class OpenFile:
    """A file open for writing, with no buffer of its own. It is the file itself, whatever becomes of its name."""

    __slots__ = ("_disk", "_file", "path")

    def __init__(self, disk: SimulatedDisk, file: File, path: str) -> None:
        self._disk = disk
        self._file = file
        self.path = path

    @property
    def size_bytes(self) -> int:
        return len(self._file.content)

    def write(self, data: bytes) -> None:
        """Append. When it fails, none of it has arrived, or a part: torn by the hook, or by the disk's end (ENOSPC)."""
        self._disk._write(self._file, self.path, data)

    def sync(self) -> None:
        """All that was written lasts."""
        self._disk._hooks.before(DiskOperation("sync", self.path))
        self._file.sync()


class SimulatedDisk:
    """One disk. The hook may raise OSError, TornWrite, or any BaseException to end whoever does the operation.

    `owner` says who acts now. Files that a dead owner left open write nothing, and ask no hook, when they are
    garbage collected: that may be at any time, on behalf of anybody.
    """

    def __init__(
        self,
        *,
        now: Callable[[], float] = lambda: 0.0,
        hooks: DiskHooks | None = None,
        capacity_bytes: int | None = None,
        owner: Callable[[], Owner | None] = lambda: None,
    ) -> None:
        self.owner = owner
        self.capacity_bytes = capacity_bytes
        self.used_bytes = 0
        self._now = now
        self._hooks: DiskHooks = hooks or NoFaults()
        self._root = Folder()
        self._changed: dict[Folder, None] = {}
        """Folders with changes that do not last yet, in the order of their first one."""

    # ---- files

    def open(self, path: str, *, append: bool = False) -> OpenFile:
        """Open a file for writing; it is made if it is not there, and else emptied unless `append`."""
        self._hooks.before(DiskOperation("open", path))
        folder, name = self._place(path)
        file = folder.entries.get(name)
        if isinstance(file, Folder):
            raise _error(errno.EISDIR, path)
        if file is None:
            file = File(self._now())
            self._change(Change((folder, name, file)))
        elif not append:
            self.used_bytes -= len(file.content)
            file.empty()
            file.modified = self._now()
        return OpenFile(self, file, path)

    def read(self, path: str, start: int | None = None, end: int | None = None) -> bytes:
        """The bytes of a file, or a slice of them."""
        self._hooks.before(DiskOperation("read", path))
        return bytes(self._file(path).content[start:end])

    def remove(self, path: str) -> None:
        """Remove a file. Who has it open may go on writing to it."""
        self._hooks.before(DiskOperation("remove", path))
        file = self._file(path)
        folder, name = self._place(path)
        self._unlink(file)
        self._change(Change((folder, name, None)))

    def rename(self, source: str, target: str, *, replace: bool = True) -> None:
        """Move a file or folder in one step, in place of a file that is there if `replace`; never of a folder."""
        self._hooks.before(DiskOperation("rename", source, 0, target))
        folder, name = self._place(source)
        other_folder, other_name = self._place(target)
        node, there = folder.entries.get(name), other_folder.entries.get(other_name)
        if node is None:
            raise _error(errno.ENOENT, source)
        if node is there:
            return
        if there is not None and not replace:
            raise _error(errno.EEXIST, target)
        if f"{target}/".startswith(f"{source}/"):
            raise _error(errno.EINVAL, target)
        if isinstance(there, Folder):
            raise _error(errno.EISDIR, target)
        if there is not None:
            if isinstance(node, Folder):
                raise _error(errno.ENOTDIR, target)
            self._unlink(there)
        self._change(Change((folder, name, None), (other_folder, other_name, node)))

    # ---- folders

    def mkdir(self, path: str) -> None:
        """Make one folder. Raises FileExistsError, and FileNotFoundError when the one above is missing."""
        self._hooks.before(DiskOperation("mkdir", path))
        folder, name = self._place(path)
        if name in folder.entries:
            raise _error(errno.EEXIST, path)
        self._change(Change((folder, name, Folder())))

    def rmdir(self, path: str) -> None:
        """Remove an empty folder."""
        self._hooks.before(DiskOperation("rmdir", path))
        if self._folder(path).entries:
            raise _error(errno.ENOTEMPTY, path)
        folder, name = self._place(path)
        self._change(Change((folder, name, None)))

    def sync(self, path: str) -> None:
        """All that a file holds now lasts, whoever wrote it."""
        self._hooks.before(DiskOperation("sync", path))
        self._file(path).sync()

    def sync_directory(self, path: str) -> None:
        """The names in a folder last, and both ends of the renames into it and out of it."""
        self._hooks.before(DiskOperation("sync_directory", path))
        folder = self._folder(path)
        self._settle(folder, len(folder.changes))

    def list(self, path: str) -> list[str]:
        """The names in a folder, in order."""
        self._hooks.before(DiskOperation("list", path))
        return sorted(self._folder(path).entries)

    def stat(self, path: str) -> tuple[int, float] | None:
        """Size and time of last change of a file, None for a folder; raises FileNotFoundError."""
        self._hooks.before(DiskOperation("stat", path))
        node = self._node(path)
        return (len(node.content), node.modified) if isinstance(node, File) else None

    # ---- faults, and looking on; no hook is asked

    def crash(self, random: Random) -> None:
        """Power cut: forget what does not last. Files that are open now write to nowhere afterwards."""
        for _, file in _files("", self._root):
            file.is_linked = False
        for folder in list(self._changed):
            self._settle(folder, part(random, len(folder.changes)))
        self._changed.clear()
        self._root = self._after_crash(self._root, random)
        self.used_bytes = sum(size for _, size in self.files())

    def rot(self, path: str, keep_bytes: int = 0) -> None:
        """The file turns out to be cut off, although its writing claimed success; permanently."""
        file = self._file(path)
        self.used_bytes -= max(len(file.content) - keep_bytes, 0)
        del file.content[keep_bytes:]
        file.sync()

    def flip_a_bit(self, path: str, random: Random) -> None:
        """One bit of the file turns out to be another one, permanently. An empty file stays as it is."""
        file = self._file(path)
        if file.content:
            file.content[random.randrange(len(file.content))] ^= 1 << random.randrange(8)
        file.sync()

    def lose(self, path: str) -> None:
        """The file turns out never to have been there; permanently."""
        file = self._file(path)
        folder, name = self._place(path)
        self._unlink(file)
        file.is_lost = True
        del folder.entries[name]

    def files(self) -> Iterator[tuple[str, int]]:
        """Path and size of each file, in no special order."""
        for path, file in _files("", self._root):
            yield path, len(file.content)

    def state(self, path: str) -> bytes | tuple[str, ...] | None:
        """A file's bytes, the names in a folder, or None where nothing is."""
        node: File | Folder | None = self._root
        for name in _names(path):
            node = node.entries.get(name) if type(node) is Folder else None
        if node is None:
            return None
        return bytes(node.content) if isinstance(node, File) else tuple(sorted(node.entries))

    def contents(self, folder: str) -> dict[str, bytes]:
        """The files in a folder by name, in no special order; none where it is missing."""
        try:
            entries = self._folder(folder).entries
        except OSError:
            return {}
        return {name: bytes(node.content) for name, node in entries.items() if isinstance(node, File)}

    @contextmanager
    def asking(self, hooks: DiskHooks) -> Iterator[None]:
        """Other hooks for a while."""
        before, self._hooks = self._hooks, hooks
        try:
            yield
        finally:
            self._hooks = before

    # ---- details

    def _node(self, path: str) -> File | Folder:
        node: File | Folder | None = self._root
        for name in _names(path):
            if type(node) is not Folder:
                raise _error(errno.ENOENT if node is None else errno.ENOTDIR, path)
            node = node.entries.get(name)
        if node is None:
            raise _error(errno.ENOENT, path)
        return node

    def _file(self, path: str) -> File:
        node = self._node(path)
        if isinstance(node, Folder):
            raise _error(errno.EISDIR, path)
        return node

    def _folder(self, path: str) -> Folder:
        node = self._node(path)
        if isinstance(node, File):
            raise _error(errno.ENOTDIR, path)
        return node

    def _place(self, path: str) -> tuple[Folder, str]:
        """The folder in which a name lies, or could, and the name."""
        above, _, name = path.rstrip("/").rpartition("/")
        if not name:
            raise _error(errno.EINVAL, path)
        return self._folder(above), name

    def _write(self, file: File, path: str, data: bytes) -> None:
        size = len(data)
        error: BaseException | None = None
        try:
            self._hooks.before(DiskOperation("write", path, size))
        except TornWrite as torn:
            size, error = min(torn.bytes_through, size), torn.error
        if file.is_linked:
            if self.capacity_bytes is not None and size > self.capacity_bytes - self.used_bytes:
                size = max(self.capacity_bytes - self.used_bytes, 0)
                error = error or _error(errno.ENOSPC, path)
            self.used_bytes += size
        file.content += data if size == len(data) else data[:size]
        file.modified = self._now()
        if error is not None:
            raise error

    def _unlink(self, file: File) -> None:
        file.is_linked = False
        self.used_bytes -= len(file.content)

    def _change(self, change: Change) -> None:
        for folder, name, node in change.sets:
            if node is None:
                folder.entries.pop(name, None)
            else:
                folder.entries[name] = node
            if not folder.changes or folder.changes[-1] is not change:
                folder.changes.append(change)
                self._changed[folder] = None

    def _settle(self, folder: Folder, count: int) -> None:
        """Let a folder's first changes last, and with each of them what came before it in its other folder."""
        changes = folder.changes[:count]
        del folder.changes[:count]
        if not folder.changes:
            self._changed.pop(folder, None)
        for change in changes:
            if not change.is_done:
                change.is_done = True
                for other, name, node in change.sets:
                    if other is not folder:
                        self._settle(other, other.changes.index(change) + 1)
                    if node is not None:
                        other.lasting[name] = node
                    elif isinstance(gone := other.lasting.pop(name, None), Folder) and len(change.sets) == 1:
                        self._settle(gone, len(gone.changes))  # it could only be removed when they were done

    def _after_crash(self, folder: Folder, random: Random) -> Folder:
        left = Folder()
        for name, node in folder.lasting.items():
            if isinstance(node, Folder):
                left.entries[name] = self._after_crash(node, random)
            elif not node.is_lost:
                left.entries[name] = node.after_crash(random)
        left.lasting = dict(left.entries)
        return left


@lru_cache(maxsize=4096)
def _names(path: str) -> tuple[str, ...]:
    """The names on the way from the root; histories of one job use the same paths."""
    return tuple(filter(None, path.split("/")))


def _files(path: str, folder: Folder) -> Iterator[tuple[str, File]]:
    for name, node in folder.entries.items():
        if isinstance(node, File):
            yield f"{path}/{name}", node
        else:
            yield from _files(f"{path}/{name}", node)


def _error(number: int, path: str) -> OSError:
    """The OSError of this number, of the class that Python has for it."""
    return OSError(number, os.strerror(number), path)
