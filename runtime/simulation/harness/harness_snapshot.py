"""HarnessSnapshot: what a harness wrote at a barrier, complete in itself.

It holds the bytes of the files that its state lies in, so it can be kept, pickled, and restored from long after the
harness and its folder are gone. Several of them, one per subtask, make the snapshot of a vertex, which is dealt out to
any parallelism as a job's restart does it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ....messages import CheckpointId, SubtaskIndex, SubtaskState
from ....state import CheckpointStorage, assign_state, state_handles, state_size_bytes


class HarnessMisused(ValueError):
    """A harness cannot do what it was asked; the text says what was found and what was wanted."""


@dataclass(frozen=True, slots=True)
class HarnessSnapshot:
    """One subtask's state at checkpoint `checkpoint_id`."""

    checkpoint_id: CheckpointId
    job_id: str
    subtask_index: int
    parallelism: int
    max_parallelism: int
    attempt_number: int
    clock_ms: float
    """What the harness's clock said."""
    state: SubtaskState = field(repr=False)
    files: Mapping[str, bytes] = field(repr=False)
    """The state's files, by their path below the checkpoint directory."""

    @property
    def size_bytes(self) -> int:
        return state_size_bytes(self.state)

    def put_files(self, storage: CheckpointStorage) -> None:
        """Write the files to where another harness looks for them."""
        for path, data in self.files.items():
            storage.write(path, data)


def files_of(state: SubtaskState, storage: CheckpointStorage) -> dict[str, bytes]:
    """The bytes of all files that the state points to."""
    return {handle.path: storage.read(handle) for handle in state_handles(state) if handle.path is not None}


def share_of_state(
    snapshots: Sequence[HarnessSnapshot], parallelism: int, subtask_index: int
) -> tuple[SubtaskState, ...]:
    """What one of `parallelism` subtasks restores of a vertex's snapshot. Raises HarnessMisused."""
    _check_one_cut(snapshots)
    first = snapshots[0]
    states = {SubtaskIndex(each.subtask_index): each.state for each in snapshots}
    share = assign_state(states, first.parallelism, parallelism, first.max_parallelism)[subtask_index]
    return () if share is None else (share,)


def _check_one_cut(snapshots: Sequence[HarnessSnapshot]) -> None:
    """All subtasks of one vertex, each once, of one checkpoint."""
    for what in ("checkpoint_id", "parallelism", "max_parallelism"):
        found = sorted({getattr(each, what) for each in snapshots})
        if len(found) > 1:
            hint = ": give them one with snapshot(checkpoint_id)" if what == "checkpoint_id" else ""
            raise HarnessMisused(f"these snapshots do not belong together: their {what}s are {found}{hint}")
    found, wanted = sorted(each.subtask_index for each in snapshots), list(range(snapshots[0].parallelism))
    if found != wanted:
        raise HarnessMisused(f"wanted a snapshot of each of the subtasks {wanted}, found those of {found}")
