"""Deleting what a job does not need any more. Blocks; may be done again after a failure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...state import CheckpointStorage, state_handles
from ..checkpoints.checkpoint_effects import Discard


def delete_discarded(storage: CheckpointStorage, discard: Discard) -> None:
    """Delete a discarded checkpoint: its metadata, and then all of its files that nobody else needs.

    The metadata first: a checkpoint without it is no checkpoint, while one without its state would be a broken one.
    """
    if discard.metadata_path:
        storage.delete(discard.metadata_path)
    delete_files(storage, [path for path in _paths(discard) if path not in discard.kept])


def delete_files(storage: CheckpointStorage, paths: Iterable[str]) -> None:
    """Delete these files, in this order and permanently, and the folders that get empty.

    A file that cannot be deleted keeps nobody else; the first error is raised when all have been tried.
    """
    errors: list[OSError] = []
    paths = list(paths)
    for path in paths:
        try:
            storage.delete(path)
        except OSError as error:
            errors.append(error)
    storage.make_deletions_last(paths)
    if errors:
        raise errors[0]


def _paths(discard: Discard) -> Iterator[str]:
    """Each file of the states, once; several states of one subtask lie in one file."""
    handles = (handle for state in discard.states for handle in state_handles(state))
    yield from dict.fromkeys(handle.path for handle in handles if handle.path is not None)
