"""OutputPipes with real pipes: whole lines, in order, complete at a drain, and nothing left open after `close`."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import pytest

from understudy.runtime.output.pipes import LastLine, OutputPipes
from understudy.runtime.output.user_streams import UserStreams

WAIT_S = 120


class Streams(UserStreams):
    """Remembers what is written, and can be made to block."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[tuple[str, str]] = []
        self.open = threading.Event()
        self.open.set()

    def write(self, name: str, text: str) -> None:
        self.open.wait(WAIT_S)
        self.written.append((name, text))

    def text(self, name: str = "stdout") -> str:
        return "".join(text for each, text in self.written if each == name)


@pytest.fixture
def streams() -> Streams:
    return Streams()


@pytest.fixture
def pipes(streams: Streams) -> Iterator[OutputPipes]:
    made = OutputPipes(streams)
    yield made
    made.close()


def open_files() -> set[str]:
    return set(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else set()


def test_the_last_line_of_standard_error_is_kept(pipes: OutputPipes) -> None:
    last = LastLine()
    with pipes.for_process(last) as (out, err):
        os.write(err, b"one\n\ntwo\nMemoryError\n\n")
        os.write(out, b"a result\n")
        assert pipes.drain(WAIT_S)
        assert last.text == "MemoryError"
        os.write(err, b"terminate called")
        assert pipes.drain(WAIT_S)
    assert last.text == "terminate called"


def test_what_was_written_before_a_drain_is_with_the_user_after_it(pipes: OutputPipes, streams: Streams) -> None:
    with pipes.for_process() as (out, err):
        os.write(out, b"one\ntwo\n")
        os.write(err, b"oh\n")
        assert pipes.drain(WAIT_S)
        assert (streams.text(), streams.text("stderr")) == ("one\ntwo\n", "oh\n")
        os.write(out, b"thr")
        assert pipes.drain(WAIT_S)
        assert streams.text() == "one\ntwo\nthr", "and so is a line that has no end yet"


def test_a_line_that_comes_in_pieces_is_handed_on_whole(pipes: OutputPipes, streams: Streams) -> None:
    with pipes.for_process() as (first, _), pipes.for_process() as (second, _):
        for piece in (b"a", "ä".encode()[:1], "ä".encode()[1:], b"b\n"):
            os.write(first, piece)
            os.write(second, b"other\n")
    assert pipes.drain(WAIT_S)
    pipes.close()
    assert sorted(streams.text().splitlines()) == ["aäb", *["other"] * 4]


def test_the_last_line_of_a_process_is_ended_for_it(pipes: OutputPipes, streams: Streams) -> None:
    with pipes.for_process() as (out, _):
        os.write(out, b"no end")
    with pipes.for_process() as (out, _):
        os.write(out, b"cut \xc3")
    pipes.close()
    assert sorted(streams.text().splitlines()) == ["cut \\xc3", "no end"]
    assert streams.text().endswith("\n")


def test_a_blocked_stream_holds_writers_up_and_loses_nothing(pipes: OutputPipes, streams: Streams) -> None:
    lines = [f"line {number}\n" for number in range(50_000)]

    def write() -> None:
        with pipes.for_process() as (out, _), os.fdopen(os.dup(out), "w") as file:
            file.writelines(lines)

    streams.open.clear()
    writer = threading.Thread(target=write)
    writer.start()
    assert not pipes.drain(0.05) or writer.is_alive(), "it cannot have written all: pipes hold less"
    assert writer.is_alive()
    streams.open.set()
    writer.join(WAIT_S)
    pipes.close()
    assert streams.text() == "".join(lines)


def test_closed_it_has_given_back_its_files_and_its_thread(streams: Streams) -> None:
    before, threads = open_files(), set(threading.enumerate())
    made = OutputPipes(streams)
    with made.for_process() as (out, _):
        os.write(out, b"last\n")
    with made.for_process():
        made.close()
    assert streams.text() == "last\n"
    assert made.drain(WAIT_S)
    with made.for_process():
        pass
    assert set(threading.enumerate()) == threads
    assert open_files() == before
