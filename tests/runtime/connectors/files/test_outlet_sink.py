"""OutletSink and the JobManager's side of it: what readers get, whatever the sink is restored to and whoever writes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from understudy import Actor, ActorSystem
from understudy.actors.job_manager.outlets import Outlets
from understudy.actors.job_manager.storage_answers import ForJob
from understudy.messages import JobId, OutletAnswer, OutletCommitted, OutletOpened, ReadOutlet
from understudy.runtime.connectors import OutletSink
from understudy.runtime.connectors.files import outlet_sink, segment_writer
from understudy.state import CheckpointStorage, UnreachableRoot
from understudy.state.outlets.segments import records_of

from ..harness import ManualClock, Running, Snapshot, make_context

WAIT_S = 60


class Reporting(OutletSink):
    """Keeps its reports, and hands them on."""

    reports: list[Any]

    def open(self) -> None:
        self.reports = []
        self.context.report = self.reports.append
        super().open()


class JobManagersSide(Actor):
    """Hosts the Outlets of one job, as the JobManager does."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.current = ""
        self.is_over = False

    def on_start(self) -> None:
        self.outlets = Outlets(
            JobId("job-a"),
            CheckpointStorage(self.root),
            self.context,
            lambda said: said.attempt_id == self.current,
            lambda: self.is_over,
            lambda _: "operator",
        )

    def on_receive(self, message: Any) -> Any:
        match message:
            case ReadOutlet():
                return self.outlets.read(message)
            case ForJob(event=event):
                self.outlets.on(event)
            case OutletOpened() | OutletCommitted():
                self.outlets.on(message)
            case "over":
                self.is_over = True
                self.outlets.job_ended()
        return None


class Stage:
    """A sink and the JobManager's side, in one process."""

    def __init__(self, system: ActorSystem, root: Path, **retention: Any) -> None:
        self.root, self.retention, self.clock = str(root), retention, ManualClock()
        self.side = JobManagersSide(self.root)
        self.ref = system.spawn(self.side)
        self.heard = 0

    def start(self, snapshot: Snapshot | None = None, attempt: int = 0, root: Path | None = None, **where: Any) -> Any:
        sink = Reporting(**{"retention_ms": None, **self.retention})
        sink.root = str(root or self.root)
        running = Running(sink, snapshot, attempt=attempt, clock=self.clock, **where)
        self.side.current = running.operator.context.attempt_id
        self.hear(running)
        return running

    def hear(self, running: Any) -> None:
        """What the sink has reported since."""
        reports, running.operator.reports[:] = list(running.operator.reports), []
        for report in reports:
            self.ref.tell(report)

    def commit(self, running: Any, checkpoint_id: int, *records: Any) -> Snapshot:
        running.take(*records)
        snapshot: Snapshot = running.checkpoint(checkpoint_id)
        running.complete(checkpoint_id)
        self.hear(running)
        return snapshot

    def ask(self, after: str = "", wait_ms: int = 0, max_bytes: int = 1 << 20, latest: bool = False) -> OutletAnswer:
        question = ReadOutlet(JobId("job-a"), "out", after, latest, max_bytes, wait_ms)
        answer: OutletAnswer = self.ref.ask(question).result(timeout=WAIT_S)
        return answer

    def records(self, after: str = "", max_bytes: int = 1 << 20) -> tuple[list[Any], str]:
        """What comes at once behind a cursor, and the cursor behind that."""
        answer = self.ask(after, wait_ms=200, max_bytes=max_bytes)
        assert answer.refusal is None, answer.refusal
        return [record for part in answer.parts for record in records_of(part.data)], answer.cursor

    def files(self) -> list[str]:
        return sorted(path.name for path in Path(self.root).rglob("*") if path.is_file())


@pytest.fixture
def system() -> Iterator[ActorSystem]:
    system = ActorSystem("outlets").start()
    yield system
    system.shutdown()


