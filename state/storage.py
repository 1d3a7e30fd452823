"""CheckpointStorage: atomic, checksummed files below one root, through fsspec. Their names: checkpoint_folders.

On a disk a file is written under a temporary name, flushed, and renamed; to an object store it goes in one request
under its own name, as a store shows an object when it is whole. So it is there whole, or not at all. Temporary files
that a crash left behind are never listed or read. Where this process has keys, files are encrypted: state_files; sizes
and checksums are those of what they hold. All paths in and out are relative to the root; absolute paths and URLs from
outside are accepted if they lead below it. It has no state of its own but the file system, and so is safe from any
thread. Flink: FsCheckpointStorage, FsCheckpointStreamFactory.
"""

from __future__ import annotations

import posixpath
import zlib
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from uuid import uuid4

import fsspec

from ..messages import JobId, StateHandle
from .checkpoint_folders import inlets_directory, is_shared, job_directory, shared_directory
from .durable_files import special_kind
from .errors import CorruptState, MissingState, OutsideRoot, UnreachableRoot, UnwritableRoot, WrongEncryptionKey
from .file_locations import NoFileSystem, is_url, protocol_of
from .handle_bytes import verified
from .keyring import HEAD_BYTES, Keyring
from .record_log import RecordLog
from .root_mark import MARK, RootMark
from .seal import SEAL_BYTES, opened, seal_of
from .state_files import StateFiles
from .store_requests import why_unusable

_TEMPORARY = ".writing-"
_TRIES = 5
_PIECE_BYTES = 8 * 1024 * 1024


