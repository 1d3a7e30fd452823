"""StoreRequests: requests to a store without folders, such as S3: tried again, each try within a limit of time.

A store of fsspec shows an object when it is whole, so one request writes a file: no rename, no list that has to be up
to date. A request that fails at the end raises RequestFailed, which names the object, the tries and the cause.
What files mean, and checksums, are not at home here. Each call blocks; safe from any thread.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from typing import Any

from fsspec import AbstractFileSystem
from fsspec.asyn import AsyncFileSystem

from .errors import InvalidStorageSetting, RequestFailed
from .file_locations import is_url

log = logging.getLogger(__name__)

TRIES, TIMEOUT_MS = "UNDERSTUDY_STORAGE_TRIES", "UNDERSTUDY_STORAGE_TIMEOUT_MS"
PART_BYTES = 16 * 1024 * 1024
"""Of a large object in S3: its parts are sent beside each other."""

_WITH_BUCKETS = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "oss"})
"""Stores in which there are no folders to make, and where to make those above a file may make a bucket."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 5.0
_BYTES_PER_S = 1024 * 1024
_AWAY_S, _QUIET_S = 2.0, 60.0
"""How long a request is tried before the log says so, and for how long the log says it of no other one then."""
_NOTHING_HELPS = (PermissionError, FileExistsError, IsADirectoryError, NotADirectoryError, ValueError, TypeError)
"""The same request gets the same answer; and so for credentials that are missing."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How often a request is tried, and how long a try may take: for each MiB that it sends, a second more."""

    tries: int = 5
    timeout_ms: int = 60_000

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Patience:
        """As the variables say that credentials stand beside. Raises InvalidStorageSetting."""
        default = cls()
        return cls(_whole(environment, TRIES, default.tries), _whole(environment, TIMEOUT_MS, default.timeout_ms))

    def pauses_s(self) -> Iterator[float]:
        """Those between the tries; each is twice as long as the one before it."""
        for number in range(self.tries - 1):
            yield min(_FIRST_PAUSE_S * 2.0**number, _LONGEST_PAUSE_S)

    def limit_s(self, size_bytes: int) -> float:
        return self.timeout_ms / 1000 + size_bytes / _BYTES_PER_S


def _whole(environment: Mapping[str, str], name: str, default: int) -> int:
    found = environment.get(name, str(default))
    if not (found.isascii() and found.isdecimal() and int(found) >= 1):
        raise InvalidStorageSetting(name, f"wanted a whole number from 1, such as {default}, found {found!r}")
    return int(found)


