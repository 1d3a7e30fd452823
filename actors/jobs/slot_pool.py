"""SlotPool: the slots that TaskManagers offer to one job, and which subtasks run in them.

A slot that is taken belongs to one slot sharing group and holds at most one subtask of each vertex; it is free again
when its last subtask is released. Subtasks are placed in slots, all of them or none. The JobMaster owns the pool; the
pool sends no message and waits for nothing. Flink: SlotPool, SlotSharingManager, Scheduler.

Subtasks with one co-location constraint run in one slot as long as any of them does, and later on the same
TaskManager, until that is lost. A slot belongs to one constraint at most. Flink: CoLocationConstraint.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple

from ...messages import JobGraph, SlotIndex, SubtaskIndex, TaskManagerId, VertexId
from ..errors import NoResourceAvailable
from ..job_graph import SlotDemand, SubtaskKey, slot_demands, slots_needed, subtasks_of, vertex_of
from .slot_requests import SlotRequest, slot_requests


class SlotId(NamedTuple):
    """One slot of one incarnation of a TaskManager."""

    task_manager_id: TaskManagerId
    slot_index: SlotIndex


class OfferResult(Enum):
    """What became of a TaskManager's offer."""

    ACCEPTED = auto()
    KNOWN = auto()
    """It offered its slots before."""
    LOST = auto()
    """It was taken for dead; a TaskManager that comes back does so under a new id."""


class Locality(Enum):
    """How a placement came about. Flink: Locality."""

    LOCAL = auto()
    """On a TaskManager that was preferred, or where its co-location constraint already was."""
    NON_LOCAL = auto()
    UNCONSTRAINED = auto()
    """Nothing was preferred."""


@dataclass(slots=True)
class _Slot:
    slot_id: SlotId
    group: str | None = None
    """None: the slot is free."""
    members: dict[VertexId, SubtaskIndex] = field(default_factory=dict)
    constraint: str | None = None
    constrained: set[VertexId] = field(default_factory=set)
    """Those of its members that have the constraint."""

    def is_open_for(self, request: SlotRequest) -> bool:
        """Whether the request's group holds this slot, its vertex is not in it yet, and no other constraint is."""
        return (
            self.group == request.group
            and request.subtask.vertex_id not in self.members
            and (request.colocation is None or self.constraint in (None, request.colocation))
        )

    def take(self, request: SlotRequest) -> None:
        self.group = request.group
        self.members[request.subtask.vertex_id] = request.subtask.subtask_index
        if request.colocation is not None:
            self.constraint = request.colocation
            self.constrained.add(request.subtask.vertex_id)

    def give_back(self, vertex_id: VertexId) -> None:
        del self.members[vertex_id]
        self.constrained.discard(vertex_id)
        if not self.constrained:
            self.constraint = None
        if not self.members:
            self.group = None


@dataclass(slots=True)
class _TaskManager:
    task_manager_id: TaskManagerId
    index: int
    slots: tuple[_Slot, ...]

    @property
    def free(self) -> int:
        return sum(slot.group is None for slot in self.slots)

    def holds(self, group: str) -> int:
        """How many slots a group has here."""
        return sum(slot.group == group for slot in self.slots)

    def count_of(self, vertex_id: VertexId) -> int:
        """How many subtasks of one vertex run here."""
        return sum(vertex_id in slot.members for slot in self.slots)


