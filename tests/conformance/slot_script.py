"""One scenario of scheduling.json: its steps as requests to a SlotPool, and what the pool says as facts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from understudy.actors.job_graph import SubtaskKey
from understudy.actors.jobs.slot_pool import Locality, SlotId, SlotPool
from understudy.actors.jobs.slot_requests import SlotRequest
from understudy.messages import SubtaskIndex, TaskManagerId, VertexId

from .scenario import REMARKS, Difference, UnknownWord, Words, compare, said

_LOCALITIES = {
    "assignments_local": Locality.LOCAL,
    "assignments_non_local": Locality.NON_LOCAL,
    "assignments_unconstrained": Locality.UNCONSTRAINED,
}


class SlotScript:
    """A pool, and who was placed in it under which name.

    Each scheduling has a subtask of its own, whatever its index in the file: a scenario may schedule the same one again
    and release the first later.
    """

    def __init__(self) -> None:
        self._pool = SlotPool()
        self._workers: list[str] = []
        self._names: dict[str, tuple[SubtaskKey, SlotId]] = {}
        self._groups: dict[SubtaskKey, str | None] = {}
        """None: exclusive."""
        self._checks: dict[str, Callable[[str, Any], Iterator[Difference]]] = {
            "free_slots": self._check_free_slots,
            "free_slots_on": self._check_free_slots_on,
            "slots_held_by_group": self._check_slots_held,
            "group_slots_open_for": self._check_open_slots,
            "all_on_different_slots": self._check_different_slots,
            "same_slot": self._check_same_slot,
            "same_worker": self._check_same_worker,
            "worker_of": self._check_worker_of,
            "tasks_in_slot_of": self._check_tasks_in_slot,
        }

    def play(self, number: int, step: Words) -> Iterator[Difference]:
        where, step = f"step {number}", said(step)
        match step:
            case {"add_worker": worker, "slots": slots}:
                self._pool.add(TaskManagerId(worker), len(self._workers), slots)
                self._workers.append(worker)
            case {"schedule": _}:
                yield from self._schedule(where, step)
            case {"release": str(name)}:
                self._pool.release(self._placement(name)[0])
            case {"release": names}:
                self._pool.release(*(self._placement(name)[0] for name in names))
            case {"lose": worker} | {"lose_worker": worker} | {"remove_worker": worker}:
                self._pool.lose(TaskManagerId(worker))
            case {"check": checks}:
                for name in checks.keys() - REMARKS:
                    wanted = checks[name]
                    yield from self._check(f"{where}: {name}", name, wanted)
            case _:
                raise UnknownWord(f"found the step {step}")

    def _placement(self, name: str) -> tuple[SubtaskKey, SlotId]:
        if name not in self._names:
            raise UnknownWord(f"nothing was placed as {name!r}")
        return self._names[name]

    def _schedule(self, where: str, step: Words) -> Iterator[Difference]:
        serial = len(self._groups)
        subtask = SubtaskKey(VertexId(step["schedule"][0]), SubtaskIndex(serial))
        self._groups[subtask] = step.get("group")
        request = SlotRequest(
            subtask,
            group=step.get("group", f"exclusive {serial}"),
            preferred=tuple(TaskManagerId(self._worker(name)) for name in step.get("prefer", [])),
            colocation=step.get("colocate"),
        )
        slot = self._pool.allocate(request)
        yield from compare(f"{where}: schedule", step.get("expect", "ok"), "no_resource" if slot is None else "ok")
        if slot is not None:
            self._names[step.get("as", f"unnamed {serial}")] = (subtask, slot)

    def _worker(self, name: str) -> str:
        """A worker by its name, or as some scenarios describe it: by where a task was placed."""
        if name in self._workers:
            return name
        if name.startswith("worker of "):
            return self._placement(name.removeprefix("worker of "))[1].task_manager_id
        used = self._placement("s1")[1].task_manager_id
        others = [worker for worker in self._workers if worker != used]
        described = {"lowest-numbered worker other than that of s1": others[:1], "the remaining worker": others[1:2]}
        if not described.get(name):
            raise UnknownWord(f"found the worker {name!r}; there are {', '.join(self._workers)}")
        return described[name][0]

    # ------------------------------------------------------------------------------------------------ checks

    def _check(self, where: str, name: str, wanted: Any) -> Iterator[Difference]:
        if name in _LOCALITIES:
            return compare(where, wanted, self._pool.localities[_LOCALITIES[name]])
        if name not in self._checks:
            raise UnknownWord(f"found the check {name!r}")
        return self._checks[name](where, wanted)

    def _slots_of_groups(self, group: str | None = None) -> set[SlotId]:
        """Slots held by this slot sharing group, or by any."""
        members = (subtask for subtask, of in self._groups.items() if of is not None and (group is None or of == group))
        return {slot for subtask in members if (slot := self._pool.slot_of(subtask)) is not None}

    def _check_free_slots(self, where: str, wanted: int) -> Iterator[Difference]:
        yield from compare(where, wanted, self._pool.free)

    def _check_free_slots_on(self, where: str, wanted: dict[str, int]) -> Iterator[Difference]:
        yield from compare(where, wanted, {name: self._pool.free_on(TaskManagerId(name)) for name in wanted})

    def _check_slots_held(self, where: str, wanted: int | dict[str, int]) -> Iterator[Difference]:
        if isinstance(wanted, dict):
            yield from compare(where, wanted, {group: len(self._slots_of_groups(group)) for group in wanted})
        else:
            yield from compare(where, wanted, len(self._slots_of_groups()))

    def _check_open_slots(self, where: str, wanted: dict[str, int]) -> Iterator[Difference]:
        members = [{each.vertex_id for each in self._pool.subtasks_in(slot)} for slot in self._slots_of_groups()]
        found = {name: sum(VertexId(name) not in vertices for vertices in members) for name in wanted}
        yield from compare(where, wanted, found)

    def _check_different_slots(self, where: str, names: list[str]) -> Iterator[Difference]:
        yield from compare(where, len(names), len({self._placement(name)[1] for name in names}))

    def _check_same_slot(self, where: str, names: list[str]) -> Iterator[Difference]:
        yield from compare(where, 1, len({self._placement(name)[1] for name in names}))

    def _check_same_worker(self, where: str, names: list[str]) -> Iterator[Difference]:
        yield from compare(where, 1, len({self._placement(name)[1].task_manager_id for name in names}))

    def _check_worker_of(self, where: str, wanted: dict[str, str]) -> Iterator[Difference]:
        expected = {name: self._worker(worker) for name, worker in wanted.items()}
        yield from compare(where, expected, {name: self._placement(name)[1].task_manager_id for name in wanted})

    def _check_tasks_in_slot(self, where: str, wanted: dict[str, int]) -> Iterator[Difference]:
        found = {name: len(self._pool.subtasks_in(self._placement(name)[1])) for name in wanted}
        yield from compare(where, wanted, found)
