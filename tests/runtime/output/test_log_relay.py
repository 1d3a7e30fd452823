"""Records of a TaskManager's process, from its loggers to the user's: complete, plain, and never in the way."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from understudy.actors.operators.operator import Operator
from understudy.messages import JobId, LogRecords, TaskManagerId, decode, encode
from understudy.runtime.output.delivery import OutputDelivery
from understudy.runtime.output.log_levels import LogLevels
from understudy.runtime.output.log_relay import MAX_TEXT, relayed_logs
from understudy.runtime.output.outbox import RelayOutbox

from ...meanwhile import at_each_collection

WAIT_S = 120


@pytest.fixture
def outbox() -> RelayOutbox:
    return RelayOutbox(TaskManagerId("tm-0"), JobId("job-1"), "trips", 7)


def sent(outbox: RelayOutbox) -> list[Any]:
    """As the JobManager gets them."""
    messages = [decode(encode(message)) for message in outbox.take(final=True)]
    return [record for message in messages for record in message.records]


class Unspeakable:
    def __str__(self) -> str:
        raise RuntimeError("no words")


class Loud(Operator):
    """Logs in a function that one of its methods calls."""

    def process_batch(self, batch: Any, out: Any) -> None:
        shout(batch)


def shout(text: str) -> None:
    logging.getLogger("myapp.trips").warning("it is %s", text, extra={"request": 5, "who": Unspeakable})


def operator() -> Loud:
    made = Loud()
    made.context = SimpleNamespace(name="loud", subtask_index=1, attempt_number=2)  # type: ignore[assignment]
    return made


def test_a_record_says_all_that_the_users_formatter_may_ask_for(outbox: RelayOutbox) -> None:
    with relayed_logs(outbox, LogLevels(logging.WARNING)):
        operator().process_batch("late", None)
    (record,) = sent(outbox)
    assert (record.logger, record.level, record.text) == ("myapp.trips", logging.WARNING, "it is late")
    assert (record.path, record.function, record.thread) == (__file__, "shout", "MainThread")
    assert (record.operator, record.subtask_index, record.attempt_number) == ("loud", 1, 2)
    assert record.extra == {"request": 5, "who": str(Unspeakable)}


def test_what_cannot_be_formatted_is_said_and_fails_nobody(
    outbox: RelayOutbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.root, "handlers", [])  # pytest's would fail
    with relayed_logs(outbox, LogLevels(logging.WARNING)):
        logging.getLogger("myapp").warning("%d", "no number")
        logging.getLogger("myapp").warning("%s", Unspeakable())
        logging.getLogger("myapp").warning("long %s", "x" * 2 * MAX_TEXT)
    first, second, third = sent(outbox)
    assert first.text.startswith("%d (its arguments cannot be formatted: TypeError: ")
    assert second.text == "%s (its arguments cannot be formatted: RuntimeError: no words)"
    assert len(third.text) == MAX_TEXT
    assert first.operator == ""


def test_a_traceback_travels_as_text(outbox: RelayOutbox) -> None:
    with relayed_logs(outbox, LogLevels(logging.WARNING)):
        try:
            raise LookupError("no such table")
        except LookupError:
            logging.getLogger("myapp").exception("it failed", stack_info=True)
    (record,) = sent(outbox)
    assert 'raise LookupError("no such table")' in record.error
    assert record.error.endswith("LookupError: no such table")
    assert "test_a_traceback_travels_as_text" in record.stack


def test_what_is_logged_while_a_record_is_sent_is_not_sent(outbox: RelayOutbox) -> None:
    outbox.when_filled(lambda: logging.getLogger("transport").warning("sending"))
    with relayed_logs(outbox, LogLevels(logging.WARNING)):
        logging.getLogger("myapp").warning("once")
    assert [record.text for record in sent(outbox)] == ["once"]


def test_only_what_the_users_levels_let_through_is_made(outbox: RelayOutbox) -> None:
    levels = LogLevels(logging.ERROR, (("myapp", logging.INFO), ("myapp.quiet", logging.CRITICAL)))
    with relayed_logs(outbox, levels):
        for name in ("myapp", "myapp.trips", "myapp.quiet", "other"):
            logging.getLogger(name).info("info of %s", name)
            logging.getLogger(name).error("error of %s", name)
    said = [record.text for record in sent(outbox)]
    assert said == ["info of myapp", "error of myapp", "info of myapp.trips", "error of myapp.trips", "error of other"]
    with relayed_logs(outbox, LogLevels(logging.DEBUG, disabled=logging.INFO)):
        logging.getLogger("myapp").info("disabled")
        logging.getLogger("myapp").warning("not disabled")
    assert [record.text for record in sent(outbox)] == ["not disabled"]


@pytest.fixture
def delivery() -> Iterator[OutputDelivery]:
    made = OutputDelivery()
    yield made
    made.close()


def test_the_users_handlers_and_levels_apply(outbox: RelayOutbox, delivery: OutputDelivery) -> None:
    with relayed_logs(outbox, LogLevels(logging.DEBUG)):
        operator().process_batch("late", None)
        logging.getLogger("myapp").debug("off where the user is")
        try:
            raise LookupError("no such table")
        except LookupError:
            logging.getLogger("myapp").exception("100% failed")
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(
        logging.Formatter(
            "%(levelname)s %(name)s %(filename)s %(process)d %(job_name)s %(task_manager)s %(operator)s "
            "%(subtask)d %(attempt)d %(message)s"
        )
    )
    logger = logging.getLogger("myapp")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        for message in outbox.take(final=True):
            delivery.offer(decode(encode(message)))
        assert delivery.drain(WAIT_S)
    finally:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)
    first, second, *traceback = written.getvalue().splitlines()
    assert first == "WARNING myapp.trips test_log_relay.py 7 trips tm-0 loud 1 2 it is late"
    assert second == "ERROR myapp test_log_relay.py 7 trips tm-0  -1 -1 100% failed"
    assert traceback[-1] == "LookupError: no such table"


def test_levels_are_as_before_afterwards() -> None:
    mine = logging.getLogger("myapp.before")
    mine.setLevel(logging.CRITICAL)
    before = LogLevels.of_this_process()
    try:
        with LogLevels(logging.DEBUG, (("myapp.other", logging.INFO),), logging.DEBUG).applied():
            assert mine.level == logging.CRITICAL, "what a library has set here"
            assert logging.getLogger("myapp.other").level == logging.INFO
            assert logging.root.manager.disable == logging.DEBUG
        assert LogLevels.of_this_process() == before
        assert ("myapp.before", logging.CRITICAL) in before.named
    finally:
        mine.setLevel(logging.NOTSET)


def test_other_threads_may_make_loggers_while_levels_are_read() -> None:
    logging.getLogger("of_test.levels").setLevel(logging.ERROR)
    made: list[str] = []

    def make(name: str) -> None:
        made.append(name)
        logging.getLogger(f"of_test.{name}")

    with at_each_collection(make):
        levels = LogLevels.of_this_process()
    for name in ("levels", *made):
        del logging.root.manager.loggerDict[f"of_test.{name}"]
    assert ("of_test.levels", logging.ERROR) in levels.named


def test_a_handler_that_raises_silences_nobody(
    delivery: OutputDelivery, caplog: pytest.LogCaptureFixture, outbox: RelayOutbox
) -> None:
    class Raising(logging.Filter):
        def filter(self, record: logging.LogRecord) -> bool:
            raise RuntimeError("not today")

    raising = Raising()
    with relayed_logs(outbox, LogLevels(logging.WARNING)):
        logging.getLogger("myapp.raising").warning("one")
        logging.getLogger("myapp.well").warning("two")
        messages = outbox.take(final=True)
    caplog.clear()
    logging.getLogger("myapp.raising").addFilter(raising)
    try:
        for message in messages:
            delivery.offer(message)
        assert delivery.drain(WAIT_S)
    finally:
        logging.getLogger("myapp.raising").removeFilter(raising)
    assert [record.message for record in caplog.records][1:] == ["two"]


def test_what_a_task_manager_has_dropped_is_told(delivery: OutputDelivery, caplog: pytest.LogCaptureFixture) -> None:
    delivery.offer(LogRecords(TaskManagerId("tm-0"), JobId("job-1"), "trips", 7, (), 300))
    assert delivery.drain(WAIT_S)
    assert "300 log records of tm-0 were dropped" in caplog.text
