"""SlotPool against Flink's scheduler scenarios, and the properties of all-or-nothing placement.

Left out of scheduling.json: the scenarios with co-location constraints (a JobGraph has none), queued requests served
by threads, blocking results, and pointwise wiring between unequal parallelisms (a forward edge joins equal ones).
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Collection
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.actors.errors import NoResourceAvailable
from understudy.actors.job_graph import SubtaskKey, all_subtasks, regions, slot_demands, slots_needed
from understudy.actors.slot_pool import OfferResult, SlotId, SlotPool, SlotRequest
from understudy.messages import JobGraph, Partitioning, SlotIndex, SubtaskIndex, TaskManagerId, VertexId

from .graphs import edge, graph, source, vertex

VECTORS = json.loads((Path(__file__).parent.parent / "vectors" / "scheduling.json").read_text())
SCENARIOS = [s for s in VECTORS["scenarios"] if not any("colocate" in step for step in s["steps"])]
FORWARD = Partitioning.FORWARD


def cluster(*slots: int) -> SlotPool:
    """A pool with TaskManagers tm-0, tm-1, … that offer so many slots."""
    pool = SlotPool()
    for index, offered in enumerate(slots):
        assert pool.add(TaskManagerId(f"tm-{index}"), index, offered) is OfferResult.ACCEPTED
    return pool


def key(vertex_id: str, index: int) -> SubtaskKey:
    return SubtaskKey(VertexId(vertex_id), SubtaskIndex(index))


def vertices_of(job: JobGraph) -> list[VertexId]:
    return [vertex.vertex_id for vertex in job.vertices]


class Script:
    """Plays the steps of one scenario of scheduling.json."""

    def __init__(self) -> None:
        self.pool = SlotPool()
        self.workers: list[str] = []
        self.names: dict[str, tuple[SubtaskKey, SlotId]] = {}
        self.groups: dict[SubtaskKey, str] = {}
        self.locality: Counter[str] = Counter()
        self.numbers = count(1000)

    def play(self, step: dict[str, Any]) -> None:
        if "add_worker" in step:
            self.pool.add(TaskManagerId(step["add_worker"]), len(self.workers), step["slots"])
            self.workers.append(step["add_worker"])
        elif "schedule" in step:
            self.schedule(step)
        elif "release" in step:
            self.pool.release(self.names[step["release"]][0])
        else:
            ((check, wanted),) = step["check"].items()
            if check.startswith("assignments_"):
                assert self.locality[check] == wanted
            else:
                getattr(self, f"check_{check}")(wanted)

    def schedule(self, step: dict[str, Any]) -> None:
        vertex_id, index = step["schedule"]
        subtask = key(vertex_id, next(self.numbers) if index is None else index)
        group = step.get("group", f"exclusive {vertex_id} {subtask.subtask_index}")
        preferred = frozenset(TaskManagerId(self.worker(name)) for name in step.get("prefer", []))
        slot = self.pool.allocate(SlotRequest(subtask, group, preferred=preferred))
        assert ("no_resource" if slot is None else "ok") == step["expect"]
        if slot is not None:
            self.groups[subtask] = group
            self.names[step.get("as", str(subtask))] = (subtask, slot)
            where = "unconstrained" if not preferred else "local" if slot.task_manager_id in preferred else "non_local"
            self.locality[f"assignments_{where}"] += 1

    def worker(self, name: str) -> str:
        if name in self.workers:
            return name
        first = self.names["s1"][1].task_manager_id
        others = [worker for worker in self.workers if worker != first]
        return {
            "worker of s1": first,
            "lowest-numbered worker other than that of s1": others[0],
            "the remaining worker": others[1],
        }[name]

    def slots_of_group(self) -> set[SlotId]:
        placed = {subtask: self.pool.slot_of(subtask) for subtask, group in self.groups.items() if group == "g"}
        return {slot for slot in placed.values() if slot is not None}

    def check_free_slots(self, wanted: int) -> None:
        assert self.pool.free == wanted

    def check_free_slots_on(self, wanted: dict[str, int]) -> None:
        assert {worker: self.pool.free_on(TaskManagerId(worker)) for worker in wanted} == wanted

    def check_slots_held_by_group(self, wanted: int) -> None:
        assert len(self.slots_of_group()) == wanted

    def check_group_slots_open_for(self, wanted: dict[str, int]) -> None:
        for vertex_id, open_slots in wanted.items():
            members = [{s.vertex_id for s in self.pool.subtasks_in(slot)} for slot in self.slots_of_group()]
            assert sum(vertex_id not in vertices for vertices in members) == open_slots

    def check_all_on_different_slots(self, names: list[str]) -> None:
        assert len({self.names[name][1] for name in names}) == len(names)

    def check_worker_of(self, wanted: dict[str, str]) -> None:
        for name, worker in wanted.items():
            assert self.names[name][1].task_manager_id == self.worker(worker)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario["name"])
def test_scenario_places_as_flink_does(scenario: dict[str, Any]) -> None:
    script = Script()
    for step in scenario["steps"]:
        script.play(step)


@pytest.mark.parametrize("case", VECTORS["slots_needed"], ids=lambda case: case["name"])
def test_a_job_fits_if_and_only_if_its_slots_are_offered(case: dict[str, Any]) -> None:
    job = graph(*(vertex(v["name"], v["parallelism"], slot_sharing_group=v["group"]) for v in case["vertices"]))
    pool = cluster(*[case["slots_each"]] * case["task_managers"])
    if case["fits"]:
        pool.place(job, vertices_of(job))
        assert pool.free == case["free_slots_after"]
    else:
        with pytest.raises(
            NoResourceAvailable, match=f"needs {case['slots_needed']} slots, {pool.offered} are offered"
        ):
            pool.place(job, vertices_of(job))
        assert pool.free == pool.offered


def test_subtasks_meet_by_index_and_slots_alternate_between_task_managers() -> None:
    """scheduling.json: placement of source 4, map 4, reduce 3 on 2 x 3 slots."""
    job = graph(
        source("source", 4),
        vertex("map", 4),
        vertex("reduce", 3),
        edges=[edge("source", "map", FORWARD), edge("map", "reduce")],
    )
    pool = cluster(3, 3)
    placement = pool.place(job, vertices_of(job))

    assert set(placement) == set(all_subtasks(job))
    assert Counter(Counter(placement.values()).values()) == {3: 3, 2: 1}
    assert all(placement[key("source", index)] == placement[key("map", index)] for index in range(4))
    assert [placement[key("source", index)].task_manager_id for index in range(4)] == ["tm-0", "tm-1"] * 2
    assert (pool.free_on(TaskManagerId("tm-0")), pool.free_on(TaskManagerId("tm-1"))) == (1, 1)


def test_a_narrow_vertex_is_spread_too() -> None:
    job = graph(source("wide", 4), vertex("narrow", 2), edges=[edge("wide", "narrow")])
    placement = cluster(2, 2).place(job, vertices_of(job))
    assert {placement[key("narrow", index)].task_manager_id for index in range(2)} == {"tm-0", "tm-1"}


class TestBoundVertices:
    FLIGHTS = source("flights", 2, task_manager_bound=True)
    WEATHER = source("weather", 2, task_manager_bound=True, first_task_manager=1)

    def test_run_on_the_task_manager_with_their_index(self) -> None:
        job = graph(vertex("join", 3), self.FLIGHTS, self.WEATHER)
        pool = cluster(1, 1, 1)
        placement = pool.place(job, vertices_of(job))
        bound = [key("flights", 0), key("flights", 1), key("weather", 0), key("weather", 1)]
        assert [placement[subtask].task_manager_id for subtask in bound] == ["tm-0", "tm-1", "tm-1", "tm-2"]
        assert pool.free == 0

    def test_a_forward_neighbour_shares_their_slot(self) -> None:
        job = graph(self.FLIGHTS, self.WEATHER, vertex("parse", 2), edges=[edge("weather", "parse", FORWARD)])
        placement = cluster(1, 1, 1).place(job, vertices_of(job))
        assert all(placement[key("parse", index)] == placement[key("weather", index)] for index in range(2))

    def test_wait_for_their_own_task_manager_however_many_others_there_are(self) -> None:
        pool = SlotPool()
        pool.add(TaskManagerId("tm-a"), 0, 4)
        with pytest.raises(
            NoResourceAvailable, match="subtask 1 of vertex 'flights', which runs only on TaskManager 1"
        ):
            pool.place(graph(self.FLIGHTS), [VertexId("flights")])
        assert pool.free == 4

        pool.add(TaskManagerId("tm-b"), 1, 1)
        assert pool.place(graph(self.FLIGHTS), [VertexId("flights")])[key("flights", 1)].task_manager_id == "tm-b"


def test_a_shortage_says_how_many_are_needed_and_offered_and_by_whom() -> None:
    job = graph(source("read", 4))
    with pytest.raises(NoResourceAvailable) as raised:
        cluster(1, 2).place(job, [VertexId("read")])
    assert str(raised.value) == (
        "job 'test job' needs 4 slots, 3 are offered (1 by TaskManager 0 (tm-0), 2 by TaskManager 1 (tm-1)), 3 of "
        "them free: no slot for subtask 3 of vertex 'read'"
    )


class TestRestart:
    JOB = graph(source("a", 3), vertex("b", 3), edges=[edge("a", "b")])

    def test_goes_back_to_where_it_ran(self) -> None:
        pool = cluster(2, 2, 2)
        before = pool.place(self.JOB, vertices_of(self.JOB))
        pool.release(*before)
        assert pool.place(self.JOB, vertices_of(self.JOB)) == before

    def test_keeps_survivors_in_place_and_gives_the_lost_ones_to_the_newcomer(self) -> None:
        pool = cluster(1, 1, 1)
        before = pool.place(self.JOB, vertices_of(self.JOB))
        assert set(pool.lose(TaskManagerId("tm-1"))) == {
            s for s, slot in before.items() if slot.task_manager_id == "tm-1"
        }
        pool.release(*before)
        with pytest.raises(NoResourceAvailable, match="needs 3 slots, 2 are offered"):
            pool.place(self.JOB, vertices_of(self.JOB))

        pool.add(TaskManagerId("tm-1b"), 1, 1)
        after = pool.place(self.JOB, vertices_of(self.JOB))
        moved = {TaskManagerId("tm-1"): TaskManagerId("tm-1b")}
        assert after == {s: SlotId(moved.get(tm, tm), index) for s, (tm, index) in before.items()}

    def test_placing_again_changes_nothing(self) -> None:
        pool = cluster(3)
        assert pool.place(self.JOB, vertices_of(self.JOB)) == pool.place(self.JOB, vertices_of(self.JOB))
        assert pool.free == 0

    def test_one_region_rejoins_the_slots_that_another_holds(self) -> None:
        job = graph(source("a", 2), source("b", 2))
        pool = cluster(1, 1)
        before = pool.place(job, vertices_of(job))
        pool.release(key("b", 0), key("b", 1))
        assert pool.place(job, [VertexId("b")]).items() <= before.items()


def test_task_managers_come_and_go() -> None:
    """SchedulerIsolatedTasksTest.testAddAndRemoveInstance."""
    (case,) = (c for c in VECTORS["worker_loss_and_queueing"] if c["name"] == "add_and_remove_workers")
    pool = SlotPool()
    for index, step in enumerate(case["steps"]):
        if "lose" in step:
            assert pool.lose(TaskManagerId(step["lose"])) == ()
        else:
            result = pool.add(TaskManagerId(step["add"]), index, step.get("slots", 2))
            why = {"already known": OfferResult.KNOWN, "dead": OfferResult.LOST}
            assert result is why.get(step.get("why", ""), OfferResult.ACCEPTED)
        assert pool.free == step.get("free", pool.free)


def test_releasing_twice_is_harmless() -> None:
    """SchedulerIsolatedTasksTest.testScheduleImmediately."""
    pool = cluster(2)
    pool.allocate(SlotRequest(key("a", 0), "g"))
    pool.release(key("a", 0), key("a", 0))
    pool.release(key("a", 0))
    assert (pool.free, pool.slot_of(key("a", 0))) == (2, None)


def test_slots_released_as_they_are_handed_out_serve_every_request() -> None:
    """SchedulerIsolatedTasksTest.testScheduleQueueing: 50 workers, 2000 requests."""
    pool = cluster(*[1] * 50)
    for number in range(2000):
        assert pool.allocate(SlotRequest(key("a", number), f"exclusive {number}")) is not None
        if number >= 49:
            pool.release(key("a", number - 49))
    pool.release(*(key("a", number) for number in range(1951, 2000)))
    assert pool.free == 50


@pytest.mark.parametrize("seed", range(50))
def test_allocating_and_releasing_in_any_order_leaves_all_slots_free(seed: int) -> None:
    """SchedulerSlotSharingTest.testConcurrentAllocateAndRelease: 13 tasks of 4 vertices in 4 slots."""
    pool, order = cluster(4), random.Random(seed)
    tasks = [key(name, index) for name, size in (("a", 4), ("b", 4), ("c", 1), ("d", 4)) for index in range(size)]
    order.shuffle(tasks)
    running: list[SubtaskKey] = []
    for task in tasks:
        assert pool.allocate(SlotRequest(task, "g")) is not None
        running.append(task)
        if order.random() < 0.3:
            pool.release(running.pop(order.randrange(len(running))))
    pool.release(*running)
    assert pool.free == 4


@st.composite
def jobs(draw: st.DrawFn) -> JobGraph:
    """Up to 5 vertices in 1 to 3 groups, joined at random; some equal ones by a forward edge."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    vertices = []
    for number, size in enumerate(sizes):
        group, bound = draw(st.sampled_from("xyz")), draw(st.booleans())
        first = draw(st.integers(0, 4 - size)) if bound else 0
        vertices.append(
            vertex(f"v{number}", size, slot_sharing_group=group, task_manager_bound=bound, first_task_manager=first)
        )
    edges = [
        edge(
            f"v{one}", f"v{other}", FORWARD if sizes[one] == sizes[other] and draw(st.booleans()) else Partitioning.HASH
        )
        for other in range(1, len(sizes))
        for one in draw(st.lists(st.integers(0, other - 1), max_size=2))
    ]
    return graph(*vertices, edges=edges)


