"""FilesSeen: what one subtask knows of the files that come: which it has read, reads, and will read. A value machine.

    settling -> found -> begun -> read

A file belongs to the subtask that its name's hash says, so subtasks need not speak to each other, and a change of
parallelism deals out again what all of them knew. A file settles while its version may still change. Those begun and
those read are state; the others a later attempt finds again.

A file that was read is kept as two hashes of 8 bytes, of name and version, as long as it lies there. Once two looks in
a row have not found it, it is *gone*: another version under its name is a new file. It is forgotten by a look that
finds other files; one that finds none at all may be of the empty folder below a mount that is away, and will be back
with all of them. So what is remembered grows with what lies in the folder, never with the job's age. There is no
horizon by modification time: a file that is moved in, or copied with its times, may be older than all others, and would
be lost without a word.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InputChanged
from .file_look import FoundFile, fingerprint_of, version_shown


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
        self._read: dict[int, int] = {}
        self._absent: set[int] = set()
        """Of those read: what the last look did not find."""
        self._gone: set[int] = set()
        """Of those: what the one before did not find either."""
        self._packed: bytes | None = None
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
            if (digest := self._read.get(file.key)) is not None:
                if digest == fingerprint_of(file.version):
                    continue
                if file.key not in self._gone:
                    raise changed(file.name, "another version", file.version)
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
        self._read[fingerprint_of(file.name)] = fingerprint_of(file.version)
        self._packed = None

    def put_back(self) -> None:
        """Of the first of those begun nothing was emitted, and it is not what it was found as."""
        assert not self.begun[0].rows, "its first rows were emitted"
        del self.begun[0]

    # -- state

    def to_plain(self) -> dict[str, Any]:
        if self._packed is None:
            self._packed = np.array([*self._read, *self._read.values()], dtype="<u8").tobytes()
        begun = [[each.name, each.version, each.rows] for each in self.begun]
        return {"begun": begun, "read": self._packed, "gone": np.array([*self._gone], dtype="<u8").tobytes()}

    def restore(self, plains: Sequence[dict[str, Any]]) -> None:
        """What is this subtask's of what these subtasks knew."""
        for plain in plains:
            self.begun += [BegunFile(*each) for each in plain["begun"] if self._is_own(fingerprint_of(each[0]))]
            keys, digests = np.frombuffer(plain["read"], dtype="<u8").reshape(2, -1)
            own = keys % np.uint64(self._parallelism) == self._subtask
            self._read.update(zip(keys[own].tolist(), digests[own].tolist(), strict=True))
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
            self._packed = None


def changed(name: str, was: str, found: str | None) -> InputChanged:
    """The error for a file that was taken up as one version and is another now; None: it is gone."""
    if found is None:
        return InputChanged(
            f"{name} was removed after its first rows had been read, and before a checkpoint covered the last one: put "
            "it back. A file may be removed when a checkpoint has completed after it was read"
        )
    return InputChanged(
        f"{name} was changed after it had been found: it was {version_shown(was)}, and is {version_shown(found)}. "
        "A file is read once, so what was added would be lost, or the rest read wrongly: put the old content back, and "
        "the new one under another name. If it was still being written when it was found, write it under a hidden name "
        "(.name) and rename it, or give a longer settle_ms"
    )
