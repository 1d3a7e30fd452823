"""A run of timers: of the changes of one timer the last one counts, however far apart the times are."""

from __future__ import annotations

import numpy as np
import pytest

from understudy.state.columnar.timer_runs import TimerRun, run_of


@pytest.mark.parametrize("last_ms", [1, 2**40, 2**55, 2**62])
def test_the_last_change_of_a_timer_counts(last_ms: int) -> None:
    """Time, slot and row fit into one number, or time and slot alone, or nothing does."""
    rows = 4096
    times = np.where(np.arange(rows) % 3, last_ms, 0)
    slots = np.arange(rows) % 4
    live = np.arange(rows) >= rows - 12
    run = run_of(TimerRun(times, slots, live))
    assert list(zip(run.times.tolist(), run.slots.tolist(), strict=True)) == [
        (time_ms, slot) for time_ms in (0, last_ms) for slot in range(4)
    ]
    assert run.live.all()
