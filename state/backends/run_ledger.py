"""RunLedger: what one backend in columns writes for an incremental checkpoint, and which older runs it goes on using.

A run is a file with all that was changed, slot by slot, between two checkpoints; the first one holds everything. A
snapshot is a list of runs, in which newer ones replace what older ones say of a key. Three rules:

- A change belongs to every new run until a checkpoint that has it is known to be complete. So nothing is lost with one
  that is declined, aborted or never heard of again.
- A run is used only as long as each snapshot since has used it. So when a checkpoint completes, and the files that it
  does not name go, no later snapshot that is still being written needs one of them. A whole snapshot uses none,
  so after it the ledger starts over.
- MOST_OF_A_LEVEL runs of one level and the changes at hand become one of the next level, written again from memory:
  nothing is read for it. As soon as the runs after the first one hold more rows than half of the slots, everything is
  written. So files take at most one and a half times what the state does, and there are at most
  `1 + MOST_OF_A_LEVEL * log(slots)` of them, to the base MOST_OF_A_LEVEL + 1.

The task's thread owns it. Compare LevelDB's levels, and Flink's RocksDB backend, whose files RocksDB merges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ...messages import CheckpointId, KeyedStateHandle, SharedFileId
from ..keys.word_table import Slots
from .backend import KeyedSnapshot, SnapshotTarget
from .shared_files import remove_new
from .stored_runs import StoredRun, manifest_of, store_run

MOST_OF_A_LEVEL: Final = 7

_FEWEST_SLOTS = 1024


@dataclass(slots=True)
class Run:
    """One of a backend's runs."""

    slots: Slots | None
    """Ascending; None: all that there were."""
    level: int = 0
    stored: StoredRun | None = None
    """Where it lies, once it is written."""

    @property
    def rows(self) -> int:
        return 0 if self.slots is None else len(self.slots)


@dataclass(slots=True)
class RunPlan:
    """Of one snapshot: these older runs, and a new one. Whoever writes the new one says where it lies."""

    checkpoint_id: CheckpointId
    kept: Sequence[Run]
    """The oldest first; all are stored."""
    new: Run | None
    """None: nothing has changed."""

    @property
    def is_whole(self) -> bool:
        """Whether the new run holds everything."""
        return self.new is not None and self.new.slots is None


@dataclass(slots=True)
class RunLedger:
    """`owner`: the operator's id, which the names of its files have in them."""

    owner: str
    _runs: list[Run] = field(default_factory=list)
    """Those that may be used again."""
    _newest: RunPlan | None = None
    _changed: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))
    """By slot: since the last snapshot."""
    _unconfirmed: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))
    """By slot: between `_runs` and the last snapshot."""
    _marks: bool = False
    """Whether it is worth while to note changes: not if the next snapshot is whole in any case."""
    _rows: int = 0
    """Of `changed`, since the last look at how many slots are marked."""

    def changed(self, slots: Slots | slice | int, rows: int, count: int) -> None:
        """These slots, in `rows` rows, hold something else now or nothing. `count`: how many slots there are."""
        if not self._marks:
            return
        if count > len(self._changed):
            self._changed = _grown(self._changed, count)
        self._changed[slots] = True
        self._rows += rows
        if self._rows >= count:
            self._rows = 0
            size = len(self._unconfirmed)
            marked = np.count_nonzero(self._changed[:size] | self._unconfirmed) + np.count_nonzero(self._changed[size:])
            self._marks = bool(2 * marked <= count)

    def plan(
        self, checkpoint_id: CheckpointId, count: int, *, holding: int | None = None, always: bool = False
    ) -> RunPlan:
        """The runs of the snapshot that is taken now; there are `count` slots, of which about `holding` hold something.
        `always`: there is a new run even if nothing has changed.
        """
        self._take_changes(count)
        if not self._marks:
            self._runs.clear()
        self._marks, self._rows = True, 0
        slots = np.flatnonzero(self._unconfirmed) if self._runs else np.empty(0, np.int64)
        level = 0
        while (len(slots) or always) and self._level_is_full(level):
            for run in self._runs[-MOST_OF_A_LEVEL:]:
                self._unconfirmed[run.slots] = True
            del self._runs[-MOST_OF_A_LEVEL:]
            slots, level = np.flatnonzero(self._unconfirmed), level + 1
        most = count if holding is None else holding
        if not self._runs or 2 * (len(slots) + sum(run.rows for run in self._runs)) > most:
            self._runs.clear()
            new: Run | None = Run(None)
        else:
            new = Run(slots, level) if len(slots) or always else None
        self._newest = RunPlan(checkpoint_id, tuple(self._runs), new)
        return self._newest

    def complete(self, checkpoint_id: CheckpointId) -> None:
        """This checkpoint is. Of no use if another snapshot was taken since: that one does not use its run."""
        newest = self._newest
        if newest is None or newest.checkpoint_id != checkpoint_id:
            return
        self._newest = None
        if newest.new is None or newest.new.stored is not None:
            self._runs = [*newest.kept, *([] if newest.new is None else [newest.new])]
            self._unconfirmed[:] = False

    def start_over(self) -> None:
        """Slots are not what they were: the next snapshot is whole."""
        self._runs, self._newest, self._marks = [], None, False
        self._changed[:] = False
        self._unconfirmed[:] = False

    def forget_changes(self) -> None:
        """Slots get other numbers, and the snapshot that was planned last is whole."""
        assert not self._runs, "no run is used that names slots"
        self._unconfirmed[:] = False

    def _take_changes(self, count: int) -> None:
        size = max(count, len(self._changed))
        self._changed, self._unconfirmed = _grown(self._changed, size), _grown(self._unconfirmed, size)
        self._unconfirmed |= self._changed
        self._changed[:] = False

    def _level_is_full(self, level: int) -> bool:
        last = self._runs[-MOST_OF_A_LEVEL:]
        return len(last) == MOST_OF_A_LEVEL and all(run.level == level and run.slots is not None for run in last)


def _grown(marks: npt.NDArray[np.bool_], slots: int) -> npt.NDArray[np.bool_]:
    """Its length is a power of two, so marks that have grown in other steps come to the same length."""
    if slots <= len(marks):
        return marks
    grown = np.zeros(max(1 << (slots - 1).bit_length(), _FEWEST_SLOTS), np.bool_)
    grown[: len(marks)] = marks
    return grown


class PlannedRuns(NamedTuple):
    """What is written for a snapshot of one ledger."""

    plan: RunPlan
    owner: str
    write_new: KeyedSnapshot | None
    """Makes an inline handle of the new run, if there is one."""


def write_runs(parts: Sequence[PlannedRuns], key_groups: range, target: SnapshotTarget) -> KeyedStateHandle | None:
    """Write the new runs of these, one at least, and list all. Blocks. When it raises, it has removed what it wrote.

    A small state of one ledger is stored as it is, without runs; so is none at all.
    """
    runs: list[StoredRun] = []
    try:
        for plan, owner, write_new in parts:
            if plan.new is not None:
                assert write_new is not None, "there is a new run"
                written = write_new(target)
                is_small = written is None or written.handle.size_bytes < target.inline_below_bytes
                if len(parts) == 1 and plan.is_whole and is_small:
                    return written
                assert written is not None, "a run that is not whole names its keys"
                plan.new.stored = store_run(SharedFileId(f"{owner}-{plan.checkpoint_id}"), written, target)
            used = [*plan.kept, *([] if plan.new is None else [plan.new])]
            runs += [run.stored for run in used if run.stored is not None]
    except BaseException:
        remove_new([run.shared for run in runs], target)
        raise
    return manifest_of(key_groups, runs)