def test_records_can_be_read_once_their_checkpoint_is_complete(system: ActorSystem, tmp_path: Path) -> None:
    stage = Stage(system, tmp_path)
    running = stage.start()
    running.take("a")
    running.checkpoint(1)
    assert stage.records()[0] == []
    stage.commit(running, 2, "b")
    assert stage.records()[0] == ["a", "b"]
    assert [part.rows for part in stage.ask().parts] == [1, 1]


def test_answers_are_bounded_and_cursors_lead_from_one_to_the_next(system: ActorSystem, tmp_path: Path) -> None:
    stage = Stage(system, tmp_path)
    running = stage.start()
    for number in range(5):
        stage.commit(running, number + 1, number)
    found, cursor = [], ""
    for _ in range(5):
        records, cursor = stage.records(cursor, max_bytes=1)
        found.append(records)
    assert found == [[0], [1], [2], [3], [4]]
    assert stage.records(cursor)[0] == []


def test_who_waits_is_answered_by_the_next_commit_or_the_end(system: ActorSystem, tmp_path: Path) -> None:
    stage = Stage(system, tmp_path)
    running = stage.start()
    latest = stage.ask(latest=True).cursor
    waiting = stage.ref.ask(ReadOutlet(JobId("job-a"), "out", latest, False, 1, 1000 * WAIT_S))
    stage.commit(running, 1, "a")
    answer = waiting.result(timeout=WAIT_S)
    assert records_of(answer.parts[0].data) == ["a"]
    waiting = stage.ref.ask(ReadOutlet(JobId("job-a"), "out", answer.cursor, False, 1, 1000 * WAIT_S))
    stage.ref.tell("over")
    assert waiting.result(timeout=WAIT_S) == OutletAnswer((), answer.cursor, is_over=True)
    assert stage.records()[0] == ["a"], "also after the end"


def test_a_restored_attempt_goes_on_and_cursors_stay_good(system: ActorSystem, tmp_path: Path) -> None:
    stage = Stage(system, tmp_path)
    crashed = stage.start()
    stage.commit(crashed, 1, "a")
    _, cursor = stage.records()
    crashed.take("b")
    snapshot = crashed.checkpoint(2)
    crashed.take("lost")
    crashed.checkpoint(3)
    restored = stage.start(snapshot, attempt=1)
    assert stage.records(cursor)[0] == ["b"], "prepared for the checkpoint that it was restored from"
    stage.commit(restored, 4, "c")
    assert stage.records(cursor)[0] == ["b", "c"]
    assert stage.records()[0] == ["a", "b", "c"]
    assert len(stage.files()) == 3, "what was prepared for no checkpoint is removed"


def test_a_restore_from_an_older_checkpoint_forks(system: ActorSystem, tmp_path: Path) -> None:
    stage = Stage(system, tmp_path)
    first = stage.start()
    old = stage.commit(first, 1, "a")
    _, early = stage.records()
    stage.commit(first, 2, "never was")
    _, late = stage.records()
    second = stage.start(old, attempt=1)
    stage.commit(second, 3, "b")
    assert stage.records(early)[0] == ["b"]
    refusal = stage.ask(late).refusal
    assert refusal is not None
    assert (refusal.kind, refusal.go_on_from) == ("forked", early)
    assert stage.records()[0] == ["a", "b"]


def test_readers_go_on_under_another_job_manager(system: ActorSystem, tmp_path: Path) -> None:
    """It knows nothing of the outlet before the sink says it again."""
    before = Stage(system, tmp_path)
    running = before.start()
    before.commit(running, 1, "a", "b")
    _, cursor = before.records()
    after = Stage(system, tmp_path)
    after.side.current = running.operator.context.attempt_id
    running.operator._say_again()
    after.hear(running)
    assert after.records()[0] == ["a", "b"]
    after.commit(running, 2, "c")
    assert after.records(cursor)[0] == ["c"]


