"""UserStreams: whatever stands at sys.stdout now is written to, and none of it raises."""

from __future__ import annotations

import io
import logging
import sys

import pytest

from understudy.runtime.output.user_streams import UserStreams


class Broken(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError("nobody reads")


def test_the_stream_that_is_there_now_is_written_to(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    streams = UserStreams()
    streams.write("stdout", "one\n")
    streams.write("stderr", "oh\n")
    with monkeypatch.context() as patch:
        other = io.StringIO()
        patch.setattr(sys, "stdout", other)
        streams.write("stdout", "two\n")
        patch.setattr(sys, "stdout", None)
        streams.write("stdout", "lost\n")
    assert tuple(capsys.readouterr()) == ("one\n", "oh\n")
    assert other.getvalue() == "two\n"


def test_text_that_the_encoding_does_not_have_is_written_with_escapes(monkeypatch: pytest.MonkeyPatch) -> None:
    ascii_only = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", ascii_only)
    UserStreams().write("stdout", "a\u00e4\n")
    assert ascii_only.buffer.getvalue() == b"a\\xe4\n"  # type: ignore[attr-defined]


def test_a_stream_that_is_broken_is_logged_once_and_left_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    streams = UserStreams()
    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING):
        patch.setattr(sys, "stdout", Broken())
        streams.write("stdout", "one\n")
        streams.write("stdout", "two\n")
        other = io.StringIO()
        patch.setattr(sys, "stdout", other)
        streams.write("stdout", "three\n")
    assert [record.getMessage() for record in caplog.records if "BrokenPipeError" in record.getMessage()] != []
    assert len(caplog.records) == 1
    assert other.getvalue() == "three\n"
