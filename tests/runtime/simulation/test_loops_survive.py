"""Jobs with loops commit the same under faults, restores and rescales as without them, and what Python says it is."""

from __future__ import annotations

import pytest

from understudy.testing import assert_at_least_once, assert_exactly_once

from .looping_jobs import JOBS, keyed

BEHIND_FAULTS = 3
"""Histories of each job."""


@pytest.mark.parametrize("name", ["stream", "rounds", "delta"])
def test_a_loop_survives_a_history(name: str) -> None:
    build, expected = JOBS[name]
    assert "survived 1 history" in str(assert_exactly_once(build, histories=1, expected=expected))


@pytest.mark.slow
@pytest.mark.parametrize("name", JOBS)
def test_a_loop_survives_faults_and_rescales(name: str) -> None:
    build, expected = JOBS[name]
    survived = assert_exactly_once(build, histories=BEHIND_FAULTS, expected=expected, slots_per_task_manager=2)
    assert f"survived {BEHIND_FAULTS} histories" in str(survived)


@pytest.mark.slow
def test_a_loop_at_least_once_loses_nothing() -> None:
    """Some records are counted twice; what comes out of the loop itself is compared."""
    survived = assert_at_least_once(lambda: keyed(mode="at-least-once"), histories=BEHIND_FAULTS, sink="ends")
    assert f"survived {BEHIND_FAULTS} histories" in str(survived)
