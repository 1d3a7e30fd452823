"""The bytes of a columnar snapshot are kept for the next one: each snapshot is stored as it was taken, whatever comes
after it, and whichever are written late, kept inline, or not stored at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.messages import (
    CheckpointId,
    ExecutionAttemptId,
    JobId,
    OperatorId,
    SubtaskIndex,
    SubtaskState,
    VertexId,
)
from understudy.state import SnapshotTarget
from understudy.state.backends.backend import KeyedSnapshot
from understudy.state.checkpoints.snapshot_file import SubtaskSnapshot, state_handles, store_in_file, store_inline
from understudy.state.columnar.columnar_backend import ColumnarBackend
from understudy.state.columnar.kept_sections import KeptSections
from understudy.state.keys.key_groups import KeyGroupRange
from understudy.state.kinds.aggregates import Aggregate, Count, Max, Sum
from understudy.state.storage import CheckpointStorage, handle_reader

pytestmark = pytest.mark.every_run

MAXIMUM = 4
OPERATOR = OperatorId("aggregate")
AGGREGATES: dict[str, Aggregate] = {"rows": Count(), "total": Sum("n"), "known": Count("n"), "top": Max("n")}
Totals = dict[int, tuple[int, int | None, int, int | None]]

ROWS = st.lists(
    st.tuples(st.integers(0, 5), st.none() | st.sampled_from([1, 100, 40_000, 2**33, -(2**31) - 1])), min_size=1
)
DISTANCE = st.integers(0, 2)
"""How many later snapshots are taken before one is written."""
STEPS = st.lists(st.tuples(ROWS, DISTANCE, st.sampled_from(["file", "inline", "fails"])), min_size=1, max_size=6)


def backend() -> ColumnarBackend:
    return ColumnarBackend(("key",), AGGREGATES, KeyGroupRange(0, MAXIMUM - 1), MAXIMUM)


def feed(state: ColumnarBackend, rows: list[tuple[int, int | None]]) -> None:
    keys, values = zip(*rows, strict=True)
    batch = pa.RecordBatch.from_pydict({"key": pa.array(keys, pa.int64()), "n": pa.array(values, pa.int64())})
    state.table_for(batch.schema).update(batch)


def totals(state: ColumnarBackend) -> Totals:
    assert state.table is not None
    rows = state.table.results(state.table.all_slots()).to_pylist()
    return {row["key"]: (row["rows"], row["total"], row["known"], row["top"]) for row in rows}


def restored(state: SubtaskState, storage: CheckpointStorage) -> Totals:
    made = backend()
    made.restore(state.operators[OPERATOR].keyed, handle_reader(storage))
    return totals(made)


@contextmanager
def stage() -> Iterator[tuple[CheckpointStorage, Callable[[KeyedSnapshot, str], SubtaskState | None]]]:
    """Storage, and what writes a snapshot: into a file, inline, or so that storing it fails."""
    numbers = count(1)
    with TemporaryDirectory() as folder:
        storage = CheckpointStorage(folder)

        def write(keyed: KeyedSnapshot, how: str) -> SubtaskState | None:
            target = SnapshotTarget(
                storage,
                JobId("job"),
                CheckpointId(next(numbers)),
                VertexId("vertex"),
                SubtaskIndex(0),
                ExecutionAttemptId("attempt"),
            )
            snapshot = SubtaskSnapshot()
            snapshot.add(OPERATOR, keyed)
            if how == "file":
                return snapshot.write(replace(target, inline_below_bytes=1), store_in_file)
            if how == "inline":
                return snapshot.write(target, store_inline)
            with pytest.raises(OSError, match="full"):
                snapshot.write(target, _fail)
            return None

        yield storage, write


def _fail(state: SubtaskState, target: SnapshotTarget) -> SubtaskState:
    raise OSError("the disk is full")


@given(STEPS)
def test_each_snapshot_is_what_it_was_when_it_was_taken(
    steps: list[tuple[list[tuple[int, int | None]], int, str]],
) -> None:
    state = backend()
    waiting: list[tuple[int, KeyedSnapshot, str, Totals]] = []
    stored: list[tuple[SubtaskState, Totals]] = []
    with stage() as (storage, write):
        for number, (rows, distance, how) in enumerate(steps):
            feed(state, rows)
            waiting.append((number + distance, state.snapshot(CheckpointId(number + 1)), how, totals(state)))
            due = [each for each in waiting if each[0] <= number or number == len(steps) - 1]
            waiting = [each for each in waiting if each not in due]
            for _, keyed, way, wanted in reversed(due):
                if (found := write(keyed, way)) is not None:
                    stored.append((found, wanted))
        for found, wanted in stored:
            assert restored(found, storage) == wanted


def test_the_memory_of_a_snapshot_is_that_of_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[KeptSections] = []
    make = KeptSections.__init__

    def noted(self: KeptSections, *about: object) -> None:
        made.append(self)
        make(self, *about)  # type: ignore[arg-type]

    monkeypatch.setattr(KeptSections, "__init__", noted)
    state = backend()
    with stage() as (_, write):
        for number in range(4):
            feed(state, [(key, 7) for key in range(100)])
            write(state.snapshot(CheckpointId(number + 1)), "file")
        assert len(made) == 1
        feed(state, [(1000, 1)])
        write(state.snapshot(CheckpointId(5)), "file")
        assert len(made) == 2, "another key has come"
        feed(state, [(1000, 2**40)])
        write(state.snapshot(CheckpointId(6)), "file")
        assert len(made) == 3, "a column needs more bytes"


def test_what_stays_inline_has_bytes_of_its_own() -> None:
    state = backend()
    feed(state, [(1, 1)])
    with stage() as (_, write):
        found = write(state.snapshot(CheckpointId(1)), "inline")
    assert found is not None
    assert [type(handle.data) for handle in state_handles(found)] == [bytes]


def test_two_that_are_written_at_a_time_have_memory_of_their_own() -> None:
    state = backend()
    with stage() as (_, write):
        feed(state, [(1, 1), (2, 2)])
        write(state.snapshot(CheckpointId(1)), "file")
    target = SnapshotTarget(
        None, JobId("job"), CheckpointId(2), VertexId("vertex"), SubtaskIndex(0), ExecutionAttemptId("attempt")
    )
    taken = []
    for number in (2, 3):
        feed(state, [(1, 1)])
        taken.append((state.snapshot(CheckpointId(number)), totals(state)))
    handles = [(keyed(replace(target, when_stored=[])), wanted) for keyed, wanted in taken]
    for handle, wanted in handles:
        assert handle is not None
        made = backend()
        made.restore([handle], handle_reader(None))
        assert totals(made) == wanted


def test_a_first_run_that_becomes_no_file_has_bytes_of_its_own() -> None:
    state = backend()
    state.track_changes("owner")
    feed(state, [(1, 1)])
    target = SnapshotTarget(
        None, JobId("job"), CheckpointId(1), VertexId("vertex"), SubtaskIndex(0), ExecutionAttemptId("attempt"), 1
    )
    snapshot = SubtaskSnapshot()
    snapshot.add(OPERATOR, state.increment(CheckpointId(1)))
    found = snapshot.write(target, store_inline)
    assert {type(handle.data) for handle in state_handles(found)} == {bytes}
    made = backend()
    made.restore(found.operators[OPERATOR].keyed, handle_reader(None))
    assert totals(made) == totals(state)