class SlotPool:
    """All slots of one job."""

    def __init__(self) -> None:
        self._task_managers: dict[TaskManagerId, _TaskManager] = {}
        self._lost: set[TaskManagerId] = set()
        self._placed: dict[SubtaskKey, _Slot] = {}
        self._last: dict[SubtaskKey, TaskManagerId] = {}
        """Where each released subtask had run, as long as that TaskManager is there."""
        self._colocated: dict[str, _Slot] = {}
        """The last slot of each co-location constraint, as long as its TaskManager is there."""
        self.localities: Counter[Locality] = Counter()
        """How all placements so far came about."""

    # -- what is offered

    def add(self, task_manager_id: TaskManagerId, index: int, slots: int) -> OfferResult:
        """A TaskManager offers its slots. `index` says which of the job's TaskManagers it is."""
        if task_manager_id in self._lost:
            return OfferResult.LOST
        if task_manager_id in self._task_managers:
            return OfferResult.KNOWN
        offered = tuple(_Slot(SlotId(task_manager_id, SlotIndex(slot))) for slot in range(slots))
        self._task_managers[task_manager_id] = _TaskManager(task_manager_id, index, offered)
        return OfferResult.ACCEPTED

    def lose(self, task_manager_id: TaskManagerId) -> tuple[SubtaskKey, ...]:
        """A TaskManager is gone permanently; returns the subtasks that ran there, which are released."""
        self._lost.add(task_manager_id)
        if self._task_managers.pop(task_manager_id, None) is None:
            return ()
        gone = tuple(s for s, slot in self._placed.items() if slot.slot_id.task_manager_id == task_manager_id)
        self.release(*gone)
        self._last = {subtask: where for subtask, where in self._last.items() if where != task_manager_id}
        self._colocated = {
            name: slot for name, slot in self._colocated.items() if slot.slot_id.task_manager_id != task_manager_id
        }
        return gone

    @property
    def offered(self) -> int:
        return sum(len(task_manager.slots) for task_manager in self._task_managers.values())

    @property
    def free(self) -> int:
        return sum(task_manager.free for task_manager in self._task_managers.values())

    def free_on(self, task_manager_id: TaskManagerId) -> int:
        """Free slots of one TaskManager; 0 when it is unknown."""
        task_manager = self._task_managers.get(task_manager_id)
        return 0 if task_manager is None else task_manager.free

    # -- what runs where

    def slot_of(self, subtask: SubtaskKey) -> SlotId | None:
        slot = self._placed.get(subtask)
        return None if slot is None else slot.slot_id

    def subtasks_in(self, slot_id: SlotId) -> tuple[SubtaskKey, ...]:
        return tuple(subtask for subtask, slot in self._placed.items() if slot.slot_id == slot_id)

    def allocate(self, request: SlotRequest, demands: Mapping[str, SlotDemand] | None = None) -> SlotId | None:
        """Place one subtask; None when no slot takes it. One that is placed already stays where it is.

        A slot with a neighbour that it would best share comes first; then, on a preferred TaskManager before any other,
        a slot that the group holds, and then a free one. `demands` keeps slots for what is placed later: no group takes
        more than it needs, nor the last slots of a TaskManager that others are bound to. So a job that fits always
        fits, in whatever order its regions come back.
        """
        if request.subtask in self._placed:
            return self._placed[request.subtask].slot_id
        choice = min(self._candidates(request, demands or {}), key=lambda pair: _rank(request, *pair), default=None)
        if choice is None:
            return None
        _, slot = choice
        self.localities[self._locality(request, slot)] += 1
        self._take(request, slot)
        return slot.slot_id

    def place(self, graph: JobGraph, vertices: Collection[VertexId]) -> dict[SubtaskKey, SlotId]:
        """Place all subtasks of these vertices, or none and raise NoResourceAvailable.

        Subtasks with the same index of forward-connected vertices share a slot, a vertex's subtasks are spread over
        the TaskManagers, and whatever ran before goes back to the same TaskManager if there is room.
        """
        placed: list[SubtaskKey] = []
        demands = slot_demands(graph)
        for request in slot_requests(graph, vertices, self._last):
            is_new = request.subtask not in self._placed
            if self.allocate(request, demands) is None:
                self.release(*placed)
                raise NoResourceAvailable(self._shortage(graph, request))
            if is_new:
                placed.append(request.subtask)
        wanted = (subtask for vertex_id in vertices for subtask in subtasks_of(vertex_of(graph, vertex_id)))
        return {subtask: self._placed[subtask].slot_id for subtask in wanted}

    def adopt(self, graph: JobGraph, placement: Mapping[SubtaskKey, SlotId]) -> None:
        """All subtasks of the job run already, in these slots, which have been offered."""
        slots = {slot.slot_id: slot for each in self._task_managers.values() for slot in each.slots}
        for request in slot_requests(graph, frozenset(vertex.vertex_id for vertex in graph.vertices), {}):
            self._take(request, slots[placement[request.subtask]])

    def release(self, *subtasks: SubtaskKey) -> None:
        """These subtasks run no more. Releasing one twice is harmless."""
        for subtask in subtasks:
            slot = self._placed.pop(subtask, None)
            if slot is None:
                continue
            self._last[subtask] = slot.slot_id.task_manager_id
            slot.give_back(subtask.vertex_id)

    def _take(self, request: SlotRequest, slot: _Slot) -> None:
        slot.take(request)
        self._placed[request.subtask] = slot
        if request.colocation is not None:
            self._colocated[request.colocation] = slot

    def _locality(self, request: SlotRequest, slot: _Slot) -> Locality:
        if request.colocation in self._colocated or slot.slot_id.task_manager_id in request.preferred:
            return Locality.LOCAL
        return Locality.NON_LOCAL if request.preferred else Locality.UNCONSTRAINED

    def _candidates(
        self, request: SlotRequest, demands: Mapping[str, SlotDemand]
    ) -> Iterator[tuple[_TaskManager, _Slot]]:
        together = None if request.colocation is None else self._colocated.get(request.colocation)
        if together is not None and together.constraint == request.colocation:
            if together.is_open_for(request):
                yield self._task_managers[together.slot_id.task_manager_id], together
            return
        for task_manager in self._task_managers.values():
            if request.required_index not in (None, task_manager.index):
                continue
            if together is not None and together.slot_id.task_manager_id != task_manager.task_manager_id:
                continue
            yield from ((task_manager, slot) for slot in task_manager.slots if slot.is_open_for(request))
            free = next((slot for slot in task_manager.slots if slot.group is None), None)
            if free is not None and self._may_open(request.group, task_manager, demands):
                yield task_manager, free

    def _may_open(self, group: str, task_manager: _TaskManager, demands: Mapping[str, SlotDemand]) -> bool:
        """Whether a group may take a free slot here."""
        reserved_for = [
            other
            for other, demand in demands.items()
            if task_manager.index in demand.bound_to and not task_manager.holds(other)
        ]
        if group in reserved_for or group not in demands:
            return True
        return task_manager.free > len(reserved_for) and self._spares(group, demands[group]) < demands[group].spare

    def _spares(self, group: str, demand: SlotDemand) -> int:
        """How many slots a group holds beside those that it must have on the TaskManagers it is bound to."""
        held = [(task_manager.index, task_manager.holds(group)) for task_manager in self._task_managers.values()]
        return sum(slots - (slots > 0 and index in demand.bound_to) for index, slots in held)

    def _shortage(self, graph: JobGraph, request: SlotRequest) -> str:
        offers = sorted(self._task_managers.values(), key=lambda task_manager: task_manager.index)
        by_whom = ", ".join(f"{len(tm.slots)} by TaskManager {tm.index} ({tm.task_manager_id})" for tm in offers)
        vertex_id, index = request.subtask
        where = "" if request.required_index is None else f", which runs only on TaskManager {request.required_index}"
        return (
            f"job {graph.name!r} needs {slots_needed(graph)} slots, {self.offered} are offered"
            f"{f' ({by_whom})' if by_whom else ''}, {self.free} of them free: "
            f"no slot for subtask {index} of vertex {vertex_id!r}{where}"
        )


def _rank(request: SlotRequest, task_manager: _TaskManager, slot: _Slot) -> tuple[int | bool, ...]:
    """What makes a slot the better choice, the most important first; the least rank wins."""
    shares = any(SubtaskKey(*member) in request.near for member in slot.members.items())
    preferred, here = request.preferred, task_manager.task_manager_id
    return (
        not shares,
        here not in preferred,
        slot.group is None,
        preferred.index(here) if here in preferred else 0,
        task_manager.count_of(request.subtask.vertex_id),
        len(task_manager.slots) - task_manager.free,
        task_manager.index,
        slot.slot_id.slot_index,
    )