class CheckpointStorage:
    """All checkpoint files of a cluster. `url`: a local path, or any URL that fsspec knows."""

    def __init__(
        self, url: str, *, new_suffix: Callable[[], str] = lambda: uuid4().hex, has_mark: bool = False
    ) -> None:
        """`has_mark`: another process has used it before, and so made its RootMark."""
        self.url = url
        self._new_suffix = new_suffix
        try:
            self._files, root = StateFiles.at(url)
        except (NoFileSystem, OSError) as error:  # some file systems connect at once, as ftp:// does
            raise UnwritableRoot(url, error) from error
        self._fs = self._files.fs
        self.root = self._files.canonical(root)
        self.mark = RootMark(url, self.root, self._files.plain, is_expected=has_mark)
        self._files.before_making_folders = self._files.plain.before_making_folders = self.mark.confirm

    def check(self, *, with_mark: bool = True) -> None:
        """Make the root and write a file into it; raises UnwritableRoot, and UnreachableRoot where it has to be there
        already. Call it before a job depends on it. `with_mark` False: of one that goes with this process.
        """
        if with_mark:
            self.mark.check_before()
        path = self._temporary(f"{self.root}/check")
        try:
            self._files.make_folder(self.root)
            self._files.sync_up(posixpath.dirname(self.root), "/")
            self._put(path, [b""])
            self._files.remove(path)
            if with_mark:
                self.mark.make()
            self._files.sync_folder(self.root)
        except (OSError, ValueError) as error:
            raise UnwritableRoot(self.url, why_unusable(self.url, error)) from error

    def write(self, path: str, chunks: bytes | Iterable[bytes], *, first_checksum: int | None = None) -> StateHandle:
        """Write one file whole; an existing one is replaced. The handle knows its size and checksum.

        `first_checksum`: the CRC-32 of the first chunk, where it is known already. If it fails, the old file is there
        still, and no folder stays empty; in an object store it may be the new one, whose answer was lost.
        """
        parts = [chunks] if isinstance(chunks, bytes) else list(chunks)
        checksum = first_checksum or 0
        for part in parts if first_checksum is None else parts[1:]:
            checksum = zlib.crc32(part, checksum)
        relative = self.resolve(path)
        self._replace(self._absolute(relative), parts)
        return StateHandle(relative, None, sum(map(len, parts)), checksum)

    def read(self, handle: StateHandle) -> bytes:
        """The handle's bytes, inline or from its file; raises MissingState, CorruptState, OutsideRoot,
        UnreachableRoot.
        """
        if handle.data is not None:
            return verified(handle.data, handle)
        relative = self.resolve(handle.path or "")
        try:
            return verified(self._get(relative, is_there=True), handle)
        except CorruptState:
            if self._files.has_folders:
                raise
        return verified(self._get(relative, is_there=True), handle)  # on its way, perhaps, and not in the store

    def read_part(self, handle: StateHandle, offset: int, length: int) -> bytes:
        """So much of the handle's bytes, which nobody has verified; less where the file ends before. Raises as `read`,
        but for CorruptState.
        """
        if handle.data is not None:
            return handle.data[offset : offset + length]
        return self._get(self.resolve(handle.path or ""), offset, offset + length, is_there=True)

    def verify(self, handle: StateHandle) -> None:
        """Read every byte of it, in pieces, and forget them. Raises as `read`."""
        if handle.data is not None:
            verified(handle.data, handle)
            return
        self.check_there(handle)
        checksum = 0
        for start in range(0, handle.size_bytes, _PIECE_BYTES):
            checksum = zlib.crc32(self.read_part(handle, start, _PIECE_BYTES), checksum)
        if checksum != handle.checksum:
            raise CorruptState(handle.path or "", f"CRC-32 {handle.checksum:08x}", f"{checksum:08x}")

    def write_sealed(self, path: str, data: bytes) -> None:
        """Write a file that carries its own checksum, for those that no handle points to, as `_metadata`."""
        handle = self.write(path, [seal_of(data), data])
        # The announced files lie in folders that others made, and perhaps died before they had synced them.
        self._files.sync_up(posixpath.dirname(self._absolute(handle.path or "")), self.root)

    def create_sealed(self, path: str, data: bytes) -> None:
        """The same of a file that is not there yet; FileExistsError if it is. Of several at once one succeeds."""
        absolute = self._absolute(self.resolve(path))
        folder, temporary = self._folder_of(absolute), self._temporary(absolute)
        try:
            self._in_folder(folder, lambda: self._files.write_new(absolute, temporary, [seal_of(data), data]))
        except BaseException:
            self._discard(temporary)
            raise
        try:
            self._files.sync_up(folder, self.root)
        except BaseException:
            self._discard(absolute)
            raise

    def read_sealed(self, path: str) -> bytes:
        """What `write_sealed` wrote there; raises MissingState, CorruptState, OutsideRoot.

        A path may come from outside, and what it leads to be of any size: the seal is read before the rest.
        """
        relative = self.resolve(path)
        checksum, size = opened(relative, self._get(relative, 0, SEAL_BYTES))
        self.check_there(StateHandle(relative, None, SEAL_BYTES + size, checksum))
        return verified(self._get(relative)[SEAL_BYTES:], StateHandle(relative, None, size, checksum))

    def take_back(self, path: str) -> None:
        """After a `write` of a new file that failed: an object store may have done what it could not answer."""
        if not self._files.has_folders:
            self._discard(self._absolute(self.resolve(path)))

    @property
    def keys(self) -> Keyring | None:
        """Those that this process encrypts with, and reads."""
        return self._files.keys

    def check_encryption(self, wanted: str) -> None:
        """See that files are encrypted here as a job wants it that was submitted with the key of this id; "": it does
        not matter. Raises WrongEncryptionKey.
        """
        if wanted and (self.keys is None or wanted not in self.keys.ids):
            ids, source = (self.keys.ids, self.keys.source) if self.keys is not None else ((), "")
            raise WrongEncryptionKey(self.url, wanted, ids, source)

    def log(self, folder: str) -> RecordLog:
        """The log in a folder, which need not be there yet. Raises OutsideRoot."""
        return RecordLog(self._files.plain, self._absolute(self.resolve(folder)), self.root, self._files.keys)

    def confirm_used(self) -> None:
        """That a directory in which a checkpoint was stored is there still, for whoever has found nothing in it. Raises
        UnreachableRoot.
        """
        self.mark.confirm_made()
        if self._files.has_folders and not self._fs.isdir(self.root):
            raise UnreachableRoot(self.url)

    def exists(self, path: str) -> bool:
        return self._files.is_file(self._absolute(self.resolve(path)))

    def check_there(self, handle: StateHandle) -> None:
        """That its file exists and is as long as it should be; its bytes are not read. Raises MissingState,
        CorruptState, OutsideRoot.
        """
        if handle.path is None:
            return
        relative = self.resolve(handle.path)
        try:
            found = self._files.size_bytes(self._absolute(relative), is_there=True)
        except FileNotFoundError as error:
            raise (self.mark.lost() if self.mark.has_lost() else MissingState(relative)) from error
        if found != handle.size_bytes:
            self._get(relative, 0, HEAD_BYTES)  # it may be encrypted, and is no damaged one then
            raise CorruptState(relative, f"{handle.size_bytes} bytes", f"{found} bytes")

    def delete(self, what: StateHandle | str) -> None:
        """Delete a file, and its folders if it was the last in them, as a job makes a folder for each checkpoint.

        One that is gone already is fine, and so is an inline handle. After a power cut it may be back, unless it was
        made to last.
        """
        path = what.path if isinstance(what, StateHandle) else what
        if path is None:
            return
        relative = self.resolve(path)
        self._files.remove(self._absolute(relative))
        while relative := posixpath.dirname(relative):
            if not self._files.remove_empty_folder(self._absolute(relative)):
                return

    def make_deletions_last(self, paths: Iterable[str]) -> None:
        """See that these files, which were deleted, stay so after a power cut."""
        for folder in sorted({posixpath.dirname(self._absolute(self.resolve(path))) for path in paths}):
            self._sync_what_is_left_of(folder)

    def list_files(self, directory: str = "") -> list[str]:
        """All files below a directory, relative to the root, in order; none for a missing one. Raises OSError where not
        all of a directory can be listed; of the root, which may hold what is not ours, that is left out.
        """
        absolute = self._absolute(self.resolve(directory)) if directory else self.root
        found = (self._relative(path) for path in self._files.find(absolute, is_whole=directory != ""))
        return sorted(path for path in found if path != MARK and not posixpath.basename(path).startswith(_TEMPORARY))

    def delete_torn(self, directory: str, is_dead: Callable[[str], bool]) -> None:
        """Delete what writers that crashed have left in a directory: `is_dead` is given the name that the file was to
        have.
        """
        for path in self._files.find(self._absolute(self.resolve(directory))):
            folder, name = posixpath.split(path)
            if name.startswith(_TEMPORARY) and is_dead(name.removeprefix(_TEMPORARY).rpartition("-.")[0]):
                self._files.remove(f"{folder}/{name}")

    def delete_job(self, job_id: JobId, keep: Collection[str] = (), *, keep_inlets: bool = False) -> None:
        """Delete all that is stored for a job, leftovers of crashed writers too, but for the files in `keep`, and for
        the logs of its inlets with `keep_inlets`.
        """
        own = f"{job_directory(job_id)}/"
        if not keep_inlets and not any(path.startswith(own) for path in keep):
            self._delete_directory(job_directory(job_id))
            return
        directory = self._absolute(job_directory(job_id))
        found = map(self._relative, self._files.find(directory))
        kept = f"{inlets_directory(job_id)}/" if keep_inlets else "//"
        superfluous = [path for path in found if path not in keep and not path.startswith(kept)]
        superfluous.sort(key=lambda path: path.startswith(shared_directory(job_id)))  # metadata lead there
        for path in superfluous:
            self.delete(path)
        self.make_deletions_last(superfluous)
        self._files.remove_empty_folders(directory)

    def resolve(self, path: str) -> str:
        """A path from anywhere as one relative to the root; raises OutsideRoot. Links are followed."""
        if "\0" in path:
            raise OutsideRoot(path, self.url)
        if is_url(path):
            # Compared by name first: a path from outside must not make us connect to anything.
            if protocol_of(path) not in _protocols(self._fs):
                raise OutsideRoot(path, self.url)
            absolute = str(self._fs._strip_protocol(path))
        else:
            absolute = path if posixpath.isabs(path) else f"{self.root}/{path}"
        absolute = self._files.canonical(absolute)
        if not absolute.startswith(f"{self.root}/"):
            raise OutsideRoot(path, self.url)
        return self._relative(absolute)

    def location(self, path: str = "") -> str:
        """The one way to write a path of ours (the root itself by default) for those who do not know the root.

        Absolute; with its protocol, unless it is on the local disk. Raises OutsideRoot.
        """
        absolute = self._absolute(self.resolve(path)) if path else self.root
        return absolute if self._files.is_local else str(self._fs.unstrip_protocol(absolute))

    def _relative(self, absolute: str) -> str:
        return absolute[len(self.root) + 1 :]

    def _absolute(self, relative: str) -> str:
        return f"{self.root}/{relative}"

    def _get(self, relative: str, start: int | None = None, end: int | None = None, is_there: bool = False) -> bytes:
        """The whole file, or the bytes from `start` to `end`."""
        if self._files.is_local and (kind := special_kind(self._absolute(relative))):
            raise CorruptState(relative, "a regular file", kind)  # to open a pipe would wait for whoever writes to it
        try:
            return self._files.read(self._absolute(relative), start, end, is_there=is_there)
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
            if self._files.has_folders and not self._fs.isdir(self.root):
                raise UnreachableRoot(self.url) from error
            raise (self.mark.lost() if self.mark.has_lost() else MissingState(relative)) from error

    def _temporary(self, path: str) -> str:
        directory, name = posixpath.split(path)
        return f"{directory}/{_TEMPORARY}{name}-.{self._new_suffix()}"

    def _replace(self, path: str, parts: Iterable[bytes]) -> None:
        """Write under a temporary name and rename; an object store needs neither."""
        if not self._files.has_folders:
            self._put(path, parts)
            return
        temporary, folder = self._temporary(path), self._folder_of(path)
        try:
            self._in_folder(folder, lambda: self._put(temporary, parts))
            self._files.rename(temporary, path)
        except BaseException:
            self._discard(temporary)
            self._files.remove_empty_folder(folder)
            raise
        try:
            self._files.sync_folder(folder)
        except BaseException:
            self._discard(path)  # the caller gets the error, and will not look for the file
            self._files.remove_empty_folder(folder)
            raise

    def _folder_of(self, path: str) -> str:
        """In which a file is about to be written. Where the volume is away no folder is there but the root, perhaps:
        the others would have to be made, which asks for the mark. Raises UnreachableRoot.
        """
        folder = posixpath.dirname(path)
        if folder == self.root:
            self.mark.confirm()
        return folder

    def _in_folder(self, directory: str, write: Callable[[], None]) -> None:
        """Whoever deletes the last file of a folder, or fails to write the first, removes the folder, perhaps just
        after it was made here.
        """
        for _ in range(_TRIES - 1):
            with suppress(FileNotFoundError):
                self._files.make_folder(directory)
                write()
                return
        self._files.make_folder(directory)
        write()

    def _put(self, path: str, parts: Iterable[bytes]) -> None:
        self._files.write(path, parts)

    def _discard(self, path: str) -> None:
        """Of no consequence if it fails: the file is never read, and goes with its directory."""
        with suppress(OSError):
            self._files.remove(path)

    def _sync_what_is_left_of(self, folder: str) -> None:
        """The folder, or if it has been removed the one above it that is there."""
        while folder.startswith(self.root):
            try:
                self._files.sync_folder(folder)
            except FileNotFoundError:
                folder = posixpath.dirname(folder)
            else:
                return

    def _delete_directory(self, directory: str) -> None:
        """With all that is in it. If others delete below it at the same time, removing it stops half-way at what they
        have removed, and begins again.
        """
        absolute = self._absolute(self.resolve(directory))
        for _ in range(_TRIES):
            try:
                self._files.remove_folder(absolute)
            except FileNotFoundError:
                if self._files.exists(absolute):
                    continue
            break
        with suppress(FileNotFoundError):
            self._files.sync_folder(posixpath.dirname(absolute))


def _protocols(fs: fsspec.AbstractFileSystem) -> tuple[str, ...]:
    return (fs.protocol,) if isinstance(fs.protocol, str) else tuple(fs.protocol)


def handle_reader(storage: CheckpointStorage | None) -> Callable[[StateHandle], bytes]:
    """A reader for one restore, on one thread: a file that several handles share is read and verified once. One that
    several checkpoints may hold belongs to one handle of this one, and may be large: it is not kept.
    """
    files: dict[str, bytes] = {}

    def read(handle: StateHandle) -> bytes:
        if handle.data is not None:
            return verified(handle.data, handle)
        path = handle.path or ""
        if storage is None:
            raise MissingState(path)
        if is_shared(path):
            return storage.read(handle)
        if path not in files:
            files[path] = storage.read(handle)
        return files[path]

    return read
