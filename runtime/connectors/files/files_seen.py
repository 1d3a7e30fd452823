"""FilesSeen: what one subtask knows of the files that come: which it has read, reads, and will read. A value machine.

    settling -> found -> begun -> read

A file belongs to the subtask that its name's hash says, so subtasks need not speak to each other, and a change of
parallelism deals out again what all of them knew. A file settles while its version may still change. Those begun and
those read are state; the others a later attempt finds again.

A file that was read is kept as two hashes of 8 bytes, of name and version, as long as it lies there; and with its size
and time, 8 bytes each, which an error names. Once two looks in a row have not found it, it is *gone*: another version
under its name is a new file. It is forgotten by a look that finds other files; one that finds none at all may be of the
empty folder below a mount that is away, and will be back with all of them. So what is remembered grows with what lies
in the folder, never with the job's age. There is no horizon by modification time: a file that is moved in, or copied
with its times, may be older than all others, and would be lost without a word.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputChanged
from .file_look import FoundFile, fingerprint_of, stamp_of, time_advice, version_of, version_shown


class _ReadFile(NamedTuple):
    """`digest` tells its version from others; `size` and `modified` are shown to users: 0 if not known."""

    digest: int
    size: int = 0
    modified: float = 0.0

    @property
    def version(self) -> str:
        """Empty if it is known by its digest alone, as an object, and what an earlier release has stored."""
        version = version_of(self.size, self.modified)
        return version if fingerprint_of(version) == self.digest else ""


@dataclass(slots=True)
class BegunFile:
    """`rows`: how many were emitted."""

    name: str
    version: str
    rows: int = 0


class FilesSeen:
    """Of one `subtask` of `parallelism`. A file is taken up when its version has been the same for `settle_ms`."""

    def __init__(self, subtask: int, parallelism: int, settle_ms: float) -> None:
        self._subtask, self._parallelism, self._settle_ms = subtask, parallelism, settle_ms
        self.begun: list[BegunFile] = []
        """The first one is being read; there are more only after a change of parallelism."""
        self._found: deque[tuple[str, str]] = deque()
        self._settling: dict[str, tuple[str, float]] = {}
        """By name: version, and since when it is known."""
        self._read: dict[int, _ReadFile] = {}
        self._absent: set[int] = set()
        """Of those read: what the last look did not find."""
        self._gone: set[int] = set()
        """Of those: what the one before did not find either."""
        self._packed: dict[str, bytes] = {}
        """`_read` as it is stored, while it does not change."""

    @property
    def is_settling(self) -> bool:
        return bool(self._settling)

    @property
    def has_more(self) -> bool:
        """Whether there is a file to read."""
        return bool(self.begun or self._found)

    def take(self, files: Iterable[FoundFile], now_ms: float) -> None:
        """All files that lie there now, of all subtasks. Raises InputChanged for one that is not what it was."""
        assert not self.has_more, "one looks when there is nothing left to read"
        found = list(files)
        own = sorted((each for each in found if self._is_own(each.key)), key=lambda each: (each.modified, each.name))
        settling, self._settling = self._settling, {}
        for file in own:
            if (read := self._read.get(file.key)) is not None:
                if read.digest == fingerprint_of(file.version):
                    continue
                if file.key not in self._gone:
                    raise _written_again(file.name, read.version, file.version)
                self._forget({file.key})
            version, since_ms = settling.get(file.name, ("", now_ms))
            since_ms = since_ms if version == file.version else now_ms
            if now_ms - since_ms >= self._settle_ms:
                self._found.append((file.name, file.version))
            else:
                self._settling[file.name] = (file.version, since_ms)
        self._miss({each.key for each in own}, is_empty=not found)

    def next(self) -> BegunFile | None:
        """The file to read from now on; None when there is none."""
        if not self.begun and self._found:
            self.begun.append(BegunFile(*self._found.popleft()))
        return self.begun[0] if self.begun else None

    def has_read(self) -> None:
        """The first of those begun is read to its end."""
        file = self.begun.pop(0)
        self._read[fingerprint_of(file.name)] = _ReadFile(fingerprint_of(file.version), *stamp_of(file.version))
        self._packed = {}

    def put_back(self) -> None:
        """Of the first of those begun nothing was emitted, and it is not what it was found as."""
        assert not self.begun[0].rows, "its first rows were emitted"
        del self.begun[0]

    # -- state

    def to_plain(self) -> dict[str, Any]:
        if not self._packed:
            digests, sizes, times = zip(*self._read.values(), strict=True) if self._read else ((), (), ())
            self._packed = {
                "read": np.array([*self._read, *digests], dtype="<u8").tobytes(),
                "sizes": np.array(sizes, dtype="<u8").tobytes(),
                "times": np.array(times, dtype="<f8").tobytes(),
            }
        begun = [[each.name, each.version, each.rows] for each in self.begun]
        return {"begun": begun, **self._packed, "gone": np.array([*self._gone], dtype="<u8").tobytes()}

    def restore(self, plains: Sequence[dict[str, Any]]) -> None:
        """What is this subtask's of what these subtasks knew."""
        for plain in plains:
            self.begun += [BegunFile(*each) for each in plain["begun"] if self._is_own(fingerprint_of(each[0]))]
            keys, digests = np.frombuffer(plain["read"], dtype="<u8").reshape(2, -1)
            own = keys % np.uint64(self._parallelism) == self._subtask
            none = np.zeros(len(keys), dtype="<u8")
            sizes = np.frombuffer(plain.get("sizes", none), dtype="<u8")
            times = np.frombuffer(plain.get("times", none), dtype="<f8")
            files = map(_ReadFile, digests[own].tolist(), sizes[own].tolist(), times[own].tolist())
            self._read.update(zip(keys[own].tolist(), files, strict=True))
            self._gone |= {*np.frombuffer(plain.get("gone", b""), dtype="<u8").tolist()} & self._read.keys()
        self._absent = set(self._gone)

    # -- details

    def _is_own(self, key: int) -> bool:
        return key % self._parallelism == self._subtask

    def _miss(self, listed: set[int], *, is_empty: bool) -> None:
        absent = self._read.keys() - listed
        gone = absent & self._absent
        if not is_empty:
            self._forget(gone)
            absent, gone = absent - gone, set()
        self._absent, self._gone = absent, gone

    def _forget(self, keys: Iterable[int]) -> None:
        for key in keys:
            del self._read[key]
            self._packed = {}