class StoreRequests:
    """Of one file system of fsspec. FileNotFoundError and FileExistsError of the store are raised as they are, all else
    as RequestFailed.
    """

    def __init__(self, fs: AbstractFileSystem) -> None:
        self._fs = fs
        self._patience = Patience.of(os.environ)
        self._is_timed = isinstance(fs, AsyncFileSystem) and not fs.asynchronous
        self._is_s3 = hasattr(fs, "call_s3")
        self._quiet_until_s = -inf

    def make_folder(self, path: str) -> None:
        """Where the file system wants one; a bucket is never made."""
        protocol = self._fs.protocol
        if _WITH_BUCKETS.isdisjoint({protocol} if isinstance(protocol, str) else protocol):
            self._fs.makedirs(path, exist_ok=True)

    def write(self, path: str, data: bytes) -> None:
        """An object with this content, in place of another one. If it fails, either may be there, whole."""
        try:
            self._call("write", path, self._fs.pipe_file, path, data, size_bytes=len(data), **self._in_parts())
        except BaseException as error:
            self._abort_uploads(path, len(data))
            if isinstance(error, FileNotFoundError):  # of the bucket
                raise RequestFailed(self._url(path), "write", 1, error) from error
            raise

    def write_new(self, path: str, data: bytes) -> None:
        """The same where there is none yet; else FileExistsError. The content has to be the writer's alone: where it is
        there already, an earlier try has arrived and its answer was lost.
        """
        try:
            options: dict[str, Any] = {"mode": "create", "size_bytes": len(data), **self._in_parts()}
            self._call("write", path, self._fs.pipe_file, path, data, **options)
        except FileExistsError:
            if self.read(path) != data:
                raise

    def read(self, path: str, start: int | None = None, end: int | None = None, *, is_there: bool = False) -> bytes:
        """`is_there`: somebody has written it, so a store that does not know it yet is asked again."""
        size = (end or 0) - (start or 0)
        data: bytes = self._call(
            "read", path, self._fs.cat_file, path, start=start, end=end, size_bytes=max(size, 0), is_there=is_there
        )  # by name: s3fs has another order
        return data

    def size_bytes(self, path: str, *, is_there: bool = False) -> int:
        """Of an object; nothing that this process remembers of it counts."""
        return int(self._call("look at", path, self._info, path, is_timed=False, is_there=is_there)["size"])

    def remove(self, path: str) -> None:
        """An absent one is fine."""
        with suppress(FileNotFoundError):
            self._call("remove", path, self._fs.rm_file, path)

    def remove_folder(self, path: str) -> None:
        """All objects whose names begin with it. Raises FileNotFoundError when there are none."""
        self._call("remove", path, self._fs.rm, path, recursive=True, is_timed=False)

    def names(self, folder: str) -> list[str]:
        """The paths right below a folder. Raises FileNotFoundError."""
        return list(self._call("list", folder, self._fs.ls, folder, detail=False, is_timed=False))

    def find(self, folder: str) -> list[str]:
        """The paths of all objects below a folder; none for a missing one."""
        return list(self._call("list", folder, self._fs.find, folder, is_timed=False))

    def kind(self, path: str) -> str:
        """As "file" or "directory"; empty if there is nothing. fsspec's `isfile` says that of failures, too."""
        try:
            return str(self._call("look at", path, self._info, path, is_timed=False)["type"])
        except FileNotFoundError:
            return ""

    def _info(self, path: str) -> dict[str, Any]:
        self._fs.invalidate_cache()
        timed = {"timeout": self._patience.limit_s(0)} if self._is_timed else {}
        return dict(self._fs.info(path, **timed))

    def _call(
        self,
        what: str,
        path: str,
        request: Callable[..., Any],
        *args: Any,
        size_bytes: int = 0,
        is_there: bool = False,
        is_timed: bool = True,
        **options: Any,
    ) -> Any:
        if self._is_timed and is_timed:
            options["timeout"] = self._patience.limit_s(size_bytes)
        pauses, tries, began_s = self._patience.pauses_s(), 1, time.monotonic()
        while True:
            try:
                return request(*args, **options)
            except Exception as error:  # each client library has errors of its own
                if isinstance(error, FileExistsError) or (isinstance(error, FileNotFoundError) and not is_there):
                    raise
                pause_s = None if _is_final(error) else next(pauses, None)
                if pause_s is None:
                    if isinstance(error, FileNotFoundError):
                        raise
                    raise RequestFailed(self._url(path), what, tries, error) from error
                self._warn(what, path, tries, time.monotonic() - began_s, error)
            time.sleep(pause_s)
            tries += 1

    def _warn(self, what: str, path: str, tries: int, waited_s: float, error: Exception) -> None:
        """Of a store that has been away for a while: checkpoints and restores wait for it, and seem to stand still. Not
        of a try or two that fail, as any store's do.
        """
        now_s = time.monotonic()
        if waited_s < _AWAY_S or now_s < self._quiet_until_s:
            return
        self._quiet_until_s = now_s + _QUIET_S
        log.warning(
            "%s: could not %s this object for %.0f s, in %d of %d tries: %s: %s. What needs it waits",
            self._url(path),
            what,
            waited_s,
            tries,
            self._patience.tries,
            type(error).__name__,
            error,
        )

    def _in_parts(self) -> dict[str, Any]:
        return {"chunksize": PART_BYTES} if self._is_s3 else {}

    def _abort_uploads(self, path: str, size_bytes: int) -> None:
        """Of a write that failed: parts that nobody sees, and that cost money."""
        if not self._is_s3 or size_bytes < PART_BYTES:
            return
        fs: Any = self._fs
        bucket, key, _ = fs.split_path(path)
        with suppress(Exception):  # the caller gets the error of the write
            found = fs.call_s3("list_multipart_uploads", Bucket=bucket, Prefix=key)
            for each in found.get("Uploads", ()):
                if each["Key"] == key:
                    fs.call_s3("abort_multipart_upload", Bucket=bucket, Key=key, UploadId=each["UploadId"])

    def _url(self, path: str) -> str:
        return str(self._fs.unstrip_protocol(path))


def _is_final(error: Exception) -> bool:
    return isinstance(error, _NOTHING_HELPS) or "Credentials" in type(error).__name__


_ADVICE: dict[type[BaseException], str] = {
    FileNotFoundError: "this folder can neither be found nor made: correct the path",
    FileExistsError: "there is a file of this name, and a folder is wanted: correct the path",
    NotADirectoryError: "there is a file on this path where a folder is wanted: correct the path",
    PermissionError: "the user of this process may not write there: choose another folder, or change its permissions",
}
"""Of a path on this machine."""


def why_unusable(url: str, error: BaseException) -> str:
    """What is wrong with a store that a job is to use, for who has to mend it."""
    cause = error.__cause__ if isinstance(error, RequestFailed) and error.__cause__ is not None else error
    is_here = not is_url(url) or url.startswith(("file:", "local:"))
    if is_here and (advice := next((say for kind, say in _ADVICE.items() if isinstance(cause, kind)), None)):
        return f"{cause}: {advice}"
    if isinstance(cause, FileNotFoundError):
        return f"{cause}: make the bucket of {url}, or correct its name"
    if isinstance(cause, PermissionError) or "Credentials" in type(cause).__name__:
        return (
            f"{cause}: the credentials that this process found are missing, wrong, or may not write there; for S3 set "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile, with the rights of docs/object-storage.md"
        )
    return str(error)