def check(job: JobGraph, pool: SlotPool) -> None:
    by_id = {vertex.vertex_id: vertex for vertex in job.vertices}
    members: dict[SlotId, list[SubtaskKey]] = {}
    for subtask in all_subtasks(job):
        slot = pool.slot_of(subtask)
        assert slot is not None
        members.setdefault(slot, []).append(subtask)
        placed = by_id[subtask.vertex_id]
        if placed.task_manager_bound:
            index = int(slot.task_manager_id.strip("tm-b"))
            assert index == placed.first_task_manager + subtask.subtask_index
    for together in members.values():
        assert len({subtask.vertex_id for subtask in together}) == len(together)
        assert len({by_id[subtask.vertex_id].slot_sharing_group for subtask in together}) == 1
    assert len(members) == slots_needed(job) == pool.offered - pool.free


@given(job=jobs(), data=st.data())
def test_a_job_never_takes_more_than_it_needs_through_restarts_and_losses(job: JobGraph, data: st.DataObject) -> None:
    """Each region that lost a subtask is released and placed again, in any order."""
    pool, width = cluster(*[slots_needed(job)] * 4), slots_needed(job)
    incarnations = [f"tm-{index}" for index in range(4)]
    pool.place(job, vertices_of(job))
    check(job, pool)
    for index in data.draw(st.lists(st.integers(0, 3), max_size=3)):
        gone = set(pool.lose(TaskManagerId(incarnations[index])))
        hit = [region for region in regions(job) if any(subtask.vertex_id in region for subtask in gone)]
        pool.release(*(subtask for subtask in all_subtasks(job) for region in hit if subtask.vertex_id in region))
        incarnations[index] += "b"
        pool.add(TaskManagerId(incarnations[index]), index, width)
        for region in data.draw(st.permutations(hit)):
            pool.place(job, region)
        check(job, pool)


