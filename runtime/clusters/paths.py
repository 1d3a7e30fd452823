"""Paths of savepoints as a user writes them, in the API and on the command line: text or os.PathLike, with `~`.

The JobManager resolves relative paths: it knows below which folders savepoints are.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress

from ...actors.errors import CannotRestore
from ...messages.attributes import attributes_of
from ...state.checkpoints.savepoint_store import is_pointer
from ...state.errors import MissingState, OutsideRoot
from ...state.file_locations import AnyPath, is_url, unwrapped
from ..api.errors import InvalidSetting

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def savepoint_at(path: AnyPath) -> tuple[str, str]:
    """The path of a savepoint or retained checkpoint, and the folder in which a relative one is looked for first."""
    written = _text("a savepoint's path", path)
    folder = ""
    if not (os.path.isabs(written) or is_url(written)):
        with suppress(OSError):  # the working directory may have been deleted
            folder = os.getcwd()
    return written, folder


@contextmanager
def looked_at_here(path: AnyPath | None) -> Iterator[None]:
    """A savepoint that the JobManager finds below none of its folders: says what this machine has at the path."""
    try:
        yield
    except CannotRestore as error:
        if path is not None and isinstance(error.__cause__, OutsideRoot):
            written, folder = savepoint_at(path)
            told = "" if is_url(written) else _what_is_at(os.path.join(folder, written))
            error.args = (str(error).replace(f"{written}: ", f"{written}: {told}", 1),)
        has_all = isinstance(error.__cause__, MissingState | OutsideRoot)  # then the causes add our own frames alone
        raise _without_frames(error) from None if has_all else error.__cause__


def _without_frames(error: CannotRestore) -> CannotRestore:
    """The same error, without those of the JobManager. How it was made is its own matter."""
    same = type(error).__new__(type(error), *error.args)
    vars(same).update(attributes_of(error))
    return same


def _what_is_at(place: str) -> str:
    """The beginning of a sentence; empty for a savepoint or checkpoint."""
    if not os.path.exists(place):
        return f"there is no {place} on this machine: correct the path; it "
    if os.path.isfile(place) and is_pointer(place):
        return (
            "it is there, but outside of the folders in which this job looks: give the job the checkpoint_dir of the "
            "one that took it (or set savepoints.state.backend.fs.dir to the folder above it); it "
        )
    if not os.path.isdir(place) and os.path.basename(place) != "_metadata":
        return (
            f"{place} is a file, and neither a savepoint nor a checkpoint: give the path that `understudy savepoint` "
            "printed or trigger_savepoint() returned; it "
        )
    if os.path.isdir(place) and not os.path.exists(f"{place}/_metadata"):
        return (
            f"{place} is a folder and neither a savepoint nor a checkpoint: give the path that `understudy savepoint` "
            "printed or trigger_savepoint() returned, or a checkpoint's folder, chk-N; it "
        )
    return ""


def target_folder(path: AnyPath | None) -> str | None:
    """The folder for a savepoint: below the savepoints' root, if it is relative."""
    return None if path is None else _text("target_directory", path)


def _text(name: str, path: AnyPath) -> str:
    try:
        written = unwrapped(path)
    except (TypeError, ValueError) as error:
        raise InvalidSetting(f"{name}: {error}") from None
    if isinstance(written, Future):
        raise InvalidSetting(f"{name}: wanted a path, found the future of one: write `.result()`, or `await` it")
    if not isinstance(written, str) or not written:
        raise InvalidSetting(f"{name}: wanted a path that is not empty, found {path!r:.80}")
    if _CONTROL.search(written):
        raise InvalidSetting(f"{name}: wanted a path without line breaks and control characters, found {path!r:.80}")
    if _SURROGATE.search(written):
        raise InvalidSetting(f"{name}: wanted a path that can be written as UTF-8, found {path!r:.80}")
    return os.path.expanduser(written)
