"""InletSource, alone with a storage: what it answers when, what its checkpoints hold, what successors make of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pykka
import pytest

from understudy.actors.ask_errors import NotRunning
from understudy.actors.flow.records import RecordMismatch, rows_of
from understudy.actors.operators.source import END, RecordedOffset, continue_source
from understudy.actors.operators.task_access import TaskAccess
from understudy.messages import CheckpointId, InletAnswer, JobId, SendToInlet, SubtaskIndex, pack_plain
from understudy.runtime.connectors import (
    InletLogDamaged,
    InletSchemaChanged,
    InletSource,
    SentRecords,
    columns_to_bytes,
    to_payload,
)
from understudy.runtime.connectors.inlet import sender_numbers
from understudy.runtime.connectors.inlet.sender_numbers import MADE_UP, REMEMBERED, SenderNumbers
from understudy.state import CheckpointStorage, LogWriter, UnreachableRoot

from ..harness import make_context

SCHEMA = pa.schema([("number", pa.int64())])


class Stage:
    """One attempt. What it has done aside is done when the test says so."""

    def __init__(
        self,
        folder: Path,
        *,
        attempt: int = 0,
        offset: Any = None,
        offsets: Any = None,
        where: tuple[int, int] = (0, 1),
        job: str = "job-a",
        from_savepoint: bool = False,
        settled: bool = True,
        max_parallelism: int = 128,
        **options: Any,
    ) -> None:
        self.aside: deque[Callable[[], object]] = deque()
        storage = CheckpointStorage(str(folder))
        root = storage.location() if job != "job-a" else ""
        access = TaskAccess(
            storage, CheckpointStorage, root, from_savepoint, (), self._run_aside, lambda: pykka.ThreadingFuture()
        )
        self.source = InletSource(**options)
        context = make_context(*where, attempt=attempt, job=job)
        self.source.context = replace(context, task=access, max_parallelism=max_parallelism)
        self.source.open()
        if offset is not None:
            self.source.seek(offset)
        if offsets is not None:
            self.source.rescale(offsets)
        if settled:
            self.source._read_on()
            self.settle()

    def _run_aside(self, work: Callable[[], Any], done: Callable[[Any], Any], failed: Callable[[Any], Any]) -> None:
        def run() -> None:
            try:
                found = work()
            except OSError as error:
                failed(error)
            else:
                done(found)

        self.aside.append(run)

    def settle(self) -> None:
        while self.aside:
            self.aside.popleft()()
            if not self.source._has_read:
                self.source._read_on()

    def send(self, *sent: SentRecords) -> Any:
        """What it promises."""
        request = SendToInlet(JobId("job-a"), "operator", SubtaskIndex(0), to_payload(sent))
        return self.source.on_receive(request)

    def sent(self, *sent: SentRecords) -> InletAnswer:
        """What it answers in the end."""
        promise = self.send(*sent)
        self.settle()
        return answer_of(promise)

    def emitted(self) -> list[Any]:
        found: list[Any] = []
        while isinstance(batch := self.source.poll(), list | pa.RecordBatch):
            found += batch if isinstance(batch, list) else [row.number for row in rows_of(batch)]
            self.settle()
        return found


def answer_of(promise: Any) -> InletAnswer:
    found: InletAnswer = promise.get(timeout=0)
    return found


def is_open(promise: Any) -> bool:
    with pytest.raises(pykka.Timeout):
        promise.get(timeout=0)
    return True


def numbers(sender: str, first: int, last: int) -> SentRecords:
    """What a sender sends under these numbers: the numbers themselves."""
    records = range(first, last + 1)
    return SentRecords(sender, first, len(records), False, b"".join(map(pack_plain, records)))


def test_it_answers_when_the_records_last_and_not_before(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    first, second, question = (
        stage.send(numbers("a", 1, 2)),
        stage.send(numbers("a", 3, 3)),
        stage.send(numbers("a", 4, 3)),
    )
    assert is_open(first)
    assert is_open(second)
    assert is_open(question)
    assert stage.emitted() == []
    stage.settle()
    assert answer_of(first) == answer_of(second) == InletAnswer({})
    assert answer_of(question) == InletAnswer({"a": 3})
    assert stage.emitted() == [1, 2, 3]


def test_numbers_count_once_and_none_is_left_out(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    assert stage.sent(numbers("a", 1, 3)) == InletAnswer({})
    assert stage.sent(numbers("a", 2, 3), numbers("b", 1, 1)) == InletAnswer({})
    assert stage.sent(numbers("a", 2, 5)) == InletAnswer({}), "of which two are there"
    assert stage.sent(numbers("a", 8, 9)) == InletAnswer({"a": 5})
    columns = pa.record_batch([[5, 6, 7]], schema=SCHEMA)
    assert stage.sent(SentRecords("a", 5, 3, True, columns_to_bytes(columns))) == InletAnswer({})
    assert stage.emitted() == [1, 2, 3, 1, 4, 5, 6, 7]


def test_with_a_schema_records_become_columns(tmp_path: Path) -> None:
    stage = Stage(tmp_path, schema=SCHEMA)
    packed = b"".join(pack_plain([number]) for number in (1, 2))
    stage.sent(SentRecords("a", 1, 2, False, packed))
    batch = stage.source.poll()
    assert isinstance(batch, pa.RecordBatch)
    assert batch.equals(pa.record_batch([[1, 2]], schema=SCHEMA))


def test_a_restored_attempt_has_what_lasted_whether_emitted_or_not(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.sent(numbers("a", 1, 2))
    assert stage.emitted() == [1, 2]
    stage.sent(numbers("a", 3, 4))
    offset = stage.source.offset()
    stage.sent(numbers("a", 5, 6))
    under_way = stage.send(numbers("a", 7, 7))
    again = Stage(tmp_path, attempt=1, offset=offset)
    assert again.emitted() == [3, 4, 5, 6]
    assert again.sent(numbers("a", 7, 7)) == InletAnswer({})
    assert again.emitted() == [7]
    stage.settle()  # the one that was given up goes on: what it says counts no more, and what it writes neither
    assert answer_of(under_way) == InletAnswer({})
    third = Stage(tmp_path, attempt=2, offset=again.source.offset())
    assert third.emitted() == []
    from_the_first = Stage(tmp_path, attempt=3, offset=offset)
    assert from_the_first.emitted() == [3, 4, 5, 6, 7]


def test_one_without_a_checkpoint_begins_with_the_whole_log(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.sent(numbers("a", 1, 2))
    stage.sent(numbers("b", 1, 1))
    again = Stage(tmp_path, attempt=1)
    assert again.emitted() == [1, 2, 1]


def test_nothing_is_said_before_the_log_is_read(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.sent(numbers("a", 1, 2))
    again = Stage(tmp_path, attempt=1)
    again.source.open()
    assert answer_of(again.send(numbers("a", 1, 0))) == InletAnswer({}, is_ready=False)


def test_behind_the_barrier_of_a_stop_nobody_is_answered(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    under_way = stage.send(numbers("a", 1, 1))
    offset = stage.source.offset()
    stage.source._hold(True)
    stage.settle()
    assert is_open(under_way)
    assert answer_of(stage.send(numbers("a", 2, 2))) == InletAnswer({}, is_ready=False)
    stage.source._hold(False)  # the savepoint has failed, and the job goes on
    assert answer_of(under_way) == InletAnswer({})
    last = stage.send(numbers("a", 2, 2))
    stage.source._hold(True)
    stage.settle()
    stage.source.close()
    with pytest.raises(NotRunning):
        last.get(timeout=0)
    successor = Stage(tmp_path, job="job-b", offset=offset, from_savepoint=True)
    assert successor.emitted() == [], "it was not acknowledged before the savepoint"
    assert Stage(tmp_path, job="job-b", offset=offset).emitted() == [1, 2], "a checkpoint goes on in the log"


def test_it_is_no_whole_savepoint_before_its_log_is_read(tmp_path: Path) -> None:
    """What was acknowledged and stands in the log alone would be lost with a job that is stopped with it."""
    stage = Stage(tmp_path)
    offset = stage.source.offset()
    stage.sent(numbers("a", 1, 2))
    again = Stage(tmp_path, attempt=1, settled=False, offset=offset)
    assert not again.source._is_whole()
    while not again.source._is_whole():  # it reads on by itself, polled or not
        again.aside.popleft()()
    offset = again.source.offset()
    successor = Stage(tmp_path, job="job-b", offset=offset, from_savepoint=True)
    assert successor.emitted() == [1, 2]


def test_one_whose_data_has_ended_reads_no_log(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.source._ends_by_itself()
    assert stage.source.poll() is END
    again = Stage(tmp_path, attempt=1, settled=False, offset=stage.source.offset())
    assert again.source._is_whole()
    assert not again.aside


def test_one_that_is_stopped_emits_what_it_has_taken_and_ends(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    under_way = stage.send(numbers("a", 1, 1))
    assert stage.source._ends_by_itself()
    assert answer_of(stage.send(numbers("b", 1, 1))) == InletAnswer({"b": 0}, has_ended=True)
    assert stage.source.poll() is None
    stage.settle()
    assert answer_of(under_way).last_numbers == {}
    assert stage.source.poll() == [1]
    assert stage.source.poll() is END
    again = Stage(tmp_path, attempt=1, offset=stage.source.offset())
    assert answer_of(again.send(numbers("a", 1, 0))) == InletAnswer({"a": 1}, has_ended=True)


def test_what_could_not_be_written_is_taken_when_it_comes_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stage = Stage(tmp_path)
    stage.sent(numbers("a", 1, 1))

    def fail(*_: Any) -> None:
        raise OSError("the disk is full")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LogWriter, "append", fail)
        refused = InletAnswer({}, is_ready=False, trouble="its log cannot be written: OSError: the disk is full")
        assert stage.sent(numbers("a", 2, 2)) == refused
        assert stage.sent(numbers("a", 2, 2)) == refused
    assert stage.sent(numbers("a", 2, 2)) == InletAnswer({})
    first, second = [record.getMessage() for record in caplog.records]
    assert "cannot be written to its log: OSError: the disk is full; nothing is lost, and its senders wait" in first
    assert "takes records again" in second
    assert stage.emitted() == [1, 2]


def test_it_takes_nothing_more_when_it_is_full(tmp_path: Path) -> None:
    stage = Stage(tmp_path, max_waiting_records=3)
    assert stage.sent(numbers("a", 1, 4)) == InletAnswer({}, is_full=True)
    assert stage.sent(numbers("a", 5, 5)) == InletAnswer({"a": 4}, is_full=True)
    assert stage.emitted() == [1, 2, 3, 4]
    assert stage.sent(numbers("a", 5, 5)) == InletAnswer({})


@pytest.mark.parametrize(("old", "new"), [(1, 3), (3, 2), (2, 1)])
def test_after_a_rescale_each_sender_belongs_to_one(tmp_path: Path, old: int, new: int) -> None:
    stages = [Stage(tmp_path, where=(index, old)) for index in range(old)]
    senders = [f"sender-{index}" for index in range(12)]
    owner = {sender: next(stage for stage in stages if stage.source._is_own(sender)) for sender in senders}
    for sender in senders:
        owner[sender].sent(numbers(sender, 1, 3))
    offsets = [stage.source.offset() for stage in stages]
    for sender in senders:
        owner[sender].sent(numbers(sender, 4, 5))
    successors = [Stage(tmp_path, where=(index, new), job="job-b", offsets=offsets) for index in range(new)]
    assert sorted(number for stage in successors for number in stage.emitted()) == sorted([1, 2, 3, 4, 5] * 12)
    for sender in senders:
        (own,) = (stage for stage in successors if stage.source._is_own(sender))
        assert own.sent(numbers(sender, 5, 6)) == InletAnswer({})
        assert own.emitted() == [6]


SENDERS = [f"sender-{index}" for index in range(12)]


def with_a_log(folder: Path, parallelism: int) -> list[dict[str, Any]]:
    """Offsets behind which each of the senders has two records in one segment, and two in the next."""
    stages = [Stage(folder, where=(index, parallelism)) for index in range(parallelism)]
    offsets = [stage.source.offset() for stage in stages]
    for first in (1, 3):
        for stage in stages:
            stage.sent(*(numbers(each, first, first + 1) for each in SENDERS if stage.source._is_own(each)))
            stage.source.on_checkpoint(CheckpointId(first))
            stage.settle()
    return offsets


@pytest.mark.parametrize("read", [(3, 1, 0), (0, 1, 3), (4, 5, 1), (2, 2, 2)])
def test_each_of_several_that_read_one_log_goes_on_at_its_own_place_after_another_rescale(
    tmp_path: Path, read: tuple[int, ...]
) -> None:
    """`read`: how often each has read on when the checkpoint is taken, as where the logs are long."""
    offsets = with_a_log(tmp_path, 2)
    middle = [
        Stage(tmp_path, where=(index, 3), job="job-b", offsets=offsets, settled=False) for index in range(len(read))
    ]
    for stage, count in zip(middle, read, strict=True):
        for _ in range(count):
            stage.source._read_on()
            stage.aside.popleft()()
    offsets = [stage.source.offset() for stage in middle]
    last = [Stage(tmp_path, where=(index, 2), job="job-c", offsets=offsets) for index in range(2)]
    assert sorted(number for stage in last for number in stage.emitted()) == sorted([1, 2, 3, 4] * len(SENDERS))


def test_made_up_names_of_several_subtasks_are_not_forgotten_before_their_logs_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender_numbers, "REMEMBERED", 3)
    stages = [Stage(tmp_path, where=(index, 2)) for index in range(2)]
    for stage in stages:
        names = [name for index in range(100) if stage.source._is_own(name := f"{MADE_UP}{index}")]
        stage.sent(*(numbers(name, 1, 1) for name in names))
        stage.emitted()
    offsets = [stage.source.offset() for stage in stages]
    for stage in stages:
        stage.sent(*(numbers(name, 2, 2) for name in stage.source.offset()["senders"]))
    one = Stage(tmp_path, job="job-b", offsets=offsets)
    assert one.emitted() == [2] * 6
    assert len(one.source.offset()["senders"]) == 3, "as many as ever are remembered from then on"


def test_another_max_parallelism_gives_senders_to_other_subtasks(tmp_path: Path) -> None:
    stages = [Stage(tmp_path, where=(index, 2)) for index in range(2)]
    for stage in stages:
        stage.sent(*(numbers(each, 1, 2) for each in SENDERS if stage.source._is_own(each)))
    recorded = [RecordedOffset(index, 2, stage.source.offset()) for index, stage in enumerate(stages)]
    for stage in stages:
        stage.sent(*(numbers(each, 3, 3) for each in SENDERS if stage.source._is_own(each)))
    others = [Stage(tmp_path, where=(index, 2), job="job-b", max_parallelism=60, settled=False) for index in range(2)]
    assert [[each for each in SENDERS if stage.source._is_own(each)] for stage in others] != [
        [each for each in SENDERS if stage.source._is_own(each)] for stage in stages
    ]
    for stage in others:
        continue_source(stage.source, recorded)
        stage.source._read_on()
        stage.settle()
    assert sorted(number for stage in others for number in stage.emitted()) == sorted([1, 2, 3] * len(SENDERS))


def test_segments_go_when_no_checkpoint_needs_them_and_a_gap_is_said(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    offsets = []
    for number in range(1, 5):
        stage.sent(numbers("a", number, number))
        stage.source.on_checkpoint(CheckpointId(number))
        offsets.append(stage.source.offset())
        stage.settle()
    stage.emitted()
    stage.source._forget_before(CheckpointId(3))
    stage.settle()
    assert Stage(tmp_path, attempt=1, offset=offsets[2]).emitted() == [1, 2, 3, 4]
    older = Stage(tmp_path, attempt=2, offset=offsets[3] | {"ready": to_payload([])})
    assert older.emitted() == []
    left = {path.name[-8:] for path in (tmp_path / "job-a" / "inlets" / "operator" / "0").glob("00000001-*")}
    assert "00000003" in left
    assert not {"00000001", "00000002"} & left
    with pytest.raises(InletLogDamaged, match="holds record 3 next, wanted 2"):
        Stage(tmp_path, attempt=3, offset=offsets[0] | {"ready": to_payload([])})


@pytest.mark.parametrize("is_new_process", [True, False])
def test_an_empty_folder_in_place_of_the_volume_is_not_taken_for_an_empty_log(
    tmp_path: Path, is_new_process: bool
) -> None:
    """What was acknowledged, and stands in the log alone, would be lost without a word."""
    root = tmp_path / "checkpoints"
    CheckpointStorage(str(root)).check()
    stage = Stage(root)
    offset = stage.source.offset()
    stage.sent(numbers("a", 1, 2))
    again = Stage(root, attempt=1, offset=offset, settled=False)
    root.rename(tmp_path / "volume")
    root.mkdir()
    if is_new_process:
        access = again.source.context.task
        assert access is not None
        storage = CheckpointStorage(str(root), has_mark=True)
        again.source.context = replace(again.source.context, task=replace(access, storage=storage))
        again.source.open()
        again.source.seek(offset)
    again.source._read_on()
    with pytest.raises(UnreachableRoot):
        again.settle()
    root.rmdir()
    (tmp_path / "volume").rename(root)
    assert Stage(root, attempt=2, offset=offset).emitted() == [1, 2]


def test_logs_of_a_job_before_whose_directory_is_away_are_not_taken_for_empty(tmp_path: Path) -> None:
    stage = Stage(tmp_path / "old")
    offset = stage.source.offset()
    stage.sent(numbers("a", 1, 2))
    offset["logs"] = [[str(tmp_path / "old"), *offset["logs"][0][1:]]]
    (tmp_path / "old").rename(tmp_path / "away")
    (tmp_path / "new").mkdir()
    with pytest.raises(UnreachableRoot):
        Stage(tmp_path / "new", job="job-b", offset=offset)
    (tmp_path / "away").rename(tmp_path / "old")
    assert Stage(tmp_path / "new", job="job-b", offset=offset).emitted() == [1, 2]


def test_a_log_that_has_rotted_is_said(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    for number in (1, 2, 3):
        stage.sent(numbers("a", number, number))
    (path,) = (tmp_path / "job-a" / "inlets" / "operator" / "0").glob("00000001-*1")
    data = path.read_bytes()
    path.write_bytes(data.replace(numbers("a", 2, 2).data, b"?", 1))
    with pytest.raises(
        InletLogDamaged,
        match=r"^inlet 'operator': .*a whole entry at byte .*from a savepoint.*edit\(\).write\(check.*last_num",
    ):
        Stage(tmp_path, attempt=1)


def test_a_record_is_known_by_its_senders_number(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.sent(numbers("a", 1, 1), numbers("b", 1, 2))
    stage.emitted()
    assert stage.source._origin_of(0) == "number 1 of sender 'a'"
    assert stage.source._origin_of(2) == "number 2 of sender 'b'"
    assert stage.source._origin_of(None) == "one of: number 1 of sender 'a', numbers 1 to 2 of sender 'b'"


def test_names_that_were_made_up_are_forgotten_when_there_are_many() -> None:
    found = SenderNumbers({"service": 7, f"{MADE_UP}first": 1, f"{MADE_UP}second": 2})
    found.set(f"{MADE_UP}first", 3)
    for index in range(REMEMBERED - 1):
        found.set(f"{MADE_UP}{index}", 1)
    assert [found.last(name) for name in ("service", f"{MADE_UP}first", f"{MADE_UP}second")] == [7, 3, 0]


def test_records_that_are_being_written_count_for_the_bound(tmp_path: Path) -> None:
    stage = Stage(tmp_path, max_waiting_records=3)
    first, second = stage.send(numbers("a", 1, 4)), stage.send(numbers("b", 1, 1))
    assert answer_of(second) == InletAnswer({"b": 0}, is_full=True)
    stage.settle()
    assert answer_of(first) == InletAnswer({}, is_full=True)


@pytest.mark.parametrize(
    ("sent", "says"),
    [
        (SentRecords("a", 1, 3, False, pack_plain("one")), "wanted 3 packed records"),
        (SentRecords("a", 1, 1, False, pack_plain("one") * 2), "wanted 1 packed records"),
        (SentRecords("a", 1, 1, False, b"\xc1"), "wanted 1 packed records"),
        (SentRecords("a", 1, -1, False, b""), "wanted sender, first number, count"),
        (SentRecords("a", 0, 1, False, pack_plain(1)), "wanted sender, first number, count"),
        (SentRecords(7, 1, 1, False, pack_plain(1)), "wanted sender, first number, count"),  # type: ignore[arg-type]
        (SentRecords("a", 1, 1, True, b"no arrow"), "wanted an Arrow stream of one batch"),
        (
            SentRecords("a", 1, 2, True, columns_to_bytes(pa.record_batch([[1]], schema=SCHEMA))),
            "2 rows, found a batch of 1",
        ),
        (SentRecords("a", 1, 1, True, columns_to_bytes(pa.record_batch([["1"]], ["number"]))), "found number: string"),
    ],
)
def test_what_could_not_be_emitted_is_refused_and_does_not_reach_the_log(
    tmp_path: Path, sent: SentRecords, says: str
) -> None:
    stage = Stage(tmp_path, schema=SCHEMA)
    good = SentRecords("b", 1, 1, False, pack_plain([7]))
    with pytest.raises(RecordMismatch, match=says):
        stage.send(good, sent)
    assert stage.sent(SentRecords("a", 1, 0, False, b""), good) == InletAnswer({"a": 0})
    assert Stage(tmp_path, attempt=1, schema=SCHEMA).emitted() == [7]


@pytest.mark.parametrize("data", [pack_plain(7), pack_plain(7) * 3, b"\xd9", b"\xc1\xc1", b""])
def test_who_sent_what_could_not_be_emitted_is_named_though_it_could_go_on_in_the_next(
    tmp_path: Path, data: bytes
) -> None:
    stage = Stage(tmp_path)
    before, after = numbers("before", 1, 3), numbers("after", 1, 3)
    with pytest.raises(RecordMismatch, match="of sender 'wrong' from number 4 on: wanted 2 packed records"):
        stage.send(before, SentRecords("wrong", 4, 2, False, data), after)


@pytest.mark.parametrize("payload", [b"\xc1\xc1", b"\x92\x01\x02", b"\x07", b""])
def test_a_request_that_holds_no_sent_records_is_refused(tmp_path: Path, payload: bytes) -> None:
    stage = Stage(tmp_path)
    with pytest.raises(RecordMismatch, match="what an inlet's sender makes"):
        stage.source.on_receive(SendToInlet(JobId("job-a"), "operator", SubtaskIndex(0), payload))


OLD = pa.schema([("customer", pa.string()), ("cents", pa.int32())])


def under_the_old_schema(folder: Path) -> dict[str, Any]:
    """Of four records, the state holds one to be emitted, another is behind its mark in the same segment, and one is in
    a segment that follows. Of each kind one is packed.
    """
    stage = Stage(folder, schema=OLD)
    stage.sent(SentRecords("a", 1, 1, False, pack_plain(["ann", 1])))
    offset = stage.source.offset()
    batch = pa.record_batch([["bob", "cid"], [2, 3]], schema=OLD)
    stage.sent(SentRecords("a", 2, 2, True, columns_to_bytes(batch)))
    stage.source.on_checkpoint(CheckpointId(1))
    stage.settle()
    stage.sent(SentRecords("a", 4, 1, False, pack_plain(["dot", 4])))
    return offset


def rows_emitted(stage: Stage) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while isinstance(batch := stage.source.poll(), pa.RecordBatch):
        assert batch.schema.equals(stage.source.schema)
        found += batch.to_pylist()
        stage.settle()
    return found


@pytest.mark.parametrize("has_state", [True, False], ids=["from a checkpoint", "from the log alone"])
def test_records_of_an_older_schema_are_converted_by_the_names_of_their_columns(
    tmp_path: Path, has_state: bool
) -> None:
    offset = under_the_old_schema(tmp_path) if has_state else under_the_old_schema(tmp_path) and None
    new = pa.schema([("cents", pa.int64()), ("shop", pa.string()), ("customer", pa.string())])
    again = Stage(tmp_path, attempt=1, offset=offset, schema=new)
    later = again.source.offset()
    wanted = [
        {"cents": cents, "shop": None, "customer": name} for cents, name in enumerate(("ann", "bob", "cid", "dot"), 1)
    ]
    assert rows_emitted(again) == wanted
    again.sent(SentRecords("a", 5, 1, False, pack_plain([5, "mall", "eve"])))
    third = Stage(tmp_path, attempt=2, offset=later, schema=new)
    assert rows_emitted(third) == [*wanted, {"cents": 5, "shop": "mall", "customer": "eve"}]


@pytest.mark.parametrize("has_state", [True, False], ids=["from a checkpoint", "from the log alone"])
@pytest.mark.parametrize(
    ("schema", "says"),
    [
        (pa.schema([("customer", pa.string()), ("cents", pa.list_(pa.int64()))]), "column 'cents'"),
        (pa.schema([("customer", pa.string())]), "extra cents"),
        (pa.schema([*OLD, pa.field("shop", pa.string(), nullable=False)]), "missing shop"),
        (None, "without one are not converted"),
    ],
    ids=["other type", "fewer", "not null", "none"],
)
def test_records_of_another_schema_that_do_not_fit_are_named(
    tmp_path: Path, has_state: bool, schema: pa.Schema | None, says: str
) -> None:
    offset = under_the_old_schema(tmp_path) if has_state else under_the_old_schema(tmp_path) and None
    with pytest.raises(InletSchemaChanged, match=says) as caught:
        Stage(tmp_path, attempt=1, offset=offset, schema=schema)
    assert "have the columns customer: string, cents: int32; its schema wants" in str(caught.value)
    assert [row["cents"] for row in rows_emitted(Stage(tmp_path, attempt=2, offset=offset, schema=OLD))] == [1, 2, 3, 4]
