"""Orders together: those about checkpoints to the tasks of one TaskManager go in one message.

A checkpoint of a thousand subtasks is two or three thousand orders, and few TaskManagers: a message for each would be
most of the JobManager's work.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...messages import CheckpointOrder, Message, OrderTogether, TaskManagerId
from .job_effects import JobEffect, Tell


def together(effects: Iterable[JobEffect]) -> Iterator[JobEffect]:
    """The same effects, with orders that stand side by side put together by TaskManager. No message overtakes another
    one to the same TaskManager, and nothing else an order.
    """
    waiting: dict[TaskManagerId, list[CheckpointOrder]] = {}
    for effect in effects:
        match effect:
            case Tell(task_manager_id, message) if isinstance(message, CheckpointOrder):
                waiting.setdefault(task_manager_id, []).append(message)
            case _:
                yield from _told(waiting)
                waiting = {}
                yield effect
    yield from _told(waiting)


def _told(waiting: dict[TaskManagerId, list[CheckpointOrder]]) -> Iterator[Tell]:
    for task_manager_id, orders in waiting.items():
        message: Message = orders[0] if len(orders) == 1 else OrderTogether(tuple(orders))
        yield Tell(task_manager_id, message)
