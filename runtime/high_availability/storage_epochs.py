"""StorageEpochs: terms of leaders as folders of shared storage, where a team has no ZooKeeper.

    <storageDir>/<cluster id>/epochs/<number>/term             who leads, and how often it said so; made by one alone
    <storageDir>/<cluster id>/epochs/<number>/opened           all that earlier leaders have kept is in this folder
    <storageDir>/<cluster id>/epochs/<number>/jobs/<name>/<n>  a record; the highest n counts

The highest number leads, whichever of these files it has. To make its `term` file, which of several that try one can,
is to win. Only its leader writes into an epoch's folder, and after each write it looks whether there is a higher
number: then what it wrote does not count. A new leader copies the records of the last opened epoch, and then opens its
own: nothing that an older leader writes from then on is ever read. So what a leader could confirm, its successor has
read.

All of it blocks, and raises OSError. The storage must show a file to all once it is written, as POSIX and object stores
do now, and create a file only if it is missing (`If-None-Match`).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

from ...messages import LeaderSessionId, MalformedMessage, decode, encode, message
from ...state import CheckpointStorage, CorruptState, MissingState
from .errors import NotOurs

log = logging.getLogger(__name__)

FOLDER = "epochs"
_TERM, _OPENED, _JOBS = "term", "opened", "jobs"
_TRIES = 5
_COPIED = 1
"""The version of a record that was taken over; its leader's own come after it."""
_NUMBER = re.compile(r"\d{8}")


@message
class EpochTerm:
    """What a leader says of itself, again and again."""

    leader_session_id: LeaderSessionId
    address: str = ""
    beats: int = 0
    is_over: bool = False
    """It has given up: nobody has to wait."""
    key_id: str = ""
    """Of the key of its cluster."""


@dataclass(frozen=True, slots=True)
class Epoch:
    """As it was found."""

    number: int
    term: EpochTerm


LOST = EpochTerm(LeaderSessionId(""))
"""Of an epoch whose file somebody has removed or spoilt: a leader that lives writes it again; one that does not is
followed.
"""


