"""Where a path leads: a savepoint's pointer, or the folder or metadata of a checkpoint; and the checkpoint behind it.

Any path or URL that fsspec knows. Nothing but the pointer and the metadata is read, and nothing is written.
"""

from __future__ import annotations

import os
import posixpath
from dataclasses import dataclass

from ...state import DurableFiles
from ...state.checkpoint_folders import checkpoint_directory, is_checkpoint_folder
from ...state.checkpoints.checkpoint_metadata import read_checkpoint
from ...state.checkpoints.completed_checkpoints import CompletedCheckpoint
from ...state.checkpoints.savepoint_store import HEAP_PATHS, FilesystemSavepointStore, SavepointPointer, checkpoints_of
from ...state.checkpoints.savepoint_stores import FOLDER
from ...state.checkpoints.savepoints import METADATA, metadata_path
from ...state.durable_files import special_kind
from ...state.errors import CorruptState, ForgedPointer, MissingSavepoint, MissingState, OutsideRoot
from ...state.file_locations import AnyPath, absolute, is_url
from ...state.storage import CheckpointStorage
from .errors import IncompleteSavepoint, NotASavepoint

_MOST_LISTED = 5


@dataclass(frozen=True, slots=True)
class Found:
    """A checkpoint that was read, but for its state."""

    path: str
    """Of the pointer, or of the metadata; absolute."""
    storage: CheckpointStorage
    """That its handles' paths belong to."""
    checkpoint: CompletedCheckpoint


@dataclass(frozen=True, slots=True)
class Leads:
    """Where a path leads, before the metadata is read."""

    path: str
    storage: CheckpointStorage
    metadata: str
    """Relative to the storage's root."""
    pointer: SavepointPointer | None


def readable_path(path: AnyPath) -> str:
    """The same path or URL, wherever this process works. Raises NotASavepoint for one in a JobManager's memory and for
    one that can be no path, as a URL in pathlib is none, and TypeError for what is neither a text nor of pathlib.
    """
    if isinstance(path, str) and path.startswith(HEAP_PATHS):
        raise NotASavepoint(
            path,
            "it is kept in its JobManager's memory, and nobody else can read it: give the job a checkpoint_dir and "
            "take another one",
        )
    try:
        whole = absolute(path)
    except (TypeError, ValueError) as error:
        given: object = path
        if not isinstance(given, str | os.PathLike):
            raise
        raise NotASavepoint(ascii(str(path)), str(error)) from None
    return whole.rstrip("/") if is_url(whole) else whole


def find(path: AnyPath) -> Found:
    """Raises NotASavepoint, MissingSavepoint, MissingState, CorruptState, ForgedPointer, UnreachableRoot."""
    leads = follow(path)
    return Found(leads.path, leads.storage, read_metadata(leads))


def follow(path: AnyPath) -> Leads:
    """As `find`; the metadata is not read."""
    whole = readable_path(path)
    metadata = metadata_path(whole)
    if metadata is not None:
        folder = posixpath.dirname(metadata)
        storage = CheckpointStorage(posixpath.dirname(posixpath.dirname(folder)))
        relative = posixpath.join(*folder.split("/")[-2:], METADATA)
        return Leads(storage.location(relative), storage, relative, None)
    storage, name = CheckpointStorage(posixpath.dirname(whole)), posixpath.basename(whole)
    try:
        is_there = storage.exists(name)
    except OutsideRoot:  # right below the root of a file system, or a link that leads elsewhere
        if not is_url(whole) and os.path.islink(whole):
            return follow(os.path.realpath(whole))
        is_there = False
    if not is_there:
        raise _nothing_there(whole)
    pointer = _pointer(storage, name, whole)
    return Leads(whole, _storage_of(pointer, whole), pointer.metadata_path, pointer)


