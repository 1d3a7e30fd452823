"""SlotPool: the properties of all-or-nothing placement. Flink's scenarios are played in tests/conformance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.actors.errors import NoResourceAvailable
from understudy.actors.job_graph import SubtaskKey, all_subtasks, regions, slot_demands, slots_needed
from understudy.actors.jobs.slot_pool import Locality, SlotId, SlotPool
from understudy.actors.jobs.slot_requests import SlotRequest
from understudy.messages import JobGraph, Partitioning, SlotIndex, SubtaskIndex, TaskManagerId, VertexId

from ...conformance.scheduling import cluster
from ..graphs import edge, graph, source, vertex

FORWARD = Partitioning.FORWARD


def key(vertex_id: str, index: int) -> SubtaskKey:
    return SubtaskKey(VertexId(vertex_id), SubtaskIndex(index))


def vertices_of(job: JobGraph) -> list[VertexId]:
    return [vertex.vertex_id for vertex in job.vertices]


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

    def test_what_cannot_be_placed_as_a_whole_leaves_those_that_were_placed_before_where_they_are(self) -> None:
        pool = cluster(2)
        narrow = graph(source("a", 2))
        before = pool.place(narrow, [VertexId("a")])
        wide = graph(source("a", 2), vertex("b", 3), edges=[edge("a", "b")])
        with pytest.raises(NoResourceAvailable):
            pool.place(wide, vertices_of(wide))
        assert {subtask: pool.slot_of(subtask) for subtask in before} == before
        assert [pool.slot_of(key("b", index)) for index in range(3)] == [None] * 3

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


class TestCoLocation:
    """What goes beyond Flink's ScheduleWithCoLocationHintTest."""

    def test_a_constraint_goes_elsewhere_when_its_task_manager_is_lost(self) -> None:
        pool = cluster(1, 1)
        first = pool.allocate(SlotRequest(key("a", 0), "g", colocation="c"))
        assert first is not None
        pool.lose(first.task_manager_id)
        again = pool.allocate(SlotRequest(key("a", 0), "g", colocation="c"))
        assert again is not None
        assert again.task_manager_id != first.task_manager_id

    def test_a_second_subtask_of_one_vertex_with_the_same_constraint_finds_no_slot(self) -> None:
        pool = cluster(2)
        pool.allocate(SlotRequest(key("a", 0), "g", colocation="c"))
        assert pool.allocate(SlotRequest(key("a", 1), "g", colocation="c")) is None
        assert pool.free == 1

    def test_a_slot_is_free_for_another_constraint_when_the_last_member_of_the_first_one_has_left(self) -> None:
        pool = cluster(1)
        pool.allocate(SlotRequest(key("a", 0), "g", colocation="c"))
        held = pool.allocate(SlotRequest(key("b", 0), "g"))
        pool.release(key("a", 0))
        assert pool.allocate(SlotRequest(key("d", 0), "g", colocation="d")) == held

    def test_a_preferred_task_manager_comes_in_the_order_of_preference(self) -> None:
        pool = cluster(2, 2, 2)
        wanted = (TaskManagerId("tm-2"), TaskManagerId("tm-1"))
        placed = [pool.allocate(SlotRequest(key("a", index), f"g{index}", preferred=wanted)) for index in range(5)]
        assert [slot.task_manager_id for slot in placed if slot] == ["tm-2", "tm-2", "tm-1", "tm-1", "tm-0"]
        assert (pool.localities[Locality.LOCAL], pool.localities[Locality.NON_LOCAL]) == (4, 1)

    @given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["c1", "c2", None]), st.booleans()), max_size=30))
    def test_slots_belong_to_one_constraint_and_constraints_to_one_task_manager(
        self, script: list[tuple[str, str | None, bool]]
    ) -> None:
        """Each step places a subtask, and may release one after that."""
        pool, placed = cluster(2, 2), dict[SubtaskKey, str | None]()
        homes: dict[str, TaskManagerId] = {}
        for number, (vertex_id, constraint, releases) in enumerate(script):
            subtask = key(vertex_id, number)
            slot = pool.allocate(SlotRequest(subtask, "g", colocation=constraint))
            if slot is not None:
                placed[subtask] = constraint
                if constraint is not None:
                    assert homes.setdefault(constraint, slot.task_manager_id) == slot.task_manager_id
            if releases and placed:
                gone = next(iter(placed))
                del placed[gone]
                pool.release(gone)
            slots: dict[SlotId | None, set[str]] = {}
            for other, its in placed.items():
                if its is not None:
                    slots.setdefault(pool.slot_of(other), set()).add(its)
            assert all(len(constraints) == 1 for constraints in slots.values())
            found = [its for constraints in slots.values() for its in constraints]
            assert len(found) == len(set(found)), "a constraint has one slot"
        pool.release(*placed)
        assert pool.free == pool.offered


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