def changed(name: str, was: str, found: str | None) -> InputChanged:
    """The error for a file that was taken up as one version and is another now; None: it is gone."""
    if found is None:
        return InputChanged(
            f"{name} was removed after its first rows had been read, and before a checkpoint covered the last one: put "
            "it back. A file may be removed when a checkpoint has completed after it was read"
        )
    return InputChanged(
        f"{name} was changed after its first rows had been read: it was {version_shown(was)}, and is "
        f"{version_shown(found)}. The rest of it would be read wrongly: put it back as it was{time_advice(was)}, and "
        f"write new rows alone into a new file. {_WRITE_WHOLE}"
    )


def _written_again(name: str, was: str, found: str) -> InputChanged:
    """The error for a file that was read to its end; `was` is empty if only its digest is known."""
    versions = f"it was {version_shown(was)}, and is" if was else "it has"
    return InputChanged(
        f"{name} was written again after it had been read to its end: {versions} {version_shown(found)}. A file is "
        "read once, so what is new in it would be lost. Move it away, as its rows were read; or put it back as it was"
        f"{time_advice(was)}; and write new rows alone into a new file. {_WRITE_WHOLE}"
    )


_WRITE_WHOLE = (
    "If it was still being written when it was found, write it under a hidden name (.name) and rename it, or give a "
    "longer settle_ms"
)
