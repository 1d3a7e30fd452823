"""Unmetered: switches off, in a TaskManager's process, what a job reports about itself, and on again.

A job has no such setting: it cannot be run blind. So the methods are exchanged, in the process in which this is called:
heartbeats have no figures, tasks count nothing and read no clock for it. A user's own counters are the user's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from understudy.actors.actor import Step
from understudy.actors.tasks.task_counters import TaskCounters
from understudy.actors.tasks.task_loop import TaskLoop
from understudy.actors.tasks.task_manager import TaskManager


def _nothing(*_: Any) -> None:
    pass


def _bare_step(loop: Any) -> Step:
    """`TaskLoop.step` without its counters."""
    parts = loop._parts
    now_ms = loop._clock.now_ms()
    if loop.checkpoints.unaligned is not None:
        loop.checkpoints.read_ahead()
    due_ms = parts.outputs.send_due(now_ms)
    if not parts.outputs.is_available():
        loop.idle_ms = due_ms
        loop.time.stands_still()
        return Step.IDLE
    loop.time.goes_on(now_ms, 0)
    worked = is_more = loop._do_next()
    if worked and parts.outputs.keeps_any and parts.outputs.is_available():
        is_more = loop._do_next()
    if not is_more:
        loop._rest()
        if loop._is_final and loop._finish():
            return Step.DONE
    return Step.BUSY if is_more else Step.IDLE


def _uncounted(loop: Any, batch: Any, input_index: int, start: int) -> None:
    """`TaskLoop._process` without its counters."""
    loop._parts.chain.process(batch, input_index, start)


_BARE: tuple[tuple[type, str, Callable[..., Any]], ...] = (
    (TaskLoop, "step", _bare_step),
    (TaskLoop, "_process", _uncounted),
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
