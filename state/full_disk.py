"""A disk that takes no more: what write(2) and fsync(2) say of it names no file, so the folder is put into the error
here, with what is free and what to do.
"""

from __future__ import annotations

import errno
import os
import posixpath
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from .errors import UnwritableFolder


class Advice(NamedTuple):
    """`found`: of a folder."""

    found: str
    todo: str


ADVICE = {
    errno.ENOSPC: Advice("its disk is full", "make space, or choose another folder"),
    errno.EDQUOT: Advice("its quota is used up", "make space, or choose another folder"),
    errno.EROFS: Advice("its file system is read-only", "choose another folder, or mount it writable"),
    errno.EFBIG: Advice("no file there may become so large", "raise the limit (ulimit -f), or choose another folder"),
}


_NO_FILES = Advice("its disk has no place for another file", "remove some, or choose another folder")
"""In place of ADVICE where bytes may be left, and none of its inodes are."""
_FORBIDDEN = (errno.EACCES, errno.EPERM)


@contextmanager
def folder_named(path: str, *, is_local: bool, wanted_bytes: int = 0) -> Iterator[None]:
    """While the file `path` is written: raises UnwritableFolder, with the same errno, where ADVICE knows it. The text
    says which folder is meant, how much is free there if it `is_local`, and what to do. Any other error as it is, also
    one that names its folder already. `wanted_bytes`: what had to be free, where that may be more than what is.
    """
    try:
        yield
    except OSError as error:
        ours = named(error, path, is_local=is_local, wanted_bytes=wanted_bytes)
        if ours is error:
            raise
        raise ours from error


def named(error: OSError, path: str, *, is_local: bool, wanted_bytes: int = 0) -> OSError:
    """What `folder_named` raises for this error."""
    if isinstance(error, UnwritableFolder):
        return error
    if is_local and error.errno in _FORBIDDEN:
        return _forbidden(error, path)
    folder = posixpath.dirname(path) or path
    advice = advice_on(error, folder, is_local=is_local, wanted_bytes=wanted_bytes)
    if advice is None:
        return error
    text = f"{error.strerror}: cannot write to {folder}: {advice.found}: {advice.todo}"
    return UnwritableFolder(error.errno, text)


def advice_on(error: OSError, folder: str, *, is_local: bool, wanted_bytes: int = 0) -> Advice | None:
    """None where ADVICE does not know the error. Of a full disk, what it `found` says how much is free."""
    advice = ADVICE.get(error.errno or 0)
    if advice is None or error.errno != errno.ENOSPC or not is_local or (disk := _disk_of(folder)) is None:
        return advice
    if _has_no_place_for_files(disk):
        advice = _NO_FILES
    return Advice(advice.found + _free(disk, wanted_bytes), advice.todo)


def _forbidden(error: OSError, path: str) -> UnwritableFolder:
    """Where the error names what was to be made, that lies in the folder which is forbidden."""
    folder = posixpath.dirname(str(error.filename or path)) or path
    text = (
        f"{error.strerror}: cannot write to {folder}: user {os.geteuid()} of this host may not: let that user write "
        "there, on each host, or choose another folder"
    )
    return UnwritableFolder(error.errno, text)


def as_said(error: OSError) -> BaseException:
    """Without what `folder_named` has added, for whoever names the folder by another name."""
    return error.__cause__ or error if isinstance(error, UnwritableFolder) else error


def _disk_of(folder: str) -> os.statvfs_result | None:
    """Of a folder, or of one above it."""
    while True:
        try:
            return os.statvfs(folder)
        except OSError:
            above = posixpath.dirname(folder)
            if above == folder:
                return None
            folder = above


def _has_no_place_for_files(disk: os.statvfs_result) -> bool:
    return bool(disk.f_files) and not disk.f_favail


def _free(disk: os.statvfs_result, wanted_bytes: int) -> str:
    size, free = (count * disk.f_frsize for count in (disk.f_blocks, disk.f_bavail))
    files = f", and {disk.f_favail:,} of {disk.f_files:,} files" if _has_no_place_for_files(disk) else ""
    wanted = f"; {wanted_bytes:,} are needed" if free < wanted_bytes else ""
    return f" ({free:,} of {size:,} bytes are free{files}{wanted})"