def test_what_an_earlier_attempt_says_is_not_believed(system: ActorSystem, tmp_path: Path) -> None:
    stage = Stage(system, tmp_path)
    zombie = stage.start()
    zombie.take("a")
    snapshot = zombie.checkpoint(1)
    zombie.take("of a zombie")
    zombie.checkpoint(2)
    current = stage.start(snapshot, attempt=1)
    zombie.complete(2)
    zombie.take("more of it")
    zombie.checkpoint(3)
    zombie.complete(3)
    stage.hear(zombie)
    stage.commit(current, 4, "b")
    assert stage.records()[0] == ["a", "b"]
    stage.start(current.checkpoint(5), attempt=2)
    assert stage.records()[0] == ["a", "b"], "though the files of the zombie lie there"


def test_two_jobs_go_on_from_one_savepoint_in_one_folder(system: ActorSystem, tmp_path: Path) -> None:
    stage = Stage(system, tmp_path)
    first = stage.start()
    savepoint = stage.commit(first, 1, "a")
    second = stage.start(savepoint, job="job-b")
    stage.commit(second, 2, "b")
    first.take("of the first")
    first.checkpoint(2)
    first.complete(2)
    assert stage.records()[0] == ["a", "b"]
    stage.start(second.checkpoint(3), attempt=1, job="job-b")
    assert stage.records()[0] == ["a", "b"]
    assert len(stage.files()) == 3, "the other job's files are its own"


def test_a_job_with_another_directory_brings_along_what_was_prepared(system: ActorSystem, tmp_path: Path) -> None:
    stage = Stage(system, tmp_path / "new")
    old = stage.start(root=tmp_path / "old")
    stage.commit(old, 1, "a")
    old.take("b")
    savepoint = old.checkpoint(2)
    stage.start(savepoint, job="job-b")
    assert stage.records()[0] == ["b"]


def test_a_directory_that_was_moved_as_a_whole_has_what_was_prepared(system: ActorSystem, tmp_path: Path) -> None:
    before, stage = Stage(system, tmp_path / "old"), Stage(system, tmp_path / "new")
    old = before.start()
    before.commit(old, 1, "a")
    _, cursor = before.records()
    old.take("b")
    savepoint = old.checkpoint(2)
    (tmp_path / "old").rename(tmp_path / "new")
    restored = stage.start(savepoint, job="job-b")
    stage.commit(restored, 3, "c")
    assert stage.records()[0] == ["a", "b", "c"]
    assert stage.records(cursor)[0] == ["b", "c"]
    assert not (tmp_path / "old").exists()


def test_an_empty_folder_in_place_of_the_volume_is_not_taken_for_an_outlet_without_records(
    system: ActorSystem, tmp_path: Path
) -> None:
    """Its readers would be sent behind all records, which are there when the volume is back."""
    root = tmp_path / "checkpoints"
    CheckpointStorage(str(root)).check()
    stage = Stage(system, root)
    running = stage.start()
    snapshot = stage.commit(running, 1, "a")
    snapshot = stage.commit(running, 2, "b")
    root.rename(tmp_path / "volume")
    root.mkdir()
    with pytest.raises(UnreachableRoot):
        stage.start(snapshot, attempt=1)
    root.rmdir()
    (tmp_path / "volume").rename(root)
    stage.start(snapshot, attempt=1)
    assert stage.records()[0] == ["a", "b"]


def test_retention_by_size_and_by_time(system: ActorSystem, tmp_path: Path) -> None:
    stage = Stage(system, tmp_path / "size", retention_bytes=60)
    running = stage.start()
    for number in range(10):
        stage.commit(running, number + 1, f"{number}" * 16)
    kept = [record[0] for record in stage.records()[0]]
    assert kept == ["8", "9"]
    assert len(stage.files()) == 2
    stage = Stage(system, tmp_path / "time", retention_ms=1_000)
    running = stage.start()
    stage.commit(running, 1, "a")
    _, first = stage.records()
    stage.clock.ms += 900
    stage.commit(running, 2, "b")
    stage.clock.ms += 900
    stage.commit(running, 3, "c")
    assert stage.records()[0] == ["b", "c"]
    stage.clock.ms += 100_000
    snapshot = stage.commit(running, 4, "d")
    refusal = stage.ask(first).refusal
    assert refusal is not None
    assert (refusal.kind, stage.records(refusal.go_on_from)[0]) == ("expired", ["d"])
    stage.start(snapshot, attempt=1)
    assert stage.records()[0] == ["d"]
    assert getattr(stage.ask(first).refusal, "kind", "") == "expired"


