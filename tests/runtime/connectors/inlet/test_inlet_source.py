"""InletSource, alone with a storage: what it answers when, what its checkpoints hold, what successors make of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from understudy.actors.ask_errors import NotRunning
from understudy.actors.flow.records import RecordMismatch
from understudy.actors.operators.source import END
from understudy.messages import InletAnswer, JobId, SendToInlet, SubtaskIndex, pack_plain
from understudy.runtime.connectors import SentRecords, columns_to_bytes
from understudy.runtime.connectors.inlet.sender_numbers import MADE_UP, REMEMBERED, SenderNumbers
from understudy.state import LogWriter

from .stage import SCHEMA, Stage, answer_of, is_open, numbers


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


def test_a_record_is_known_by_its_senders_number(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.sent(numbers("a", 1, 1), numbers("b", 1, 2))
    stage.emitted()
    assert stage.source._origin_of(0) == "number 1 of sender 'a'"
    assert stage.source._origin_of(1) == "number 1 of sender 'b'"
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
