"""RecordLog: what was acknowledged, in files of one folder that grow; each append lasts before it returns.

    <folder>/<segment>      a frame per append: a header (the segment's mark, CRC-32 and length of the payloads, CRC-32
                            of these three) and the payloads

The first frame that is not whole is the end, for a crash may leave anything of an append that had not returned. But an
append begins when the one before it lasts. So where the segment's mark, which no payload can know, stands again behind
the end, something that had lasted is damaged. Of the last append, a crash leaves out whole sectors, as no disk and no
page of the kernel is written by halves; where each sector has been written and the frame is not whole, it is damaged
too. In a store that shows no part of a file, so is all that is not whole. A sector of zeros counts as never written,
though it may have been overwritten, or be the payload's own: that is the end. Where the process has keys, the payloads
of an append are encrypted together: keyring.

One writer writes segments of its own, and never goes on in one that failed or that another has begun: whatever a writer
that was given up appends later, stands in its own segments. On the local disk a segment begins as zeros, so that to
sync an append costs the data alone and no change of the file's size. A store that cannot append gets a file per append.

The caller knows the meaning of payloads, which segments are still needed, and whether a thing may be there twice.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from struct import Struct
from typing import Protocol

from .durable_files import DurableFiles
from .errors import CorruptState
from .full_disk import folder_named
from .keyring import Keyring, is_sealed, opened

_FRAME = Struct(">8sIII")
_SECTOR_BYTES = 512
"""What a disk, or the kernel, writes wholly or not at all; theirs are no smaller."""
_LENGTH = Struct(">I")
"""Before each payload."""
ZEROED_BYTES = 4 * 1024 * 1024
"""Of a new segment on the local disk."""
SEGMENT_BYTES = 64 * 1024 * 1024
"""A longer segment is followed by another."""


class RecordLog:
    """The files in one folder. All of it blocks; reading and removing are safe beside a writer."""

    def __init__(self, files: DurableFiles, folder: str, top: str, keys: Keyring | None = None) -> None:
        """`top`: a folder above, or the same one, that lasts."""
        self._files = files
        self._folder = folder
        self._top = top
        self._keys = keys

    def segments(self) -> list[str]:
        """The names of those that are there, in order; none for a missing folder."""
        return self._files.names(self._folder)

    def read(self, segment: str, start: int = 0) -> tuple[list[bytes], int]:
        """The whole payloads from this place on, and the place behind the last; a missing segment has none. They last
        when it returns, those of an append too that has not returned: its writer may stand still before it syncs, and
        a reader builds on what it has read. Raises CorruptState when an append that others follow is not what was
        written, and WrongEncryptionKey.
        """
        damaged_at = -1
        path, mark = f"{self._folder}/{segment}", _mark(segment)
        while True:
            try:
                data: bytes = self._files.read(path, start)
                contents, place = _whole(data, mark)
                if data.find(mark, place + 1) < 0 and not self._is_damaged(data, place, mark, start):
                    if contents:
                        self._files.sync_found(path, self._top)
                    return [each for content in contents for each in self._payloads(path, content)], start + place
            except FileNotFoundError:
                return [], start
            if place == damaged_at:
                wanted = f"a whole entry at byte {start + place}"
                raise CorruptState(path, wanted, "a damaged one")
            damaged_at = place  # a writer may have gone on meanwhile: the later bytes are newer then

    def remove(self, segments: Iterable[str]) -> None:
        """One that is gone already is fine. After a power cut one may be back."""
        for segment in segments:
            self._files.remove(f"{self._folder}/{segment}")

    def writer(self, name: str, head: Sequence[bytes] = ()) -> LogWriter:
        """Its segments are `name`-00000001 and so on; nobody else may use this name. `head`: payloads with which each
        of them begins, when something is appended.
        """
        return LogWriter(self._files, self._folder, self._top, name, head, self._keys)

    def _is_damaged(self, data: bytes, place: int, mark: bytes, start: int) -> bool:
        """Whether no crash leaves what stands at this place, behind which there is no other frame."""
        if not self._files.has_folders:
            return place < len(data)
        return _is_all_written(data, place, mark, start)

    def _payloads(self, path: str, content: bytes) -> list[bytes]:
        return _payloads(opened(self._keys, path, content) if is_sealed(content) else content)


class LogWriter:
    """One writer. Its methods are called one at a time; what `spare_work` returns may run beside them."""

    def __init__(
        self,
        files: DurableFiles,
        folder: str,
        top: str,
        name: str,
        head: Sequence[bytes] = (),
        keys: Keyring | None = None,
    ) -> None:
        self._files = files
        self._folder = folder
        self._top = top
        self._name = name
        self._head = _content(head)
        self._keys = keys
        self._number = 0
        self._open: _Segment | None = None
        self._spare: _Segment | None = None
        self._is_making_spare = False
        self._is_closed = False
        self._has_folder = False
        """Which lasts."""
        self.segment = ""
        """The one that was written last; empty before the first append."""
        self.length = 0
        """Of the part of it that lasts."""

    def append(self, payloads: Sequence[bytes]) -> None:
        """All of them last when it returns. If it raises, some may; the next append begins a new segment."""
        content = _content(payloads)
        if self._open is not None and self.length + _FRAME.size + len(content) > self._limit():
            self.roll()
        try:
            if self._open is None:
                self._begin()
                content = self._head + content
            content = self._sealed(content)
            assert self._open is not None
            self._open.append(_frame(_mark(self.segment), content))
        except BaseException:
            self.roll()
            raise
        self.length += _FRAME.size + len(content)
        if not self._open.goes_on:
            self.roll()

    def roll(self) -> None:
        """What comes next goes into a new segment."""
        segment, self._open = self._open, None
        if segment is not None:
            segment.close()

    def close(self) -> None:
        self._is_closed = True
        self.roll()
        self._drop_spare()

    # -- the next segment, made ahead of time

    @property
    def wants_spare(self) -> bool:
        """Whether that would save something soon."""
        is_early = self._open is not None and self.length < ZEROED_BYTES // 2
        return self._files.is_local and self._spare is None and not self._is_making_spare and not is_early

    def spare_work(self) -> Callable[[], _Segment]:
        """What makes the next segment, to be run at any time. Hand its result, or None if it failed, to
        `keep_spare`.
        """
        self._is_making_spare = True
        path = self._next_path()

        def work() -> _Segment:
            made = self._new_file(path)
            if self._is_closed:
                made.close()
            return made

        return work

    def keep_spare(self, spare: _Segment | None) -> None:
        self._is_making_spare = False
        self._spare = spare
        if spare is not None and spare.path < f"{self._folder}/{self.segment}":
            self._drop_spare()  # segments are in the order of their names

    def _drop_spare(self) -> None:
        spare, self._spare = self._spare, None
        if spare is not None:
            spare.close()
            self._files.remove(spare.path)

    # -- inside

    def _sealed(self, content: bytes) -> bytes:
        return content if self._keys is None else b"".join(self._keys.sealed([content]))

    def _limit(self) -> int:
        return ZEROED_BYTES if self._spare is not None else SEGMENT_BYTES

    def _begin(self) -> None:
        segment, self._spare = self._spare, None
        self._open = segment or self._new_file(self._next_path())
        self.segment, self.length = self._open.path.rpartition("/")[2], 0

    def _next_path(self) -> str:
        self._number += 1
        return f"{self._folder}/{self._name}-{self._number:08d}"

    def _new_file(self, path: str) -> _Segment:
        self._files.make_folder(self._folder)
        if not self._has_folder:
            self._files.sync_up(self._folder, self._top)  # another process may have made it, and not have synced it
            self._has_folder = True
        return _new_segment(self._files, path)


def _mark(segment: str) -> bytes:
    """What each of its frames begins with: a writer's name holds an id that was drawn at random."""
    return blake2b(segment.encode(), digest_size=8).digest()


