"""LineSource on real sockets."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest

from understudy.actors.operators.source import END
from understudy.runtime.connectors import LineSource, UnreadableInput

from .driving import Driven


def speak(server: socket.socket, *parts: bytes) -> threading.Thread:
    """To the first who connects; then the connection ends."""

    def run() -> None:
        connection, _ = server.accept()
        with connection:
            for part in parts:
                connection.sendall(part)

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_lines_come_whole_until_the_other_side_ends(tmp_path: Path) -> None:
    path = str(tmp_path / "lines")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(path)
        server.listen()
        speaker = speak(server, b"one\ntw", "o\r\ndreiß".encode(), b"ig\xff\nlast")
        with Driven(LineSource(path)) as run:
            assert run.take(9) == ["one", "two", "dreißig\N{REPLACEMENT CHARACTER}", "last"]
            assert run.source.poll() is END
            assert run.source.offset() == {"lines": 4}
        speaker.join()


def test_bytes_that_are_no_text_are_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = str(tmp_path / "lines")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(path)
        server.listen()
        speaker = speak(server, b"right \xef\xbf\xbd\nwrong \xff\n\xfe\n")
        with Driven(LineSource(path)) as run:
            assert len(run.take(3)) == 3
        speaker.join()
    (said,) = [each.getMessage() for each in caplog.records]
    assert "wanted lines of UTF-8, found b'wrong \\xff'" in said


def test_a_line_without_end_is_refused_before_it_fills_the_memory(tmp_path: Path) -> None:
    path = str(tmp_path / "lines")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(path)
        server.listen()
        speaker = speak(server, b"one\n" + b"a" * 200_000)
        with (
            Driven(LineSource(path, max_bytes=100_000)) as run,
            pytest.raises(UnreadableInput, match=r"begins with b'aaa.*wanted at most 100,000 bytes"),
        ):
            run.take(2)
        speaker.join()


def test_tcp_is_read_too_and_a_server_that_is_not_there_yet_is_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]
    with Driven(LineSource(f"127.0.0.1:{port}")) as run:
        assert run.source.poll() is None
        with socket.create_server(("127.0.0.1", port)) as server:
            speaker = speak(server, b"one\n")
            assert run.take(2) == ["one"]
            speaker.join()


def test_that_lines_may_be_lost_is_said_at_submit_and_after_a_restart(caplog: pytest.LogCaptureFixture) -> None:
    source = LineSource("127.0.0.1:1")
    source.check_at_submit(on_this_machine=True)
    Driven(source, {"lines": 7})
    first, second = (each.getMessage() for each in caplog.records)
    assert "after each restart lines are lost" in first
    assert "lines behind line 7 may be lost" in second


def test_what_is_no_address_is_refused() -> None:
    with pytest.raises(ValueError, match="wanted host:port"):
        LineSource("localhost")
