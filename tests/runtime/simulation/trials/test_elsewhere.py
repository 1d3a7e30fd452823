"""The other process has another day, whatever the time here: a date of today in the output is always found."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from understudy.runtime.simulation.trials.other_interpreter import elsewhere

pytestmark = pytest.mark.every_run

ZONES = ["UTC0", "<+1245>-12:45", "<-11>11", "<+0530>-5:30", "<-0330>3:30", "<+14>-14", "<-12>12"]


@pytest.fixture
def zones(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    yield monkeypatch
    monkeypatch.undo()
    time.tzset()


def local(zones: pytest.MonkeyPatch, zone: str, seconds: float) -> time.struct_time:
    zones.setenv("TZ", zone)
    time.tzset()
    return time.localtime(seconds)


@pytest.mark.parametrize("zone", ZONES)
def test_the_day_and_the_hour_are_others_at_any_time(zones: pytest.MonkeyPatch, zone: str) -> None:
    for seconds in range(1_700_000_000, 1_700_000_000 + 86_400, 1_700):
        here = local(zones, zone, seconds)
        there = local(zones, elsewhere(here), seconds)
        assert there.tm_yday != here.tm_yday
        assert (there.tm_hour, there.tm_min) != (here.tm_hour, here.tm_min)
        assert abs(there.tm_gmtoff - here.tm_gmtoff) >= (12 * 60 + 45) * 60
