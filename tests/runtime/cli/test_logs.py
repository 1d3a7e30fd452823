"""`understudy logs`: a line is the user's text, and text alone."""

from __future__ import annotations

from understudy.messages import JobId, LoggedRecord, LogRecords, TaskManagerId
from understudy.runtime.cli.logs import _line


def _shown(text: str, error: str = "") -> str:
    record = LoggedRecord("x", 30, 0.0, text, error=error)
    return _line(LogRecords(TaskManagerId("tm-0"), JobId("job-1"), "prices", 1, (record,)), record)


def test_a_record_cannot_steer_the_terminal_of_its_reader() -> None:
    """CWE-150: clear the screen, set the title, hide what stands before."""
    shown = _shown("a\x1b[2J\rb\x9b1m\x07", "Traceback\nOops: \x1b]0;title\x07")
    assert shown.partition(" x: ")[2] == "a\\x1b[2J\\rb\\x9b1m\\x07\n    Traceback\n    Oops: \\x1b]0;title\\x07"


def test_text_of_any_language_stays() -> None:
    assert _shown("Zürich\t\u3000東京\nnext").endswith("x: Zürich\t\u3000東京\nnext")