def _content(payloads: Sequence[bytes]) -> bytes:
    return b"".join(piece for each in payloads for piece in (_LENGTH.pack(len(each)), each))


def _payloads(content: bytes) -> list[bytes]:
    found, place = [], 0
    while place < len(content):
        begin = place + _LENGTH.size
        place = begin + _LENGTH.unpack_from(content, place)[0]
        found.append(content[begin:place])
    return found


def _whole(data: bytes, mark: bytes) -> tuple[list[bytes], int]:
    """What the frames hold up to the first that is not whole, and the place of that one."""
    contents: list[bytes] = []
    place = 0
    while (content := _content_at(data, place, mark)) is not None:
        contents.append(content)
        place += _FRAME.size + len(content)
    return contents, place


def _frame(mark: bytes, content: bytes) -> bytes:
    checksum, length = zlib.crc32(content), len(content)
    return _FRAME.pack(mark, checksum, length, _header_checksum(mark, checksum, length)) + content


def _header_checksum(mark: bytes, checksum: int, length: int) -> int:
    return zlib.crc32(_FRAME.pack(mark, checksum, length, 0))


def _length_at(data: bytes, place: int, mark: bytes) -> int | None:
    """What the header that stands here says, if it is whole."""
    if place + _FRAME.size > len(data):
        return None
    found, checksum, length, own = _FRAME.unpack_from(data, place)
    return length if found == mark and own == _header_checksum(found, checksum, length) else None


