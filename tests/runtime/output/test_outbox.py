"""RelayOutbox: order, bounds, and what it tells of what it has dropped."""

from __future__ import annotations

import logging
import threading

import pytest

from understudy.messages import JobId, LoggedRecord, LogRecords, PrintedText, TaskManagerId
from understudy.runtime.output.outbox import MAX_SENT_TEXT, MAX_WAITING_TEXT, RECORDS_PER_SECOND, RelayOutbox

from ...meanwhile import at_each_collection


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def outbox(clock: Clock) -> RelayOutbox:
    return RelayOutbox(TaskManagerId("tm-0"), JobId("job-1"), "trips", 7, clock)


def logged(outbox: RelayOutbox, text: str, level: int = logging.INFO) -> bool:
    admitted = outbox.admits(level)
    if admitted:
        outbox.put_record(LoggedRecord("myapp", level, 1.5, text))
    return admitted


def texts(messages: list[LogRecords | PrintedText]) -> list[str]:
    return [each.text for message in messages if isinstance(message, LogRecords) for each in message.records]


def test_records_are_taken_together_in_their_order(outbox: RelayOutbox) -> None:
    logged(outbox, "one")
    logged(outbox, "two")
    (message,) = outbox.take()
    assert isinstance(message, LogRecords)
    assert (message.task_manager_id, message.job_id, message.job_name, message.pid) == ("tm-0", "job-1", "trips", 7)
    assert texts([message]) == ["one", "two"]
    assert outbox.take() == []
    assert outbox.is_empty


def test_it_calls_once_until_it_has_been_emptied(outbox: RelayOutbox) -> None:
    calls: list[int] = []
    logged(outbox, "before anybody listens")
    outbox.when_filled(lambda: calls.append(1))
    assert len(calls) == 1
    logged(outbox, "more")
    assert len(calls) == 1
    outbox.take()
    logged(outbox, "again")
    assert len(calls) == 2


def test_a_flood_is_cut_to_the_rate_and_counted(outbox: RelayOutbox, clock: Clock) -> None:
    admitted = [logged(outbox, str(number)) for number in range(RECORDS_PER_SECOND + 300)]
    assert admitted == [True] * RECORDS_PER_SECOND + [False] * 300
    assert logged(outbox, "it burns", logging.ERROR), "a flood of less drowns no error"
    (message,) = outbox.take()
    assert isinstance(message, LogRecords)
    assert message.dropped == 300
    clock.now += 0.125
    again = [logged(outbox, str(number)) for number in range(200)]
    assert again == [True] * 125 + [False] * 75
    (message,) = outbox.take()
    assert isinstance(message, LogRecords)
    assert message.dropped == 0, "not twice a second"
    assert not outbox.is_empty
    assert outbox.take() == []
    clock.now += 1
    (message,) = outbox.take()
    assert message == LogRecords(TaskManagerId("tm-0"), JobId("job-1"), "trips", 7, (), 75)
    assert outbox.is_empty


def test_at_the_end_all_that_is_left_is_told(outbox: RelayOutbox) -> None:
    for number in range(RECORDS_PER_SECOND + 1):
        logged(outbox, str(number))
    outbox.take()
    logged(outbox, "one more")
    outbox.put_text("stdout", "x" * MAX_SENT_TEXT)
    outbox.put_text("stdout", "y")
    messages = outbox.take(final=True)
    assert sum(message.dropped for message in messages if isinstance(message, LogRecords)) == 1
    assert "".join(message.text for message in messages if isinstance(message, PrintedText)).endswith("xy")
    assert outbox.is_empty


def test_prints_are_joined_by_stream_in_their_order(outbox: RelayOutbox) -> None:
    for stream, text in (("stdout", "a\n"), ("stdout", "b\n"), ("stderr", "oh\n"), ("stdout", "c\n")):
        outbox.put_text(stream, text)
    printed = [(each.stream, each.text) for each in outbox.take() if isinstance(each, PrintedText)]
    assert printed == [("stdout", "a\nb\n"), ("stderr", "oh\n"), ("stdout", "c\n")]


def test_prints_that_find_no_place_are_counted_by_line(outbox: RelayOutbox) -> None:
    outbox.put_text("stdout", "x" * MAX_WAITING_TEXT)
    outbox.put_text("stdout", "lost\nlost\n")
    outbox.put_text("stderr", "lost too")
    assert len(outbox.take()[0].text) == MAX_WAITING_TEXT  # type: ignore[union-attr]
    outbox.put_text("stdout", "after\n")
    (after, err) = outbox.take()
    assert isinstance(after, PrintedText)
    assert isinstance(err, PrintedText)
    assert (after.text, after.dropped_lines) == ("after\n", 2)
    assert (err.stream, err.text, err.dropped_lines) == ("stderr", "", 1)
    assert outbox.is_empty


def test_not_more_is_taken_at_once_than_the_connection_stands(outbox: RelayOutbox) -> None:
    for _ in range(4):
        outbox.put_text("stdout", "x" * (MAX_SENT_TEXT // 2))
    assert sum(len(each.text) for each in outbox.take() if isinstance(each, PrintedText)) == MAX_SENT_TEXT
    assert not outbox.is_empty


def test_what_logs_or_prints_when_the_collector_runs_holds_no_thread_up(outbox: RelayOutbox) -> None:
    """As asyncio does of a task that was never awaited, and clients of a connection that was not closed: the collector
    may find such a thing in the middle of anything, on the thread that has the outbox just then.
    """
    kept: list[str] = []

    def last_words(name: str) -> None:
        if logged(outbox, name):
            kept.append(name)
        outbox.put_text("stderr", f"{name}\n")

    def work() -> None:
        for number in range(20):
            for stream in ("stdout", "stderr") * 20:
                outbox.put_text(stream, f"{number}\n")
            with at_each_collection(last_words):
                taken.extend(outbox.take(final=True))

    taken: list[LogRecords | PrintedText] = []
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()
    assert kept
    assert texts([*taken, *outbox.take(final=True)]) == kept
