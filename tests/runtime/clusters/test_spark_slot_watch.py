"""SlotWatch: which TaskManagers it still waits for."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from understudy.messages import JobId, TaskManagerAwaited
from understudy.runtime.clusters import spark_slot_watch
from understudy.runtime.clusters.spark_slot_watch import SlotWatch


@pytest.fixture
def told() -> list[TaskManagerAwaited]:
    return []


@pytest.fixture
def watch(told: list[TaskManagerAwaited]) -> Any:
    """Of a job of two, without its thread."""
    launch: Any = SimpleNamespace(job_id=JobId("job"), job_name="flights")
    spark: Any = SimpleNamespace(sparkContext=None)
    found: Any = SlotWatch(spark, told.append, launch, "group", 2, slot_timeout_ms=3000)
    found._is_watched = True
    return found


def test_one_that_was_started_again_during_a_look_is_waited_for(watch: Any) -> None:
    watch.started(0, threading.Thread())  # has ended: it is not alive
    looked_at = dict(watch._waiting)
    watch.started(0, threading.Thread())
    assert watch._look(looked_at) == ""
    assert list(watch._waiting) == [0]
    assert watch._look(dict(watch._waiting)) == ""
    assert not watch._waiting


def test_those_without_a_slot_are_told_of_and_those_that_run_are_not(
    watch: Any, told: list[TaskManagerAwaited], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(spark_slot_watch, "runs", lambda _, group: group == "group-1")
    monkeypatch.setattr(spark_slot_watch, "why_it_waits", lambda _, *counts: asked.append(counts) or "no executor")
    alive: Any = SimpleNamespace(is_alive=lambda: True)
    watch.started(0, alive)
    watch.started(1, alive)
    assert watch._look(dict(watch._waiting)) == "no executor"
    assert (asked, list(watch._waiting)) == ([(2, 1)], [0])
    assert told == [TaskManagerAwaited(JobId("job"), 0, "no executor")]
