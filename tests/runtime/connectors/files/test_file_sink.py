"""FileSink, CollectSink and PrintSink: what is visible when, after any restart, rescale or zombie."""

from __future__ import annotations

import errno
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from understudy.actors.operators.collector import Collector
from understudy.messages import CheckpointId
from understudy.runtime.connectors import (
    CollectSink,
    FileSink,
    LostTransaction,
    PrintSink,
    UnreadableInput,
    UnusableOutput,
    read_collected,
)
from understudy.state import DurableFiles

from ....examples import examples
from ....systems.s3 import S3Server
from ..harness import Running, Snapshot, rescaled

pytestmark = pytest.mark.every_run


def start(folder: Path | str, snapshot: Snapshot | None = None, **where: Any) -> Running[CollectSink]:
    return Running(CollectSink(str(folder)), snapshot, **where)


def hidden(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob(".understudy-*/*"))


class Place:
    """An output folder on a disk."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.url = str(folder)

    def hidden(self) -> list[str]:
        """What is in progress there."""
        return hidden(Path(self.url))

    def fresh(self) -> str:
        """An empty folder, which is the place from now on."""
        self.url = f"{self._folder}/{uuid4().hex}"
        return self.url


class Bucket(Place):
    """One in S3."""

    def __init__(self, server: S3Server) -> None:
        self._server, self._bucket = server, server.bucket()
        self.url = f"s3://{self._bucket}/some/folder"

    def hidden(self) -> list[str]:
        folder = self.url.removeprefix(f"s3://{self._bucket}/")
        seen = [key for key in self._server.keys(self._bucket) if "/part-" not in key]
        return seen + [key for key in self._server.uploads(self._bucket) if key.startswith(folder)]

    def fresh(self) -> str:
        self.url = f"s3://{self._bucket}/{uuid4().hex}"
        return self.url


@pytest.fixture(params=["disk", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return Place(tmp_path) if request.param == "disk" else Bucket(request.getfixturevalue("s3"))


def test_records_are_visible_once_their_checkpoint_is_complete(place: Place) -> None:
    running = start(place.url)
    running.take("a")
    running.checkpoint(1)
    running.take("b")
    assert read_collected(place.url) == []
    running.complete(1)
    assert read_collected(place.url) == ["a"]


def test_one_may_read_only_what_a_checkpoint_covers(place: Place) -> None:
    running = start(place.url)
    for number, record in enumerate("abc", start=1):
        running.take(record)
        running.checkpoint(number)
        running.complete(number)
    covered = [read_collected(place.url, until=CheckpointId(number)) for number in range(4)]
    assert covered == [[], ["a"], ["a", "b"], ["a", "b", "c"]]


def test_a_commit_that_is_repeated_changes_nothing(place: Place) -> None:
    running = start(place.url)
    running.take("a")
    snapshot = running.checkpoint(1)
    running.complete(1)
    for attempt in (1, 2):
        start(place.url, snapshot, attempt=attempt)
        assert read_collected(place.url) == ["a"]


def test_what_was_prepared_is_committed_and_what_was_open_is_removed_by_the_next_attempt(place: Place) -> None:
    crashed = start(place.url)
    crashed.take("a")
    snapshot = crashed.checkpoint(1)
    crashed.take("lost")
    crashed.checkpoint(2)
    crashed.take("lost too")
    start(place.url, snapshot, attempt=1)
    assert read_collected(place.url) == ["a"]
    assert place.hidden() == []


def test_files_of_an_attempt_before_the_first_checkpoint_are_removed(place: Place) -> None:
    crashed = start(place.url)
    crashed.take("lost" * (3 << 20))  # enough to begin an upload
    assert len(place.hidden()) == 1
    start(place.url, attempt=1)
    assert place.hidden() == []


def test_a_job_restored_under_another_id_cleans_up_after_the_first(place: Place) -> None:
    first = start(place.url, job="job-a", attempt=5)
    first.take("a")
    snapshot = first.checkpoint(1)
    first.take("lost")
    first.checkpoint(2)
    second = start(place.url, snapshot, job="job-b")
    assert read_collected(place.url) == ["a"]
    assert place.hidden() == []
    second.take("b")
    third = start(place.url, second.checkpoint(3), job="job-c")
    third.take("c")
    third.checkpoint(4)
    third.complete(4)
    assert sorted(read_collected(place.url)) == ["a", "b", "c"]
    assert place.hidden() == []


def test_a_zombie_neither_removes_nor_repeats_what_its_successor_writes(place: Place) -> None:
    zombie = start(place.url)
    zombie.take("a")
    snapshot = zombie.checkpoint(1)
    successor = start(place.url, snapshot, attempt=2)
    successor.take("b")
    start(place.url, snapshot, attempt=1)  # one that was slow to start
    zombie.complete(1)
    zombie.take("b")
    zombie.checkpoint(2)
    zombie.operator.close()
    successor.checkpoint(2)
    successor.complete(2)
    assert read_collected(place.url) == ["a", "b"]


def test_what_a_zombie_writes_after_its_successor_has_opened_goes_when_the_successor_ends(place: Place) -> None:
    zombie = start(place.url)
    snapshot = zombie.checkpoint(1)  # records the transaction that is open now, of which nothing is written yet
    successor = start(place.url, snapshot, attempt=1)
    for checkpoint_id in (2, 3):
        zombie.take("lost")
        zombie.checkpoint(checkpoint_id)
    zombie.take("lost too")
    zombie.operator.close()
    assert len(place.hidden()) == 2, "what is pre-committed may be in a checkpoint, for all it knows"
    successor.take("a")
    successor.checkpoint(2)
    successor.complete(2)
    successor.operator.close()
    assert read_collected(place.url) == ["a"]
    assert place.hidden() == []


def test_an_attempt_that_ends_removes_nothing_that_a_restored_one_needs(place: Place) -> None:
    """It is cancelled while checkpoint 2, which its neighbour and it have pre-committed, is being completed."""
    first = [start(place.url, subtask=subtask, parallelism=2) for subtask in (0, 1)]
    for subtask, running in enumerate(first):
        running.take(f"a{subtask}")
    snapshots = rescaled([running.checkpoint(2) for running in first], 3)
    for running in first:
        running.operator.close()
    early = start(place.url, snapshots[0], attempt=1, subtask=0, parallelism=3)
    early.operator.close()
    for subtask in (0, 1, 2):
        start(place.url, snapshots[subtask], attempt=2, subtask=subtask, parallelism=3)
    assert sorted(read_collected(place.url)) == ["a0", "a1"]


def test_an_attempt_that_hears_again_of_the_checkpoint_it_was_restored_from_removes_nothing_that_another_needs(
    place: Place,
) -> None:
    """Its neighbour, which has yet to start, has what a subtask had prepared that is no more."""
    first = [start(place.url, subtask=subtask, parallelism=3) for subtask in range(3)]
    for subtask, running in enumerate(first):
        running.take(f"a{subtask}")
    snapshots = rescaled([running.checkpoint(2) for running in first], 2)
    for running in first:
        running.operator.close()
    early = start(place.url, snapshots[0], attempt=1, subtask=0, parallelism=2)
    early.complete(2)
    early.operator.close()
    for subtask in range(2):
        start(place.url, snapshots[subtask], attempt=2, subtask=subtask, parallelism=2)
    assert sorted(read_collected(place.url)) == ["a0", "a1", "a2"]


def test_an_attempt_that_goes_back_takes_back_what_later_checkpoints_had_committed(place: Place) -> None:
    """The job could not read its newest checkpoint, and repeats what came after the older one."""
    start(place.url, subtask=1, parallelism=2).take("never")
    other = start(place.url, job="job-b")
    first = start(place.url, parallelism=2)
    snapshots = []
    for checkpoint_id, record in enumerate("abc", 1):
        for running in (other, first):
            running.take(record)
            snapshots.append(running.checkpoint(checkpoint_id))
            running.complete(checkpoint_id)
    start(place.url, snapshots[3], attempt=1, parallelism=2)
    assert sorted(read_collected(place.url)) == ["a", "a", "b", "b", "c"], "the other job's are its own affair"


def test_what_a_restored_attempt_has_committed_is_taken_back_when_the_job_goes_back_once_more(place: Place) -> None:
    """In S3 the name of an upload is chosen before its checkpoint is known."""
    first = start(place.url)
    first.take("a")
    snapshot = first.checkpoint(5)
    first.complete(5)
    second = start(place.url, snapshot, attempt=1)
    second.take("b")
    second.checkpoint(6)
    second.complete(6)
    assert read_collected(place.url) == ["a", "b"]
    start(place.url, snapshot, attempt=2)
    assert read_collected(place.url) == ["a"]


def test_a_zombie_that_is_slow_to_start_takes_nothing_back_of_its_successor(place: Place) -> None:
    first = start(place.url)
    first.take("a")
    snapshot = first.checkpoint(1)
    successor = start(place.url, snapshot, attempt=2)
    successor.take("b")
    successor.checkpoint(2)
    successor.complete(2)
    start(place.url, snapshot, attempt=1)
    assert read_collected(place.url) == ["a", "b"]


def test_a_job_restored_under_another_id_takes_nothing_back_of_the_first(place: Place) -> None:
    first = start(place.url, job="job-a", attempt=5)
    first.take("a")
    first.checkpoint(7)
    first.complete(7)
    first.take("b")
    savepoint = first.checkpoint(8)
    first.complete(8)
    second = start(place.url, savepoint, job="job-b")
    second.take("c")
    snapshot = second.checkpoint(1)
    second.complete(1)
    start(place.url, snapshot, job="job-b", attempt=1)
    assert sorted(read_collected(place.url)) == ["a", "b", "c"]


@pytest.mark.parametrize(("before", "after"), [(3, 1), (2, 4), (4, 2)])
def test_a_rescale_commits_all_and_leaves_nothing_behind(place: Place, before: int, after: int) -> None:
    old = [start(place.url, subtask=index, parallelism=before) for index in range(before)]
    for index, running in enumerate(old):
        running.take(index)
    snapshots = [running.checkpoint(1) for running in old]
    for running in old:
        running.take("lost")
        running.checkpoint(2)
        running.take("of a transaction that no snapshot knows")
    # The last one first: no subtask may remove what another one has yet to commit.
    shares = list(enumerate(rescaled(snapshots, after)))
    for index, share in reversed(shares):
        start(place.url, share, subtask=index, parallelism=after, attempt=1)
    assert sorted(read_collected(place.url)) == list(range(before))
    assert place.hidden() == []


def test_a_checkpoint_without_records_leaves_no_file(tmp_path: Path) -> None:
    running = start(tmp_path)
    snapshot = running.checkpoint(1)
    running.complete(1)
    start(tmp_path, snapshot, attempt=1)
    assert list(tmp_path.rglob("*")) == []


def test_lost_data_is_named(tmp_path: Path) -> None:
    running = start(tmp_path)
    running.take("a")
    snapshot = running.checkpoint(1)
    running.complete(1)
    next(tmp_path.glob("part-*")).unlink()
    with pytest.raises(LostTransaction, match=r"neither .*\.understudy-.* nor .*part-operator-00000-0000000001"):
        start(tmp_path, snapshot, attempt=1)


def test_the_hidden_folder_goes_when_the_job_ends(tmp_path: Path) -> None:
    subtasks = [start(tmp_path, subtask=index, parallelism=2) for index in range(2)]
    for running in subtasks:
        running.take("a")
        running.checkpoint(1)
    for running in subtasks:
        running.complete(1)
        running.operator.close()
    assert sorted(path.name[:4] for path in tmp_path.iterdir()) == ["part", "part"]


def test_one_subtask_that_ends_leaves_the_others_their_folder(tmp_path: Path) -> None:
    ends, goes_on = (start(tmp_path, subtask=index, parallelism=2) for index in range(2))
    goes_on.take("a")
    ends.operator.close()
    goes_on.checkpoint(1)
    goes_on.complete(1)
    goes_on.take("b")
    goes_on.checkpoint(2)
    goes_on.complete(2)
    assert read_collected(str(tmp_path)) == ["a", "b"]


Event = tuple[str, int]
events = st.lists(
    st.tuples(st.sampled_from(["take", "checkpoint", "complete", "crash"]), st.integers(1, 3)), max_size=25
)


@examples(60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(events=events)
def test_whatever_happens_each_record_is_visible_once(tmp_path: Path, events: list[Event]) -> None:
    _each_record_is_visible_once(Place(tmp_path).fresh(), events)


@examples(5, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(events=events)
def test_in_s3_too_each_record_is_visible_once(s3: S3Server, events: list[Event]) -> None:
    _each_record_is_visible_once(Bucket(s3).fresh(), events)


def _each_record_is_visible_once(folder: str, events: list[Event]) -> None:
    """The source is an offset beside the sink's snapshot; a crash restores the last completed checkpoint."""
    running, position, attempt, taken = start(folder), 0, 0, 0
    snapshots: list[tuple[int, int, Snapshot]] = []
    completed: tuple[int, Snapshot | None] = (0, None)
    for kind, number in [*events, ("checkpoint", 1), ("complete", 1)]:
        if kind == "take":
            running.take(*range(position, position + number))
            position += number
        elif kind == "checkpoint":
            taken += 1
            snapshots.append((taken, position, running.checkpoint(taken)))
        elif kind == "complete" and snapshots:
            checkpoint_id, at, snapshot = snapshots[-1]
            completed = (at, snapshot)
            running.complete(checkpoint_id)
        elif kind == "crash":
            attempt += 1
            position, snapshots = completed[0], []
            running = start(folder, completed[1], attempt=attempt)
        assert read_collected(str(folder)) == list(range(completed[0]))


