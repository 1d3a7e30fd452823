"""StandstillWatch: event time that stands although records come is noticed once, and its end."""

from __future__ import annotations

from understudy.actors.tasks.standstill_watch import Standstill, StandstillWatch


def test_it_is_said_once_and_so_is_its_end() -> None:
    watch = StandstillWatch(1_000)
    assert watch.look(0, 5, 10) is None
    assert watch.look(500, 5, 20) is None
    assert watch.look(1_499, 5, 30) is None
    assert watch.look(1_500, 5, 40) is Standstill.BEGINS
    assert watch.stood_ms == 1_000
    assert watch.look(9_000, 5, 50) is None
    assert watch.look(9_500, 6, 60) is Standstill.ENDS
    assert watch.look(9_600, 7, 70) is None


def test_without_records_nothing_is_wrong() -> None:
    watch = StandstillWatch(1_000)
    watch.look(0, 5, 10)
    assert watch.look(60_000, 5, 10) is None
    assert watch.look(60_000, 5, 11) is None, "the first record after a pause: its watermark may be on its way"
    assert watch.look(61_000, 5, 12) is Standstill.BEGINS


def test_a_watermark_that_moves_starts_the_time_again() -> None:
    watch = StandstillWatch(1_000)
    for second in range(60):
        assert watch.look(second * 900.0, second, second) is None
