"""What is logged when the clock of a TaskManager's machine is set."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from understudy.actors.tasks.clock_jumps import ClockJumps


@dataclass
class HandSet:
    now: float = 0.0
    wall: int = 1_000_000_000

    def now_ms(self) -> float:
        return self.now

    def wall_ms(self) -> int:
        return self.wall

    def pass_by(self, ms: int, jump_ms: int = 0) -> None:
        self.now += ms
        self.wall += ms + jump_ms


def test_a_jump_is_logged_once_with_what_follows(caplog: pytest.LogCaptureFixture) -> None:
    clock, jumps = HandSet(), ClockJumps()
    for jump_ms in (0, 0, -3_600_000, 0, 500, 3_600_000, 0):
        clock.pass_by(1_000, jump_ms)
        jumps.look(clock)
    back, forward = caplog.messages
    assert back.startswith("the clock of this machine went back by 3600 s: timers of processing time")
    assert forward.startswith("the clock of this machine went forward by 3600 s: timers of processing time")


def test_a_long_pause_between_looks_is_no_jump(caplog: pytest.LogCaptureFixture) -> None:
    clock, jumps = HandSet(), ClockJumps()
    jumps.look(clock)
    clock.pass_by(3_600_000)
    jumps.look(clock)
    assert caplog.messages == []