def test_any_file_system_will_do() -> None:
    running = start("memory://collected")
    running.take("a")
    snapshot = running.checkpoint(1)
    running.take("lost")
    running.checkpoint(2)
    restored = start("memory://collected", snapshot, attempt=1)
    restored.take("b")
    restored.checkpoint(3)
    restored.complete(3)
    restored.operator.close()
    assert read_collected("memory://collected") == ["a", "b"]


# -- collect and print


def test_collected_rows_of_columns_are_rows(tmp_path: Path) -> None:
    running = start(tmp_path)
    running.operator.process_batch(pa.record_batch({"n": [1]}), Collector())
    running.checkpoint(1)
    running.complete(1)
    (row,) = read_collected(str(tmp_path))
    assert row.n == 1


def test_a_collect_sink_needs_a_directory_at_last(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no directory"):
        Running(CollectSink())
    sink = CollectSink()
    sink.path = str(tmp_path)
    Running(sink)
    assert read_collected(str(tmp_path / "absent")) == []


@pytest.mark.parametrize("is_moved", [True, False], ids=["moved", "copied"])
def test_a_checkpoint_dir_that_was_moved_takes_what_was_collected_below_it_along(
    is_moved: bool, tmp_path: Path
) -> None:
    """A savepoint in it could not be restored, as `collect` looked for its pre-committed files in the old place."""
    old, new = tmp_path / "old", tmp_path / "new"
    running = start(old / "collected" / "job-a" / "out", job="job-a")
    running.take("a")
    snapshot = running.checkpoint(1)
    (shutil.move if is_moved else shutil.copytree)(old, new)
    start(new / "collected" / "job-b" / "out", snapshot, job="job-b")
    assert read_collected(str(new / "collected" / "job-a" / "out")) == ["a"]
    assert read_collected(str(old / "collected" / "job-a" / "out")) == []


def test_an_old_copy_of_a_checkpoint_dir_does_not_hide_what_was_collected_since(tmp_path: Path) -> None:
    """The sink looked into the copy, as the folder was there, and failed with `LostTransaction`."""
    old, new = tmp_path / "old", tmp_path / "new"
    running = start(old / "collected" / "job-a" / "out", job="job-a")
    running.take("a")
    running.checkpoint(1)
    shutil.copytree(old, new)
    running.complete(1)
    running.take("b")
    start(new / "collected" / "job-b" / "out", running.checkpoint(2), job="job-b")
    assert read_collected(str(old / "collected" / "job-a" / "out")) == ["a", "b"]
    assert read_collected(str(new / "collected" / "job-a" / "out")) == []


def test_a_folder_of_the_users_own_is_not_taken_for_a_moved_checkpoint_dir(tmp_path: Path) -> None:
    old, new = tmp_path / "old" / "results" / "0" / "x", tmp_path / "new" / "results" / "1" / "x"
    running = start(old, job="job-a")
    running.take("a")
    snapshot = running.checkpoint(1)
    shutil.copytree(tmp_path / "old", tmp_path / "new")
    start(new, snapshot, job="job-b")
    assert read_collected(str(old)) == ["a"]


def test_a_file_that_is_cut_off_is_named(tmp_path: Path) -> None:
    running = start(tmp_path)
    running.take("a")
    running.checkpoint(1)
    running.complete(1)
    (file,) = tmp_path.glob("part-*")
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(UnreadableInput, match=f"{file.name} is cut off"):
        read_collected(str(tmp_path))


@pytest.mark.parametrize("format", ["jsonl", "csv"])
def test_a_file_that_is_cut_short_while_it_is_written_is_not_published_with_a_hole(format: str, tmp_path: Path) -> None:
    """What came after it lay where it should, so that the file had its size, and zeros where its rows had been."""
    running = Running(FileSink(str(tmp_path), format=format))
    running.take(*({"n": number} for number in range(50_000)))
    (file,) = tmp_path.glob(f".understudy-*/*.{format}")
    os.truncate(file, 0)
    with pytest.raises(UnusableOutput, match=r"has 0 bytes, and .* were written: somebody has changed it"):
        running.take(*({"n": number} for number in range(50_000)))
    with suppress(UnusableOutput):  # Arrow's writer tries it once more
        running.operator.close()
    assert list(tmp_path.glob("part-*")) == []
    assert not file.exists()


def test_what_an_earlier_attempt_left_and_this_user_may_not_remove_is_named_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = Running(FileSink(str(tmp_path), format="jsonl"))
    running.take({"n": 1})
    snapshot = running.checkpoint(1)

    def forbidden(self: DurableFiles, path: str) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", path)

    monkeypatch.setattr(DurableFiles, "remove", forbidden)
    with pytest.raises(UnusableOutput, match=f"cannot write to {tmp_path}: this user may not write there"):
        Running(FileSink(str(tmp_path), format="jsonl"), snapshot, attempt=1)


def test_printed_lines_say_the_subtask_when_there_are_several(capsys: pytest.CaptureFixture[str]) -> None:
    Running(PrintSink("worst: ")).take(1, "x")
    Running(PrintSink("late")).take(3)
    Running(PrintSink(), subtask=1, parallelism=2).take(2)
    assert capsys.readouterr().out == "worst: 1\nworst: x\nlate: 3\n2> 2\n"


def test_a_job_restored_into_another_directory_commits_where_the_first_wrote_and_leaves_the_rest_to_it(
    tmp_path: Path,
) -> None:
    """The first may run on: it commits, too, and what it has open since is its own affair."""
    old, new = tmp_path / "old", tmp_path / "new"
    first = [start(old, job="job-a", subtask=subtask, parallelism=2) for subtask in (0, 1)]
    for subtask, running in enumerate(first):
        running.take(f"a{subtask}")
    snapshots = rescaled([running.checkpoint(1) for running in first], 3)
    for subtask, running in enumerate(first):
        running.take(f"later {subtask}")
    restored = [start(new, each, job="job-b", subtask=i, parallelism=3) for i, each in enumerate(snapshots)]
    assert sorted(read_collected(str(old))) == ["a0", "a1"]
    restored[2].take("b")
    for running in restored:
        running.checkpoint(2)
        running.complete(2)
    for running in first:
        running.complete(1)
        running.checkpoint(2)
        running.complete(2)
    assert sorted(read_collected(str(old))) == ["a0", "a1", "later 0", "later 1"]
    assert read_collected(str(new)) == ["b"]
    for running in (*restored, *first):
        running.operator.close()
    assert list(tmp_path.glob("*/.*")) == []
