"""The restore section of checkpoint_coordinator.json: what of a checkpoint each subtask of a job gets back."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from understudy.actors.errors import StateDoesNotFit
from understudy.actors.restore.found_origin import FoundOrigin
from understudy.actors.restore.restore_check import RestoreReport, check_restore
from understudy.actors.restore.restore_points import RestorePoints
from understudy.messages import (
    CheckpointId,
    JobId,
    JobVertex,
    OperatorId,
    OperatorSubtaskState,
    StateDescription,
    SubtaskIndex,
    SubtaskState,
    VertexId,
)
from understudy.state.checkpoints.assignment import assign_state
from understudy.state.checkpoints.checkpoint_ids import StandaloneCheckpointIdCounter
from understudy.state.checkpoints.completed_checkpoints import (
    CompletedCheckpoint,
    StandaloneCompletedCheckpointStore,
    VertexSnapshot,
)
from understudy.state.checkpoints.savepoint_store import HEAP_PATHS, HeapSavepointStore
from understudy.state.checkpoints.savepoints import Savepoints
from understudy.state.checkpoints.shared_state import CheckpointOf, SharedStateRegistry, StateFile
from understudy.state.errors import MissingSavepoint
from understudy.state.keys.key_groups import key_group_range
from understudy.state.storage import CheckpointStorage

from ..actors.graphs import graph, vertex
from ..actors.savepoints import chain, checkpoint, keyed_state, operator
from ..state.checkpoints.test_assignment import keyed
from .key_groups import list_handle, named
from .scenario import Difference, Scenario, Skipped, UnknownWord, Words, compare, scenarios_of

JOB = JobId("job")
MAX_PARALLELISM = 128
TOTAL = StateDescription("total", "ValueState", "int")
ITEMS = 10
"""Of an operator list, in each old subtask."""


def scenarios(document: Words) -> Iterator[Scenario]:
    return scenarios_of(document, "restore", _play)


def _play(words: Words) -> Iterator[Difference]:
    if reason := _why_not_played(words):
        raise Skipped(f"restore/{words['name']}: {reason}")
    match words:
        case {"retained": []}:
            yield from _nothing_to_restore()
        case {"checkpoints": checkpoints, "steps": steps, "expect_deleted_shared_state": deleted}:
            yield from _shared_state(checkpoints, steps, deleted)
        case {"operators": operators, "cases": cases}:
            for shape in operators.values():
                for case in cases:
                    yield from _rescale(case["from"], case["to"], shape["max"])
        case {"operators": operators, "expect": {"initial_state_set_on": _}}:
            yield from _initial_state(words, operators)
        case {"operators": operators, "new": new, "expect": expected}:
            yield from compare("fits", expected != "error", _fits(operators, new))
        case {"savepoint_checkpoint_id": checkpoint_id, "expect": {"id_counter_set_to": next_id}}:
            yield from compare("id_counter_set_to", next_id, _next_id_after(checkpoint_id))
        case {"name": "savepoint_load_failure"}:
            yield from _unknown_savepoint()
        case _:
            raise Skipped(f"told in words, and no test is known to hold it: restore/{words['name']}")


def _why_not_played(words: Words) -> str:
    """Rules of one release that are not kept here; empty for all others."""
    shapes = [each for each in words.get("operators", {}).values() if isinstance(each, dict)]
    if words.get("call", {}).get("all_or_nothing"):
        return "a subtask that acknowledged without state is restored without"
    if "new_parallelism" in words:
        return "of release 1.0 and 1.1: state is rescaled here, as from 1.2 on"
    if any(shape.get("state") == "non-partitioned" for shape in shapes):
        return "there is no state here that cannot be partitioned"
    return ""


def _nothing_to_restore() -> Iterator[Difference]:
    """The caller is told that there is nothing, and decides whether that is an error."""
    job = graph(vertex("a"))
    points = RestorePoints(job, StandaloneCompletedCheckpointStore(1))
    yield from compare("restored", None, points.choose(frozenset({VertexId("a")})))


def _fits(operators: dict[str, Words], new: dict[str, Words]) -> bool:
    """Whether a checkpoint with keyed state in every operator can be restored into a program with these sizes."""
    old = checkpoint(
        *(
            (
                _vertex(name, shape),
                [
                    {name: keyed_state(key_group_range(shape["max"], shape["parallelism"], index).groups)}
                    for index in range(shape["parallelism"])
                ],
            )
            for name, shape in operators.items()
        )
    )
    program = graph(*(_vertex(name, shape) for name, shape in new.items()))
    try:
        check_restore(old, program)
    except StateDoesNotFit:
        return False
    return True


def _vertex(name: str, shape: Words) -> JobVertex:
    return chain(operator(name, TOTAL), parallelism=shape["parallelism"], max_parallelism=shape["max"])


def _next_id_after(checkpoint_id: int) -> int:
    """The first id of a job that is started from this savepoint."""
    found = FoundOrigin(
        CheckpointStorage("memory://restored"), checkpoint(checkpoint_id=checkpoint_id), "", RestoreReport((), (), ())
    )
    ids = StandaloneCheckpointIdCounter()
    ids.set_count(found.next_checkpoint_id)
    return ids.get_and_increment()


def _unknown_savepoint() -> Iterator[Difference]:
    """What the store says is passed on."""
    found = "no error"
    try:
        Savepoints(HeapSavepointStore(), CheckpointStorage).load(f"{HEAP_PATHS}savepoint-unknown")
    except MissingSavepoint:
        found = "error"
    yield from compare("load", "error", found)


# ------------------------------------------------------------------------------------------------ initial state


def _initial_state(words: Words, operators: dict[str, int]) -> Iterator[Difference]:
    everyone = [f"{name}/{index}" for name, size in operators.items() for index in range(size)]
    acked = set(words.get("acked_with_state", everyone))
    snapshots = {
        VertexId(name): VertexSnapshot(
            size, MAX_PARALLELISM, {SubtaskIndex(i): _state_of(name) for i in range(size) if f"{name}/{i}" in acked}
        )
        for name, size in operators.items()
    }
    completed = CompletedCheckpoint(JOB, CheckpointId(1), 1, 2, 3, snapshots)
    job = graph(*(vertex(name, size) for name, size in operators.items()))
    states = RestorePoints(job, StandaloneCompletedCheckpointStore(1)).states(completed, frozenset(snapshots))
    found = sorted(f"{subtask.vertex_id}/{subtask.subtask_index}" for subtask, held in states.items() if held)
    wanted = words["expect"]["initial_state_set_on"]
    yield from compare("initial_state_set_on", sorted(everyone if isinstance(wanted, str) else wanted), found)
    yield from compare("not_on", [], sorted(set(words["expect"].get("not_on", [])) & set(found)))


def _state_of(name: str) -> SubtaskState:
    return SubtaskState({OperatorId(f"op-{name}"): OperatorSubtaskState(lists=(list_handle("list", [0]),))})


# ------------------------------------------------------------------------------------------------- rescaling


def _rescale(old: int, new: int, maximum: int) -> Iterator[Difference]:
    """Every new subtask has exactly the key groups of its range, and no item of a list is lost or doubled."""
    operator = OperatorId("op")
    before = {
        SubtaskIndex(index): SubtaskState(
            {
                operator: OperatorSubtaskState(
                    (keyed(*key_group_range(maximum, old, index)),),
                    (list_handle("list", list(range(ITEMS)), file=f"f{index}"),),
                )
            }
        )
        for index in range(old)
    }
    items = Counter[tuple[str, int]]()
    for index, state in enumerate(assign_state(before, old, new, maximum)):
        own = OperatorSubtaskState() if state is None else state.operators[operator]
        groups = sorted(group for handle in own.keyed for group in handle.offsets if group >= 0)
        expected = list(key_group_range(maximum, new, index).groups)
        yield from compare(f"{old} to {new}, key groups of subtask {index}", expected, groups)
        items.update((at, item) for at, held in named(list(own.lists)).items() for item in held)
    given = Counter((f"list@f{index}", item) for index in range(old) for item in range(ITEMS))
    yield from compare(f"{old} to {new}, items", given, items)


# ------------------------------------------------------------------------------------------------ shared state


def _shared_state(checkpoints: list[Words], steps: list[str], deleted: dict[str, list[str]]) -> Iterator[Difference]:
    """A new registry after a recovery knows what the checkpoints that are still there need, and nothing else."""
    live = {each["id"]: [StateFile("root", name) for name in each["shared"]] for each in checkpoints}
    registry, gone = SharedStateRegistry(), set[str]()
    for step in steps:
        if re.fullmatch(r"complete [\d,]+|recover store in a new registry", step):
            registry = SharedStateRegistry()
            for checkpoint_id, files in live.items():
                registry.register(CheckpointOf(JOB, CheckpointId(checkpoint_id)), files)
        elif found := re.fullmatch(r"drop (\d+)", step):
            dropped = int(found[1])
            del live[dropped]
            gone |= {file.path for file in registry.release(CheckpointOf(JOB, CheckpointId(dropped)))}
        else:
            raise UnknownWord(f"found the step {step!r}; wanted complete, drop or recover")
        name = "after recover" if step.startswith("recover") else f"after {step}"
        if name in deleted:
            yield from compare(name, sorted(deleted[name]), sorted(gone))