def _content_at(data: bytes, place: int, mark: bytes) -> bytes | None:
    """That of the frame that begins here, if it is whole."""
    length = _length_at(data, place, mark)
    if length is None:
        return None
    begin = place + _FRAME.size
    content = data[begin : begin + length]
    checksum: int = _FRAME.unpack_from(data, place)[1]
    return content if len(content) == length and zlib.crc32(content) == checksum else None


def _is_all_written(data: bytes, place: int, mark: bytes, start: int) -> bool:
    """Of a frame that is not whole: whether there is something in each sector of its header, or of all of it, if the
    header says how long it is. `start`: where in the file the data begins.
    """
    end = place + _FRAME.size + (_length_at(data, place, mark) or 0)
    if end > len(data):
        return False
    while place < end:
        next_sector = place + _SECTOR_BYTES - (start + place) % _SECTOR_BYTES
        if not any(data[place : min(next_sector, end)]):
            return False
        place = next_sector
    return True


class _Segment(Protocol):
    """A file that is being written. Its name lasts with its first append."""

    path: str
    goes_on: bool
    """Whether there may be another append."""

    def append(self, data: bytes) -> None: ...

    def close(self) -> None: ...


def _new_segment(files: DurableFiles, path: str) -> _Segment:
    if files.is_local:
        return _ZeroedSegment(files, path)
    return _GrowingSegment(files, path) if files.has_folders else _WholeSegment(files, path)


class _ZeroedSegment:
    """On the local disk, by way of the operating system: made of zeros that are written over."""

    goes_on = True

    def __init__(self, files: DurableFiles, path: str) -> None:
        self.path = path
        self._at = 0
        self._descriptor = -1
        with folder_named(path, is_local=True, wanted_bytes=ZEROED_BYTES):
            self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o666)
            try:
                _write(self._descriptor, bytes(ZEROED_BYTES), 0)
                os.fsync(self._descriptor)
                files.sync_folder(os.path.dirname(path))
            except BaseException:
                self.close()
                files.remove(path)
                raise

    def append(self, data: bytes) -> None:
        with folder_named(self.path, is_local=True):
            _write(self._descriptor, data, self._at)
            _sync_data(self._descriptor)
        self._at += len(data)

    def __del__(self) -> None:
        """Of an attempt that was ended while it wrote."""
        self.close()

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


_sync_data = getattr(os, "fdatasync", os.fsync)


def _write(descriptor: int, data: bytes, at: int) -> None:
    left = memoryview(data)
    while left:
        written = os.pwrite(descriptor, left, at)
        left, at = left[written:], at + written


class _GrowingSegment:
    """On another disk with folders."""

    goes_on = True

    def __init__(self, files: DurableFiles, path: str) -> None:
        self.path = path
        self._files = files
        self._file = files.create(path)
        self._is_known = False

    def append(self, data: bytes) -> None:
        with folder_named(self.path, is_local=False):
            self._file.write(data)
            self._files.sync(self._file)
        if not self._is_known:
            self._files.sync_folder(self.path.rpartition("/")[0])
            self._is_known = True

    def close(self) -> None:
        self._file.close()


class _WholeSegment:
    """In a store that shows a file when it is whole."""

    goes_on = False

    def __init__(self, files: DurableFiles, path: str) -> None:
        self.path = path
        self._files = files

    def append(self, data: bytes) -> None:
        self._files.write(self.path, [data])

    def close(self) -> None:
        pass
