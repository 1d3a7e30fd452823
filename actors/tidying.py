"""Deleting what a job does not need any more. Blocks; may be done again after a failure."""

from __future__ import annotations

from collections.abc import Iterator

from ..messages import StateHandle
from ..state import CheckpointStorage
from .checkpoint_effects import Discard


def delete_discarded(storage: CheckpointStorage, discard: Discard) -> None:
    """Delete a discarded checkpoint: its metadata, and then all that is its own.

    The metadata first: a checkpoint without it is no checkpoint, while one without its state would be a broken one. A
    file that cannot be deleted keeps nobody else; the first error is raised when all have been tried.
    """
    if discard.metadata_path:
        storage.delete(discard.metadata_path)
    errors: list[OSError] = []
    for handle in _own_files(discard):
        try:
            storage.delete(handle)
        except OSError as error:
            errors.append(error)
    if errors:
        raise errors[0]


def _own_files(discard: Discard) -> Iterator[StateHandle]:
    """A handle of each file, once; several states of one subtask lie in one file."""
    handles = [
        handle
        for state in discard.states
        for operator in state.operators.values()
        for handle in (*(keyed.handle for keyed in operator.keyed), *(item.handle for item in operator.lists))
    ]
    yield from {handle.path: handle for handle in handles if handle.path is not None}.values()
