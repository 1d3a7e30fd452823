"""Unmetered: switches off, in a TaskManager's process, what a job reports about itself, and on again.

A job has no such setting: it cannot be run blind. So the methods are exchanged, in the process in which this is called:
heartbeats have no figures, tasks count nothing and read no clock for it. A user's own counters are the user's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from understudy.actors.actor import Step
from understudy.actors.tasks.task import Task
from understudy.actors.tasks.task_counters import TaskCounters
from understudy.actors.tasks.task_manager import TaskManager


def _nothing(*_: Any) -> None:
    pass


def _bare_step(task: Any) -> Step:
    """`Task._step` without its counters."""
    parts = task._running_parts()
    now_ms = task.context.clock.now_ms()
    checkpoints = task._checkpoints
    if checkpoints is not None and checkpoints.unaligned is not None:
        checkpoints.read_ahead()
    due_ms = parts.outputs.send_due(now_ms)
    if not parts.outputs.is_available():
        task.idle_ms = due_ms
        task._own_time().stands_still()
        return Step.IDLE
    task._own_time().goes_on(now_ms, 0)
    worked = is_more = task._do_next(parts)
    if worked and parts.outputs.keeps_any and parts.outputs.is_available():
        is_more = task._do_next(parts)
    if not is_more:
        task._rest(parts)
    return Step.BUSY if is_more else Step.IDLE


def _uncounted(task: Any, batch: Any, input_index: int, start: int) -> None:
    """`Task._process` without its counters."""
    task._running_parts().chain.process(batch, input_index, start)


_BARE: tuple[tuple[type, str, Callable[..., Any]], ...] = (
    (Task, "_step", _bare_step),
    (Task, "_process", _uncounted),
    (TaskCounters, "held_back", _nothing),
    (TaskManager, "_next_metrics", lambda _: ()),
)
_METERED = tuple((cls, name, getattr(cls, name)) for cls, name, _ in _BARE)


class Unmetered:
    """The switch of this process."""

    is_off = False
    """Whether metrics are switched off now."""

    @classmethod
    def turn(cls, is_off: bool) -> None:
        """Until the next call."""
        cls.is_off = is_off
        for owner, name, function in _BARE if is_off else _METERED:
            setattr(owner, name, function)