class StorageEpochs:
    """Of one cluster. `storage`: its own folder."""

    def __init__(self, storage: CheckpointStorage) -> None:
        self.storage = storage

    def newest(self) -> Epoch | None:
        """The one that leads, or has led last. Raises NotOurs."""
        while numbers := self._numbers():
            number = numbers[-1]
            try:
                return Epoch(number, self._term(number))
            except NotOurs:
                if any(parts[2] != _TERM for parts in self._paths(f"{FOLDER}/{number:08d}")):
                    return Epoch(number, LOST)  # it has files of ours: this one has rotted
                raise
            except MissingState:
                if self._numbers()[-1:] == [number]:  # else a later leader has removed it just now
                    return Epoch(number, LOST)
        return None

    def is_newest(self, number: int, session: LeaderSessionId | None = None) -> bool:
        """Also whether it is this session's, where one is given: with all files gone, another process may have won the
        same number again. A term file that is missing or spoilt is for the session to write.
        """
        if max(self._numbers(), default=number) != number:
            return False
        with suppress(MissingState, NotOurs):
            return session is None or self._term(number).leader_session_id == session
        return True

    def claim(self, number: int, term: EpochTerm) -> bool:
        """Whether this process has won that epoch. Raises OSError when nobody knows."""
        try:
            self.storage.create_sealed(_path(number, _TERM), encode(term))
        except FileExistsError:
            return False
        return True

    def say(self, number: int, term: EpochTerm) -> None:
        """Its leader lives. Call it as long as the number is this leader's."""
        if self._numbers():
            self.storage.write_sealed(_path(number, _TERM), encode(term))
        else:  # all files are gone, and another process may be about to win
            with suppress(FileExistsError):
                self.storage.create_sealed(_path(number, _TERM), encode(term))

    # -- records

    def inherit(self, number: int) -> None:
        """Take over what the last opened epoch before this one has, and open this one."""
        source = self._last_opened(number)
        if source is not None:
            for name, data in self.records(source).items():
                self.write(number, name, _COPIED, data)
        self.storage.write_sealed(_path(number, _OPENED), b"")
        for each in self._numbers():
            if each < number:
                self._remove(each)

    def _last_opened(self, below: int) -> int | None:
        """By its file; or, where somebody has removed that, by records that were written after the opening, or as the
        only one left: whoever has copied the records of an epoch has made sure of its file first.
        """
        marked = [each for each in self._numbers(_OPENED) if each < below]
        last = marked[-1] if marked else None
        unmarked = []
        for each in self._numbers():
            versions = self._versions(each).values() if (last or 0) < each < below else ()
            if any(last is None or max(of) > _COPIED for of in versions):
                unmarked.append(each)
        if not unmarked:
            return last
        log.warning(
            "%s has been removed, though the records of jobs beside it are there: they are taken over. Exempt the "
            "cluster's folder from rules that remove old files",
            self.storage.location(_path(unmarked[-1], _OPENED)),
        )
        self.storage.write_sealed(_path(unmarked[-1], _OPENED), b"")
        return unmarked[-1]

    def records(self, number: int) -> Mapping[str, bytes]:
        """By name. One that cannot be read is empty: none, for whoever decodes it. Those removed meanwhile are left
        out.
        """
        found = {name: self._newest_record(number, name, versions) for name, versions in self._versions(number).items()}
        there = self._versions(number) if b"" in found.values() else found
        return {name: data for name, data in found.items() if name in there}

    def write(self, number: int, name: str, version: int, data: bytes) -> None:
        self.storage.write_sealed(_path(number, _JOBS, name, f"{version:08d}"), data)

    def remove(self, number: int, name: str, below: int) -> None:
        """All versions of a record below this one, the oldest first."""
        paths = [
            _path(number, _JOBS, name, f"{version:08d}")
            for version in sorted(self._versions(number).get(name, ()))
            if version < below
        ]
        for path in paths:
            self.storage.delete(path)
        self.storage.make_deletions_last(paths)

    def place(self, number: int, name: str) -> str:
        return self.storage.location(_path(number, _JOBS, name))

    # -- inside

    def _term(self, number: int) -> EpochTerm:
        path = _path(number, _TERM)
        try:
            found = decode(self._said(path))
        except (CorruptState, MalformedMessage) as error:
            raise NotOurs(self.storage.location(path), str(error)) from error
        if not isinstance(found, EpochTerm):
            raise NotOurs(self.storage.location(path), f"{found!r:.80}")
        return found

    def _said(self, path: str) -> bytes:
        """A file is read in two acts, and its leader may replace it between them."""
        for _ in range(_TRIES - 1):
            with suppress(CorruptState):
                return self.storage.read_sealed(path)
        return self.storage.read_sealed(path)

    def _numbers(self, of: str | None = None) -> list[int]:
        """Of the epochs that have this file, in order; None: any file."""
        return sorted({int(parts[1]) for parts in self._paths() if of is None or parts[2:] == [of]})

    def _versions(self, number: int) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for parts in self._paths(f"{FOLDER}/{number:08d}/{_JOBS}"):
            if len(parts) == 5 and _NUMBER.fullmatch(parts[4]):
                found.setdefault(parts[3], []).append(int(parts[4]))
        return found

    def _newest_record(self, number: int, name: str, versions: list[int]) -> bytes:
        for version in sorted(versions, reverse=True):
            with suppress(CorruptState, MissingState):
                return self.storage.read_sealed(_path(number, _JOBS, name, f"{version:08d}"))
        return b""

    def _paths(self, folder: str = FOLDER) -> Iterator[list[str]]:
        for path in self.storage.list_files(folder):
            parts = path.split("/")
            if _NUMBER.fullmatch(parts[1]):
                yield parts

    def _remove(self, number: int) -> None:
        """Its term last: as long as that is there the folder says what it is."""
        paths = ["/".join(parts) for parts in self._paths(f"{FOLDER}/{number:08d}")]
        for path in sorted(paths, key=lambda path: path.endswith(f"/{_TERM}")):
            self.storage.delete(path)


def _path(number: int, *parts: str) -> str:
    return "/".join((FOLDER, f"{number:08d}", *parts))
