"""SlotWatch: which TaskManagers it still waits for."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from understudy.messages import JobId, TaskManagerAwaited
from understudy.runtime.clusters import spark_slot_watch
from understudy.runtime.clusters.spark_slot_watch import SlotWatch
from understudy.runtime.clusters.spark_slots import Shortage


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
    assert watch._look(looked_at) is None
    assert list(watch._waiting) == [0]
    assert watch._look(dict(watch._waiting)) is None
    assert not watch._waiting


def test_those_without_a_slot_are_told_of_and_those_that_run_are_not(
    watch: Any, told: list[TaskManagerAwaited], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(spark_slot_watch, "runs", lambda _, group: group == "group-1")
    no_executor = Shortage("no executor", "no executor")
    monkeypatch.setattr(spark_slot_watch, "shortage", lambda _, *counts: asked.append(counts) or no_executor)
    alive: Any = SimpleNamespace(is_alive=lambda: True)
    watch.started(0, alive)
    watch.started(1, alive)
    assert watch._look(dict(watch._waiting)) is no_executor
    assert (asked, list(watch._waiting)) == ([(2, 1)], [0])
    assert told == [TaskManagerAwaited(JobId("job"), 0, "no executor")]


def test_it_warns_again_when_something_else_is_to_be_done_and_not_when_others_have_more_or_fewer_tasks(
    watch: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    looks = iter(
        [*(Shortage(f"{taken} of 4 are taken", "4 slots") for taken in (4, 3, 4, 3, 4)), Shortage("none", "no slots")]
    )
    left = iter([False] * 6 + [True])
    watch._over = SimpleNamespace(wait=lambda _: next(left), is_set=lambda: False)
    monkeypatch.setattr(spark_slot_watch, "runs", lambda *_: False)
    monkeypatch.setattr(spark_slot_watch, "shortage", lambda *_: next(looks))
    watch.started(0, SimpleNamespace(is_alive=lambda: True))
    with caplog.at_level("WARNING", logger="understudy.job"):
        watch._watch()
    assert caplog.messages == [f"job 'flights' waits for Spark: {why}" for why in ("4 of 4 are taken", "none")]
