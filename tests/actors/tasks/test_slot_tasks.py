"""SlotTasks: who is behind a task, found when it asks."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from dataclasses import replace

from understudy.actors.tasks.slot_tasks import SlotTasks
from understudy.actors.tasks.task_counters import TaskCounters
from understudy.messages import InputDescriptor, OutputDescriptor, Partitioning, TaskDeployment, VertexId

from .task_stage import deployment


def with_edges(name: str, inputs: tuple[int, ...], outputs: tuple[int, ...]) -> TaskDeployment:
    return replace(
        deployment(),
        vertex_id=VertexId(name),
        inputs=tuple(InputDescriptor(edge, 0, ()) for edge in inputs),
        outputs=tuple(OutputDescriptor(edge, Partitioning.HASH, ()) for edge in outputs),
    )


def runs() -> bool:
    return False


def has_ended() -> bool:
    return True


def steps(*counters: TaskCounters) -> None:
    """Each does something, and wants to go on."""
    for each in counters:
        each.begins(0.0)
        each.worked(1.0, is_more=True)


def test_tasks_of_a_slot_learn_who_takes_what_they_emit() -> None:
    source, middle, sink, stranger = TaskCounters(), TaskCounters(), TaskCounters(), TaskCounters()
    slot = SlotTasks()
    slot.add(with_edges("sink", (1,), ()), sink, runs)
    slot.add(with_edges("source", (), (0,)), source, runs)
    slot.add(with_edges("stranger", (), (5,)), stranger, runs)
    slot.add(with_edges("middle", (0,), (1,)), middle, runs)
    steps(source, middle, sink, stranger)
    assert set(source.behind) == {middle, sink}
    assert (middle.behind, sink.behind, stranger.behind) == ((sink,), (), ())


def test_a_task_of_a_loop_is_not_behind_itself() -> None:
    one, other = TaskCounters(), TaskCounters()
    slot = SlotTasks()
    slot.add(with_edges("one", (1,), (0,)), one, runs)
    slot.add(with_edges("other", (0,), (1,)), other, runs)
    steps(one, other)
    assert (one.behind, other.behind) == ((other,), (one,))


def test_who_comes_later_is_known_and_who_has_ended_is_not() -> None:
    source, ended, sink = TaskCounters(), TaskCounters(), TaskCounters()
    slot = SlotTasks()
    slot.add(with_edges("source", (), (0,)), source, runs)
    slot.add(with_edges("sink", (0,), ()), ended, has_ended)
    steps(source)
    assert source.behind == ()
    slot.add(with_edges("sink", (0,), ()), sink, runs)
    assert source.behind == ()
    steps(source)
    assert source.behind == (sink,)


def test_a_chain_of_a_thousand_is_deployed_with_a_look_at_each() -> None:
    """Each deployment looked at all pairs of tasks there were: 128 tasks of a slot took three seconds."""
    looks: list[int] = []
    asked: list[int] = []

    def still_runs() -> bool:
        asked.append(1)
        return False

    class Outputs(tuple[OutputDescriptor, ...]):
        def __iter__(self) -> Iterator[OutputDescriptor]:
            looks.append(1)
            return super().__iter__()

    slot, counters = SlotTasks(), [TaskCounters() for _ in range(1_000)]
    for place, each in enumerate(counters):
        made = with_edges(f"{place}", (place,), (place + 1,))
        slot.add(replace(made, outputs=Outputs(made.outputs)), each, still_runs)
    assert len(looks) <= 1_000
    asked.clear()
    steps(counters[0])
    assert len(counters[0].behind) == 999
    assert len(asked) == 999, "each of the others, once"


def test_attempts_that_have_ended_are_not_kept() -> None:
    slot = SlotTasks()
    for _ in range(1_000):
        slot.add(with_edges("again", (0,), (1,)), TaskCounters(), has_ended)
    assert len(slot) <= 50


class Name(str):
    """One that shows whether it is kept."""


def test_a_deployment_and_the_state_in_it_are_not_kept() -> None:
    name, counters, slot = Name("sink"), TaskCounters(), SlotTasks()
    kept = weakref.ref(name)
    slot.add(replace(with_edges("sink", (1,), ()), vertex_name=name), counters, has_ended)
    del name
    gc.collect()
    assert kept() is None
