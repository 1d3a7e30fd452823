"""Can a sink write to this folder? Tried by whoever submits a job, before the job starts and writes into it; what stops
a job that writes is put into the same words.

A file is written and removed: in the folder, or where the first missing one of its parents would be made. No folder is
made for it: it would have to be removed again, and by then another job may count on it. A trial leaves nothing behind,
also when the power fails after it.
"""

from __future__ import annotations

import errno
import posixpath
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ....state import DurableFiles
from ....state.file_locations import is_url
from ....state.full_disk import ADVICE, advice_on, as_said
from ..errors import UnknownFileSystem, UnusableOutput
from .locations import located

_FILE = ".understudy-trial"
_FORBIDDEN = "this user may not write there: choose another folder, or change its permissions"


def try_output(url: str) -> None:
    """Raises UnusableOutput, or UnknownFileSystem for a URL that cannot be opened at all."""
    fs, path = located(url)
    files, root = DurableFiles(fs), path.rstrip("/")
    folder = _first_there(files, root) if files.has_folders else root
    try:
        fs.pipe_file(f"{folder}/{_FILE}", b"")
        files.remove(f"{folder}/{_FILE}")
        files.sync_up(folder or "/", folder or "/")
    except Exception as error:  # object stores have errors of their own
        raise UnusableOutput(_told(files, url, root, error)) from error


@contextmanager
def output_named(place: str) -> Iterator[None]:
    """While a job writes to `place`: raises UnusableOutput for what the file system says of all that is written there,
    as that its disk is full; any other error as it is.
    """
    try:
        yield
    except Exception as error:
        each: BaseException | None = error
        while each is not None:  # a library may fail once more where it closes its file
            if isinstance(each, OSError) and (advice := _advice(each, place)):
                raise UnusableOutput(f"cannot write to {place}: {advice} ({_reason(each)})") from error
            each = each.__cause__ or each.__context__
        raise


def is_local(url: str) -> bool:
    """Whether it is a path of this machine, which another machine may not have. Raises UnknownFileSystem."""
    return DurableFiles(located(url)[0]).is_local


def _first_there(files: DurableFiles, root: str) -> str:
    """The folder, or the nearest one above it that exists."""
    while root and not files.exists(root):
        root = posixpath.dirname(root).rstrip("/")
    return root


def _told(files: DurableFiles, url: str, root: str, error: Exception) -> str:
    if (file := _file_in_the_way(files, root)) is not None:
        where = "it" if file == root else file
        return f"cannot write to {url}: {where} is a file, and wanted is a folder: choose another, or remove the file"
    reason = _reason(error)
    advice = _advice(error, url) if isinstance(error, OSError) else ""
    return f"cannot write to {url}: {f'{advice} ({reason})' if advice else reason}"


def _advice(error: OSError, place: str) -> str:
    """What is wrong there, and what to do; empty for another error."""
    if error.errno in (errno.EACCES, errno.EPERM):
        return _FORBIDDEN
    if error.errno not in ADVICE:
        return ""
    folder = _local_folder(place)
    advice = advice_on(error, folder or place, is_local=folder != "")
    return "" if advice is None else f"{advice.found}: {advice.todo}"


def _local_folder(place: str) -> str:
    """Empty for one in a store, and for a table that a catalog finds, or a library with a store of its own."""
    if not (is_url(place) or posixpath.isabs(place)):
        return ""
    try:
        fs, path = located(place)
    except UnknownFileSystem:
        return ""
    return path if DurableFiles(fs).is_local else ""


def _reason(error: BaseException) -> str:
    said = as_said(error) if isinstance(error, OSError) else error
    return f"{type(said).__name__}: {said}"


def _file_in_the_way(files: DurableFiles, root: str) -> str | None:
    with suppress(Exception):  # if it cannot be looked at, the first error is enough
        while root.strip("/"):
            if files.fs.isfile(root):
                return root
            root = posixpath.dirname(root)
    return None
