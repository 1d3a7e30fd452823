"""Term: how long a leader is sure that it leads."""

from __future__ import annotations

from understudy.messages import LeaderSessionId
from understudy.runtime.high_availability.term import Term


def test_an_older_answer_that_comes_later_shortens_nothing() -> None:
    clock = [0.0]
    term = Term(LeaderSessionId("1"), 9.0, 0.0, lambda: clock[0], lambda: clock[0])
    term.renew(5.0)
    term.renew(1.0)
    clock[0] = 10.0
    assert term.is_sure
    clock[0] = 11.5
    assert not term.is_sure
