"""What incremental checkpoints write, and of how many runs they are made: all rows, no bytes."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, log
from pathlib import Path
from random import Random

import numpy as np
import pytest

from understudy.messages import (
    CheckpointId,
    ExecutionAttemptId,
    JobId,
    KeyedStateHandle,
    SharedFileId,
    SharedStateHandle,
    SubtaskIndex,
    VertexId,
)
from understudy.state import CheckpointStorage, SnapshotTarget
from understudy.state.backends.run_ledger import MOST_OF_A_LEVEL, PlannedRuns, RunLedger, RunPlan, write_runs
from understudy.state.backends.stored_runs import StoredRun
from understudy.state.handle_bytes import inline_handle

SLOTS = 20_000
STORED = StoredRun(SharedStateHandle(SharedFileId("run"), inline_handle(b"")), 0, "heap")


class Written:
    """A ledger whose plans are carried out."""

    def __init__(self) -> None:
        self.ledger = RunLedger("op")
        self.last = 0

    def taken(self) -> RunPlan:
        self.last += 1
        plan = self.ledger.plan(CheckpointId(self.last), SLOTS)
        if plan.new is not None:
            plan.new.stored = STORED
        return plan

    def completed(self) -> RunPlan:
        plan = self.taken()
        self.ledger.complete(plan.checkpoint_id)
        return plan

    def changed(self, *slots: int) -> None:
        self.ledger.changed(np.array(slots, np.int64), len(slots), SLOTS)


def rows(plan: RunPlan) -> list[int]:
    """Of its new run."""
    assert plan.new is not None
    assert plan.new.slots is not None
    return plan.new.slots.tolist()


@pytest.fixture
def written() -> Written:
    made = Written()
    assert made.completed().is_whole
    return made


@pytest.mark.parametrize("changes", [1, 20, 200])
def test_runs_stay_few_files_small_and_rows_are_written_few_times(written: Written, changes: int) -> None:
    random, total, most_runs = Random(changes), 0, 0
    rounds = max(60, 3 * SLOTS // (2 * changes)) if changes > 1 else 600
    for _ in range(rounds):
        written.changed(*random.sample(range(SLOTS), changes))
        plan = written.completed()
        assert plan.new is not None
        runs = [*plan.kept, plan.new]
        assert sum(run.rows for run in runs) <= SLOTS / 2
        most_runs = max(most_runs, len(runs))
        total += SLOTS if plan.is_whole else plan.new.rows
    assert MOST_OF_A_LEVEL < most_runs <= 1 + MOST_OF_A_LEVEL * ceil(log(SLOTS / 2 / changes, MOST_OF_A_LEVEL + 1))
    assert total <= rounds * changes * 7, "each changed row is written seven times at the most, on average"


def test_changes_are_in_each_run_until_one_is_known_to_be_complete(written: Written) -> None:
    written.changed(1)
    assert rows(written.taken()) == [1]
    written.changed(2)
    assert rows(written.taken()) == [1, 2]
    written.changed(3)
    written.ledger.complete(CheckpointId(written.last))
    assert rows(written.completed()) == [3]


def test_a_run_is_not_used_if_a_snapshot_was_taken_before_it_was_known_to_be_complete(written: Written) -> None:
    written.changed(1)
    first = written.taken()
    written.changed(2)
    second = written.taken()
    written.ledger.complete(first.checkpoint_id)
    assert len(written.taken().kept) == 1, "the whole one alone"
    written.ledger.complete(second.checkpoint_id)
    third = written.completed()
    assert rows(third) == [1, 2]


def test_runs_that_were_merged_are_not_used_again_though_what_merged_them_was_declined(written: Written) -> None:
    for slot in range(MOST_OF_A_LEVEL):
        written.changed(slot)
        written.completed()
    written.changed(100)
    merged = written.taken()
    assert rows(merged) == [*range(MOST_OF_A_LEVEL), 100]
    assert len(merged.kept) == 1
    again = written.taken()
    assert rows(again) == rows(merged)
    assert again.kept == merged.kept


def test_nothing_is_written_of_what_has_not_changed(written: Written) -> None:
    plan = written.completed()
    assert plan.new is None
    assert len(plan.kept) == 1


def test_after_a_move_of_slots_everything_is_written(written: Written) -> None:
    written.changed(1)
    pending = written.taken()
    written.ledger.start_over()
    written.ledger.complete(pending.checkpoint_id)
    assert written.completed().is_whole


def test_where_most_has_changed_everything_is_written(written: Written) -> None:
    """It is found out while changes are noted, which are noted no longer then."""
    for start in range(0, SLOTS, 1000):
        written.changed(*range(start, start + 1000))
    written.ledger.changed(np.arange(5), SLOTS, SLOTS)
    assert written.completed().is_whole
    written.changed(7)
    assert rows(written.completed()) == [7]


def test_where_most_had_changed_everything_is_written_though_many_more_slots_have_come(written: Written) -> None:
    ledger = written.ledger
    ledger.changed(slice(0, SLOTS), SLOTS, SLOTS)
    ledger.changed(slice(SLOTS, 4 * SLOTS), 3 * SLOTS, 4 * SLOTS)
    assert ledger.plan(CheckpointId(9), 4 * SLOTS).is_whole


def test_a_whole_one_that_was_not_stored_in_runs_is_no_ground_for_others() -> None:
    ledger = RunLedger("op")
    small = ledger.plan(CheckpointId(1), 10)
    ledger.complete(small.checkpoint_id)
    ledger.changed(3, 1, 10)
    assert ledger.plan(CheckpointId(2), 10).is_whole


@pytest.mark.parametrize("seed", range(4))
def test_all_changes_are_in_a_run_at_whatever_pace_slots_come(seed: int) -> None:
    """Where most have changed, changes are not noted: then marks do not grow with the slots."""
    random, ledger, count = Random(seed), RunLedger("op"), 1000
    for number in range(1, 30):
        changed = set()
        for _ in range(random.randrange(4)):
            steps = [1, count // 50, count // 3, 2 * count] if count < 10**5 else [1, 30]
            new = range(count, count + random.choice(steps))
            count = new.stop
            ledger.changed(np.array(new), count, count)
            changed.update(new)
        plan = ledger.plan(CheckpointId(number), count)
        if plan.new is None:
            assert not changed
        elif not plan.is_whole:
            assert changed <= set(rows(plan))
        if plan.new is not None:
            plan.new.stored = STORED
        ledger.complete(plan.checkpoint_id)


def test_a_snapshot_of_several_ledgers_that_cannot_be_written_leaves_no_file(tmp_path: Path) -> None:
    storage = CheckpointStorage(str(tmp_path))
    target = SnapshotTarget(
        storage, JobId("job"), CheckpointId(1), VertexId("join"), SubtaskIndex(0), ExecutionAttemptId("attempt-1"), 0
    )

    def write(_: SnapshotTarget) -> KeyedStateHandle:
        return KeyedStateHandle(0, 15, {0: (0, 3)}, inline_handle(b"abc"), "heap")

    def fails(_: SnapshotTarget) -> KeyedStateHandle:
        raise OSError("the disk is full")

    def planned(owner: str, write_new: Callable[[SnapshotTarget], KeyedStateHandle]) -> PlannedRuns:
        return PlannedRuns(RunLedger(owner).plan(CheckpointId(1), SLOTS), owner, write_new)

    assert write_runs([planned("left", write), planned("right", write)], range(16), target) is not None
    assert len(storage.list_files("")) == 2
    for path in storage.list_files(""):
        storage.delete(path)
    with pytest.raises(OSError, match="the disk is full"):
        write_runs([planned("left", write), planned("right", fails)], range(16), target)
    assert storage.list_files("") == []