def read_metadata(leads: Leads) -> CompletedCheckpoint:
    """Raises MissingState, IncompleteSavepoint, CorruptState, ForgedPointer."""
    storage, relative, pointer = leads.storage, leads.metadata, leads.pointer
    if pointer is None and not storage.exists(relative):
        raise _incomplete(leads)
    try:
        checkpoint = read_checkpoint(storage, relative)
    except CorruptState as error:
        raise CorruptState(storage.location(relative), error.expected, error.found) from error
    except MissingState as error:
        raise MissingState(storage.location(relative)) from error
    if pointer is not None:
        led, found = (pointer.job_id, pointer.checkpoint_id), (checkpoint.job_id, checkpoint.checkpoint_id)
        if led != found:
            raise ForgedPointer(
                leads.path, f"leads to checkpoint {found[1]} of {found[0]}; wanted {led[1]} of {led[0]}"
            )
    return checkpoint


def _pointer(storage: CheckpointStorage, name: str, whole: str) -> SavepointPointer:
    try:
        pointer = FilesystemSavepointStore(storage).load(name)
    except CorruptState as error:
        if error.expected.startswith("a file that begins"):
            raise NotASavepoint(whole, f"wanted {error.expected}, found {error.found}") from error
        raise
    expected = f"{checkpoint_directory(pointer.job_id, pointer.checkpoint_id)}/{METADATA}"
    if pointer.metadata_path != expected:
        raise ForgedPointer(whole, f"leads to {pointer.metadata_path}; wanted {expected}")
    return pointer


def _storage_of(pointer: SavepointPointer, path: str) -> CheckpointStorage:
    """The checkpoint directory around the pointer, which may have been moved as a whole, if it has anything of the job;
    else the one it names.
    """
    folder, job = posixpath.dirname(path), pointer.metadata_path.split("/")[0]
    while posixpath.basename(folder):
        if posixpath.basename(folder) == FOLDER:
            files, root = DurableFiles.at(posixpath.dirname(folder))
            if files.exists(posixpath.join(root, job)):
                return CheckpointStorage(posixpath.dirname(folder))
        folder = posixpath.dirname(folder)
    return checkpoints_of(pointer, path)


def _incomplete(leads: Leads) -> Exception:
    folder = posixpath.dirname(leads.metadata)
    if not leads.storage.list_files(folder):
        return MissingSavepoint(leads.storage.location(folder), "there is no such checkpoint, or it has been deleted")
    return IncompleteSavepoint(
        leads.storage.location(folder),
        f"it has no {METADATA}, which is written last: the checkpoint was never complete. Take an older one",
    )


def _nothing_there(whole: str) -> Exception:
    if not is_url(whole) and (kind := special_kind(whole)) is not None:
        return NotASavepoint(whole, f"it is {kind}; wanted a savepoint's file, or a checkpoint's folder")
    files, root = DurableFiles.at(whole)
    names = files.names(root) if files.exists(root) else []
    if not names and not files.exists(root):
        return MissingSavepoint(whole, "there is nothing at this path, or it has been disposed of: correct the path")
    if FOLDER in names:
        return NotASavepoint(
            whole, f"it is a checkpoint_dir; name one of its savepoints: {_listed(files, root, FOLDER)}"
        )
    chk = [name for name in names if is_checkpoint_folder(name)]
    if chk:
        return NotASavepoint(whole, f"it is a job's folder; name one of its checkpoints: {_shown(whole, chk)}")
    if METADATA in names:
        named = "a checkpoint's folder is called chk-N, and lies in its job's; put it back there"
        return NotASavepoint(whole, f"it is a folder with a {METADATA}, but {named}")
    if names:
        return NotASavepoint(
            whole, f"it is a folder, with {_shown('', names)} in it; name one of the savepoints below it"
        )
    return NotASavepoint(whole, "it is an empty folder")


def _listed(files: DurableFiles, root: str, folder: str) -> str:
    below = posixpath.join(root, folder)
    return _shown(below, files.names(below)) or "there are none"


def _shown(folder: str, names: list[str]) -> str:
    more = f" and {len(names) - _MOST_LISTED} more" if len(names) > _MOST_LISTED else ""
    return ", ".join(posixpath.join(folder, name) for name in names[:_MOST_LISTED]) + more