@given(job=jobs(), data=st.data())
def test_a_job_that_fits_fits_in_whatever_order_regions_and_task_managers_come(
    job: JobGraph, data: st.DataObject
) -> None:
    """Four TaskManagers with no slot too many, unless bound vertices leave some unused."""
    demands = slot_demands(job).values()
    slots = [sum(index in demand.bound_to for demand in demands) for index in range(4)]
    for _ in range(sum(demand.spare for demand in demands)):
        slots[data.draw(st.integers(0, 3))] += 1
    pool, waiting = SlotPool(), list(data.draw(st.permutations(regions(job))))
    for index in data.draw(st.permutations(range(4))):
        pool.add(TaskManagerId(f"tm-{index}"), index, slots[index])
        waiting = [region for region in waiting if not fits(job, pool, region)]
    assert not waiting
    check(job, pool)


def fits(job: JobGraph, pool: SlotPool, region: Collection[VertexId]) -> bool:
    try:
        return bool(pool.place(job, region))
    except NoResourceAvailable:
        return False


@given(job=jobs(), slots=st.lists(st.integers(0, 3), max_size=4))
def test_placement_is_all_or_nothing(job: JobGraph, slots: list[int]) -> None:
    pool = cluster(*slots)
    try:
        pool.place(job, vertices_of(job))
    except NoResourceAvailable:
        assert pool.free == pool.offered
        assert all(pool.slot_of(subtask) is None for subtask in all_subtasks(job))
    else:
        check(job, pool)


def test_a_lost_task_manager_that_was_never_known_took_nothing_with_it() -> None:
    pool = cluster(1)
    assert pool.lose(TaskManagerId("x")) == ()
    assert pool.free_on(TaskManagerId("x")) == 0
    assert pool.slot_of(SubtaskKey(VertexId("a"), SubtaskIndex(0))) is None
    assert pool.subtasks_in(SlotId(TaskManagerId("tm-0"), SlotIndex(0))) == ()
