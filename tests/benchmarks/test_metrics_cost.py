"""What metrics cost: a slice with them is compared with those beside it, and the switch turns back what it did."""

from __future__ import annotations

import pytest

from benchmarks.metrics import shares
from benchmarks.unmetered import Unmetered
from understudy.actors.tasks.task_loop import TaskLoop
from understudy.actors.tasks.task_manager import TaskManager


def test_a_slice_with_metrics_is_compared_with_the_two_beside_it_without() -> None:
    assert shares([10.0, 10.0, 11.0, 12.0, 12.0, 12.0]) == pytest.approx([0, 0])
    assert shares([10.0, 10.0, 11.0, 10.0]) == pytest.approx([10])
    assert shares([10.0, 10.0]) == []


def test_metrics_are_switched_off_and_on_again() -> None:
    metered = TaskLoop.step, TaskLoop._process, TaskManager._next_metrics
    try:
        Unmetered.turn(is_off=True)
        off = TaskLoop.step, TaskLoop._process, TaskManager._next_metrics
    finally:
        Unmetered.turn(is_off=False)
    assert not set(off) & set(metered)
    assert (TaskLoop.step, TaskLoop._process, TaskManager._next_metrics) == metered
