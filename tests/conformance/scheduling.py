"""scheduling.json: slots needed, placements, slot sharing groups, co-location, locality and pointwise wiring."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from understudy.actors.errors import NoResourceAvailable
from understudy.actors.job_graph import SubtaskKey, all_subtasks, pointwise_producers, slots_needed
from understudy.actors.jobs.slot_pool import OfferResult, SlotId, SlotPool
from understudy.actors.jobs.slot_requests import SlotRequest
from understudy.actors.operators import Operator
from understudy.messages import Partitioning, SubtaskIndex, TaskManagerId, VertexId
from understudy.runtime.api.chaining import chains_of, sizes_of
from understudy.runtime.api.stream_graph import StreamEdge, StreamGraph, StreamNode

from ..actors.graphs import edge, graph, vertex
from .scenario import Difference, Scenario, Skipped, UnknownWord, Words, compare, scenarios_of
from .slot_script import SlotScript

KEYS = frozenset(
    {"slots_needed", "placements", "group_inheritance", "pointwise", "worker_loss_and_queueing", "add_worker"}
)
"""Words that only this schema has."""

OFFERS = {"already known": OfferResult.KNOWN, "dead": OfferResult.LOST, "": OfferResult.ACCEPTED}


def scenarios(document: Words) -> Iterator[Scenario]:
    yield from scenarios_of(document, "scenarios", _play)
    yield from scenarios_of(document, "slots_needed", _slots_needed)
    yield from scenarios_of(document, "placements", _placement)
    yield from scenarios_of(document, "group_inheritance", _inherit)
    yield from scenarios_of(document, "pointwise", _wire, lambda case: f"{case['upstream']} to {case['downstream']}")
    yield from scenarios_of(document, "worker_loss_and_queueing", _worker_loss)


def _play(words: Words) -> Iterator[Difference]:
    script = SlotScript()
    for number, step in enumerate(words["steps"]):
        yield from script.play(number, step)


def cluster(*slots: int) -> SlotPool:
    """A pool with TaskManagers tm-0, tm-1, … that offer so many slots."""
    pool = SlotPool()
    for index, offered in enumerate(slots):
        assert pool.add(TaskManagerId(f"tm-{index}"), index, offered) is OfferResult.ACCEPTED
    return pool


# ------------------------------------------------------------------------------------------------ whole jobs


def _slots_needed(case: Words) -> Iterator[Difference]:
    job = graph(
        *(vertex(v["name"], v["parallelism"], slot_sharing_group=v.get("group") or "default") for v in case["vertices"])
    )
    yield from compare("slots_needed", case["slots_needed"], slots_needed(job))
    pool = cluster(*[case["slots_each"]] * case["task_managers"])
    try:
        pool.place(job, [each.vertex_id for each in job.vertices])
        fits = True
    except NoResourceAvailable:
        fits = False
        yield from compare("free slots after a refusal", pool.offered, pool.free)
    yield from compare("fits", case["fits"], fits)
    if case.get("free_slots_after") is not None:
        yield from compare("free_slots_after", case["free_slots_after"], pool.free)


def _placement(case: Words) -> Iterator[Difference]:
    """What must hold however the slots are chosen: `must` says it in words, the sizes imply it."""
    group = case.get("group", "all share")
    is_shared = group == "all share"
    if not is_shared and re.search(r"\b(own|no|none|without|separate|exclusive)\b", group) is None:
        raise Skipped(f"placements/{case['name']}: found the groups {group!r}; played is 'all share' or 'each its own'")
    sizes: dict[str, int] = case["vertices"]
    names = list(sizes)
    joined = [
        edge(one, other, Partitioning.FORWARD if sizes[one] == sizes[other] else Partitioning.HASH)
        for one, other in pairwise(names)
    ]
    groups = {name: "default" if is_shared else name for name in names}
    job = graph(*(vertex(name, sizes[name], slot_sharing_group=groups[name]) for name in names), edges=joined)
    pool = cluster(*[case["slots_each"]] * case["workers"])
    placed = pool.place(job, [each.vertex_id for each in job.vertices])
    yield from compare("every subtask is placed once", sorted(all_subtasks(job)), sorted(placed))
    members: dict[SlotId, list[str]] = {}
    for subtask, slot in sorted(placed.items()):
        members.setdefault(slot, []).append(subtask.vertex_id)
    held = (
        frozenset(name for name in names if groups[name] == of and sizes[name] > taken)
        for of in set(groups.values())
        for taken in range(max(sizes.values()))
    )
    expected = Counter(filter(None, held))
    yield from compare("what the used slots hold", expected, Counter(map(frozenset, members.values())))
    twice = [each for each in members.values() if len(set(each)) < len(each)]
    yield from compare("slots with two subtasks of one vertex", [], twice)
    for must in case.get("must", []):
        if found := re.fullmatch(r"(\d+) slots hold tasks, (\d+) stay free", must):
            yield from compare(must, list(map(int, found.groups())), [len(members), pool.free])
    for name in names:
        if "->" in name:
            yield from compare("one thread per chain", [name.split("->")], _chains(name.split("->")))


def _chains(names: list[str]) -> list[list[str]]:
    """How a program of these operators, one after the other, is cut into tasks."""
    program = StreamGraph()
    for name in names:
        inputs = [StreamEdge(program.nodes[-1])] if program.nodes else []
        program.add("operator" if inputs else "source", Operator(), name=name, inputs=inputs)
    sizes = sizes_of(program.nodes, default=4, maximum=128, task_managers=2)
    return [[node.name for node in chain] for chain in chains_of(program.nodes, sizes)]


# ------------------------------------------------------------------------------------- groups, edges, workers


def _inherit(case: Words) -> Iterator[Difference]:
    if "pipeline" in case:
        program, before = StreamGraph(), list[StreamNode]()
        for name, group in case["pipeline"]:
            before = [_add(program, name, before, group)]
        found = [node.slot_sharing_group for node in program.nodes]
        yield from compare("expect_groups", case["expect_groups"], found)
        again = _add(program, case["pipeline"][0][0], [], case["pipeline"][0][1])
        yield from compare("a second pipeline", case["expect_groups"][0], again.slot_sharing_group)
        return
    program = StreamGraph()
    inputs = [_add(program, "source", [], group) for group in case["inputs"]]
    found = _add(program, "operator", inputs, case.get("operator_group")).slot_sharing_group
    yield from compare("group", case["expect"], found)


def _add(program: StreamGraph, kind: str, inputs: list[StreamNode], group: str | None) -> StreamNode:
    edges = [StreamEdge(node) for node in inputs]
    name = program.name_for(None, kind)
    return program.add("operator" if edges else "source", Operator(), name=name, inputs=edges, slot_sharing_group=group)


def _wire(case: Words) -> Iterator[Difference]:
    upstream, downstream = case["upstream"], case["downstream"]
    found = [list(pointwise_producers(upstream, downstream, index)) for index in range(downstream)]
    yield from compare("inputs_of_downstream_subtask", case["inputs_of_downstream_subtask"], found)


def _worker_loss(case: Words) -> Iterator[Difference]:
    match case:
        case {"steps": steps}:
            yield from _come_and_go(steps)
        case {"workers": workers, "requests": requests}:
            yield from _serve_all(workers, requests)
        case {"name": "double_release_harmless"}:
            pool, task = cluster(2), _subtask("a", 0)
            pool.allocate(SlotRequest(task, "g"))
            pool.release(task, task)
            pool.release(task)
            yield from compare("free", 2, pool.free)
        case {"name": "concurrent_allocate_release"}:
            for seed in range(50):
                yield from _allocate_in_any_order(seed)
        case {"name": "blocking_results_without_sharing"}:
            raise Skipped("blocking results: all tasks of a stream run at once")
        case _:
            raise Skipped(f"told in words, and no test is known to hold it: {case['name']}")


def _come_and_go(steps: list[Words]) -> Iterator[Difference]:
    pool = SlotPool()
    for number, step in enumerate(steps):
        if "lose" in step:
            yield from compare(f"step {number}: lost subtasks", (), pool.lose(TaskManagerId(step["lose"])))
        elif "add" in step:
            found = pool.add(TaskManagerId(step["add"]), number, step.get("slots", 2))
            wanted = [OFFERS[step["why"]]] if "why" in step else list(OFFERS.values())
            is_refused = found is not OfferResult.ACCEPTED
            if is_refused != step.get("error", False) or found not in wanted:
                yield Difference(f"step {number}: add", step, found.name)
        else:
            raise UnknownWord(f"found the step {step}; wanted add or lose")
        yield from compare(f"step {number}: free", step.get("free", pool.free), pool.free)


def _serve_all(workers: int, requests: int) -> Iterator[Difference]:
    """A pool queues nothing: who finds no slot asks again when one is released, which is at once here."""
    pool, served = cluster(*[1] * workers), 0
    for number in range(requests):
        if number >= workers:
            pool.release(_subtask("a", number - workers))
        served += pool.allocate(SlotRequest(_subtask("a", number), f"exclusive {number}")) is not None
    pool.release(*(_subtask("a", number) for number in range(requests)))
    yield from compare("served", requests, served)
    yield from compare("free", workers, pool.free)


def _allocate_in_any_order(seed: int) -> Iterator[Difference]:
    """13 tasks of 4 vertices in 4 slots; one actor owns the pool, so what threads would do comes one by one."""
    pool, order = cluster(4), random.Random(seed)
    tasks = [_subtask(name, index) for name, size in (("a", 4), ("b", 4), ("c", 1), ("d", 4)) for index in range(size)]
    order.shuffle(tasks)
    running: list[SubtaskKey] = []
    for task in tasks:
        yield from compare(f"seed {seed}: {task}", True, pool.allocate(SlotRequest(task, "g")) is not None)
        running.append(task)
        if order.random() < 0.3:
            pool.release(running.pop(order.randrange(len(running))))
    pool.release(*running)
    yield from compare(f"seed {seed}: free", 4, pool.free)


def _subtask(vertex_id: str, index: Any) -> SubtaskKey:
    return SubtaskKey(VertexId(vertex_id), SubtaskIndex(index))
