"""SlotTasks: the tasks that share a slot, which is a thread, and which of them take what another one emits.

The TaskManager adds them one by one. Who is behind a task is found when the task asks, on its own thread, so that the
deployment of hundreds looks at each of them once.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import NamedTuple, Protocol

from ...messages import ExecutionState, TaskDeployment
from .task_counters import TaskCounters

_ROOM = 16
"""This many are kept before those that are over are looked for."""


class Attempt(Protocol):
    """What is asked of a task."""

    @property
    def state(self) -> ExecutionState: ...


def ends_with(task: Attempt) -> Callable[[], bool]:
    """Says whether the task has ended, and does not keep it."""
    left = weakref.ref(task)
    return lambda: (there := left()) is None or there.state.is_terminal


class _Member(NamedTuple):
    """Without its deployment, which may hold all of the state that it began with."""

    counters: TaskCounters
    inputs: frozenset[int]
    outputs: tuple[int, ...]
    """Edges."""
    is_over: Callable[[], bool]


class SlotTasks:
    """See the module."""

    def __init__(self) -> None:
        self.changes = 0
        self._members: dict[int, _Member] = {}
        """By the identity of their counters."""
        self._takers: dict[int, list[_Member]] = {}
        """By the edge that they take from."""
        self._room = _ROOM

    def __len__(self) -> int:
        return len(self._members)

    def add(self, deployment: TaskDeployment, counters: TaskCounters, is_over: Callable[[], bool]) -> None:
        """An attempt begins; `is_over` says when it has ended."""
        if len(self._members) >= self._room:
            self._forget()
        inputs = frozenset(each.edge for each in deployment.inputs)
        outputs = tuple(each.edge for each in deployment.outputs)
        self._enter(_Member(counters, inputs, outputs, is_over))
        counters.neighbours = self
        self.changes += 1

    def behind(self, counters: TaskCounters) -> tuple[TaskCounters, ...]:
        """See Neighbours. May be asked by any thread, while others are added: of these it need not know."""
        first, takers = self._members.get(id(counters)), self._takers
        found: dict[int, TaskCounters] = {}
        left = [] if first is None else [first]
        asked: set[int] = set()
        while left:
            for edge in left.pop().outputs:
                if edge in asked:
                    continue
                asked.add(edge)
                for each in takers.get(edge, ()):
                    if id(each.counters) not in found and not each.is_over():
                        found[id(each.counters)] = each.counters
                        left.append(each)
        found.pop(id(counters), None)
        return tuple(found.values())

    def _enter(self, member: _Member) -> None:
        self._members[id(member.counters)] = member
        for edge in member.inputs:
            self._takers.setdefault(edge, []).append(member)

    def _forget(self) -> None:
        """Those that are over; whoever is asked meanwhile goes by what there was."""
        kept = [member for member in self._members.values() if not member.is_over()]
        self._members, self._takers = {}, {}
        for member in kept:
            self._enter(member)
        self._room = _ROOM + 2 * len(kept)
