"""PacedWorld: time keeps to the clock on the wall, but for the time that code takes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from understudy.runtime.simulation.debugging.paced_world import CATCH_UP_MS, PacedWorld


class Wall:
    """A clock on the wall, which moves when somebody naps, or a test says so."""

    def __init__(self) -> None:
        self.now_ms = 1_000_000.0
        self.naps: list[float] = []
        self.knocks: list[tuple[float, Callable[[], object]]] = []
        """After how much of the next nap something comes from outside."""
        self.world = PacedWorld(lambda: self.now_ms, self._nap)
        self.happened: list[tuple[str, float, float]] = []

    def _nap(self, seconds: float) -> bool:
        if self.knocks:
            after_ms, function = self.knocks.pop(0)
            self.now_ms += after_ms
            self.world.from_outside(function)
            return True
        self.now_ms += seconds * 1000
        self.naps.append(round(seconds * 1000, 6))
        return False

    def note(self, what: str, takes_ms: float = 0.0) -> None:
        self.happened.append((what, self.world.now_ms, self.now_ms - 1_000_000))
        self.now_ms += takes_ms

    def at(self, when_ms: float, what: str, takes_ms: float = 0.0) -> None:
        self.world.at(when_ms, None, self.note, what, takes_ms)


@pytest.fixture
def wall() -> Wall:
    return Wall()


def test_it_waits_until_an_event_is_due(wall: Wall) -> None:
    wall.at(100, "one")
    wall.at(300, "two")
    wall.world.run_for(1000)
    assert wall.happened == [("one", 100, 100), ("two", 300, 300)]
    assert wall.world.now_ms == 1000
    assert wall.naps == [100, 200, 700]


def test_code_takes_no_time_and_nothing_is_made_up_for(wall: Wall) -> None:
    wall.at(100, "breakpoint", takes_ms=60_000)
    wall.at(200, "next")
    wall.at(300, "last")
    wall.world.run_for(300)
    assert wall.happened == [("breakpoint", 100, 100), ("next", 200, 60_100), ("last", 300, 60_200)]


def test_short_waits_are_put_together(wall: Wall) -> None:
    for step in range(100):
        wall.at(step, "step")
    wall.world.run_for(99)
    assert len(wall.naps) <= 20
    assert sum(wall.naps) == pytest.approx(99, abs=5)


def test_what_comes_from_outside_ends_a_nap(wall: Wall) -> None:
    wall.at(100, "later")
    wall.knocks.append((30, lambda: wall.note("from outside")))
    wall.world.run_for(100)
    assert wall.happened == [("from outside", 30, 30), ("later", 100, 100)]


def test_who_waits_for_what_is_so_waits_not_at_all(wall: Wall) -> None:
    wall.at(100, "never")
    assert wall.world.run_until(lambda: True, 1000)
    assert (wall.happened, wall.naps) == ([], [])


@pytest.mark.parametrize(("outside_ms", "made_up_ms"), [(0, 0), (250, 250), (3_600_000, CATCH_UP_MS)])
def test_time_outside_is_made_up_for_up_to_a_limit(wall: Wall, outside_ms: float, made_up_ms: float) -> None:
    wall.now_ms += outside_ms
    wall.world.catch_up()
    assert wall.world.now_ms == made_up_ms
    assert wall.naps == []


def test_nothing_is_made_up_for_in_the_middle_of_something(wall: Wall) -> None:
    process: Any = wall.world.process("one")
    wall.world.at(10, process, wall.world.catch_up)
    wall.at(10, "after")
    wall.world.run_for(10)
    assert wall.world.now_ms == 10


def test_wall_clocks_are_right_and_another_thread_wakes_it() -> None:
    world, seen = PacedWorld(), list[int]()
    assert abs(world.process("one").clock.wall_ms() - time.time() * 1000) < 60_000
    thread = threading.Thread(target=lambda: world.from_outside(lambda: seen.append(threading.get_ident())))
    world.after(1, None, thread.start)
    assert world.run_until(lambda: bool(seen), 60_000)
    assert seen == [threading.get_ident()]
    thread.join()
