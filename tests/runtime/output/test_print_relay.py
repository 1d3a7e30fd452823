"""`sys.stdout` of a TaskManager in a Spark worker, as messages."""

from __future__ import annotations

import sys

import pytest

from understudy.messages import JobId, PrintedText, TaskManagerId
from understudy.runtime.output.delivery import OutputDelivery
from understudy.runtime.output.outbox import RelayOutbox
from understudy.runtime.output.print_relay import relayed_prints


@pytest.fixture
def outbox() -> RelayOutbox:
    return RelayOutbox(TaskManagerId("tm-0"), JobId("job-1"), "trips", 7)


def printed(outbox: RelayOutbox, stream: str) -> str:
    taken = [each for each in outbox.take(final=True) if isinstance(each, PrintedText)]
    return "".join(each.text for each in taken if each.stream == stream)


def test_lines_are_there_at_once_and_what_has_no_end_at_the_end(outbox: RelayOutbox) -> None:
    before = sys.stdout
    with relayed_prints(outbox):
        print("one")
        assert printed(outbox, "stdout") == "one\n"
        print("oh", file=sys.stderr)
        assert printed(outbox, "stderr") == "oh\n"
        print("two", end="")
        assert not sys.stdout.isatty()
    assert printed(outbox, "stdout") == "two"
    assert sys.stdout is before


def test_long_text_of_any_characters_arrives_as_it_is(outbox: RelayOutbox) -> None:
    text = "aä€😀" * 100_000 + "\n"
    with relayed_prints(outbox):
        print(text, end="")
        sys.stdout.buffer.write(b"bytes\n")
    assert printed(outbox, "stdout") == text + "bytes\n"
    with relayed_prints(outbox):
        print("\udcff")
    assert printed(outbox, "stdout") == "\\udcff\n"


def test_it_is_written_to_the_users_streams(outbox: RelayOutbox, capsys: pytest.CaptureFixture[str]) -> None:
    with relayed_prints(outbox):
        print("one")
        print("oh", file=sys.stderr)
    delivery = OutputDelivery()
    for message in outbox.take(final=True):
        delivery.offer(message)
    delivery.close()
    assert tuple(capsys.readouterr()) == ("one\n", "oh\n")