def test_what_was_kept_before_a_restart_counts_for_retention_by_size(system: ActorSystem, tmp_path: Path) -> None:
    stage = Stage(system, tmp_path, retention_bytes=60)
    running = stage.start()
    stage.commit(running, 1, "0" * 16)
    snapshot = stage.commit(running, 2, "1" * 16)
    running = stage.start(snapshot, attempt=1)
    stage.commit(running, 3, "2" * 16)
    assert [record[0] for record in stage.records()[0]] == ["1", "2"]


def test_the_latest_commit_is_kept_whole_however_many_files_it_has(
    system: ActorSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment_writer, "SEGMENT_BYTES", 1)
    monkeypatch.setattr(segment_writer, "ROWS_AT_ONCE", 1)
    stage = Stage(system, tmp_path, retention_bytes=1)
    running = stage.start()
    stage.commit(running, 1, "a", "b")
    stage.commit(running, 2, "c", "d", "e")
    assert stage.records()[0] == ["c", "d", "e"]
    assert len(stage.files()) == 3


def test_the_files_that_are_not_kept_go_in_small_numbers(
    system: ActorSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outlet_sink, "DELETED_AT_ONCE", 2)
    stage = Stage(system, tmp_path, retention_ms=1_000)
    running = stage.start()
    for number in range(6):
        stage.commit(running, number + 1, number)
    stage.clock.ms += 10_000
    stage.commit(running, 7, 6)
    assert len(stage.files()) == 5
    stage.commit(running, 8, 7)
    assert stage.records()[0] == [4, 5, 6, 7]


def test_a_file_that_somebody_deletes_is_a_gap_that_is_said(system: ActorSystem, tmp_path: Path) -> None:
    stage = Stage(system, tmp_path)
    running = stage.start()
    for number in range(3):
        snapshot = stage.commit(running, number + 1, number)
    _, first = stage.records(max_bytes=1)
    next(path for path in tmp_path.rglob("*.segment") if path.name.startswith("0" * 15 + "1")).unlink()
    refusal = stage.ask(first).refusal
    assert refusal is not None
    assert refusal.kind == "expired"
    assert stage.records(refusal.go_on_from)[0] == [2]
    stage.start(snapshot, attempt=1)
    assert stage.records()[0] == [2]
    assert getattr(stage.ask(first).refusal, "kind", "") == "expired"


def test_large_batches_are_cut_and_nothing_is_lost(
    system: ActorSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment_writer, "SEGMENT_BYTES", 200)
    monkeypatch.setattr(segment_writer, "LARGEST_PIECE_BYTES", 100)
    stage = Stage(system, tmp_path)
    running = stage.start()
    stage.commit(running, 1, *range(1000))
    answer = stage.ask()
    assert len(answer.parts) > 4
    assert max(len(part.data) for part in answer.parts) < 400
    assert [record for part in answer.parts for record in records_of(part.data)] == list(range(1000))


def test_what_is_open_is_removed_when_the_attempt_ends(
    system: ActorSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment_writer, "SEGMENT_BYTES", 1)
    stage = Stage(system, tmp_path)
    running = stage.start()
    stage.commit(running, 1, "a")
    running.take("open")
    assert len(stage.files()) == 2
    running.operator.close()
    assert len(stage.files()) == 1


@pytest.mark.parametrize("retention", [{"retention_ms": 0}, {"retention_bytes": -1}, {"retention_ms": "1"}])
def test_a_retention_that_is_none_is_refused(retention: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="wanted a number above 0, or None"):
        OutletSink(**retention)


def test_a_sink_without_a_directory_says_so() -> None:
    sink = OutletSink()
    sink.context = make_context()
    with pytest.raises(ValueError, match="given no checkpoint directory"):
        sink.open()
