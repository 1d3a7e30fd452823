"""Incremental checkpoints: whatever completes, is declined, comes late or is never heard of, each checkpoint restores
what was there when it was taken, at any parallelism, and the files are those that some checkpoint refers to.
"""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from understudy.messages import CheckpointId
from understudy.state.backends import run_ledger
from understudy.state.backends.run_ledger import RunLedger, RunPlan
from understudy.state.columnar.slot_backend import SlotBackend
from understudy.state.errors import MissingState

from .incremental_stage import Columnar, Compiled, IncrementalStage, Kind, Taken

KINDS: list[Kind] = [Columnar(), Compiled()]
EACH = pytest.mark.parametrize("kind", KINDS, ids=lambda each: type(each).__name__)
KEYS = 100
STEPS = 40
ACTIONS = (
    *("put", "put", "put", "put", "clear", "clear", "take", "take", "take and complete", "take and complete"),
    *("acknowledge", "complete", "complete", "decline", "arrive late", "hear", "hear", "restart", "check"),
)


class Course:
    """Keys change while checkpoints are taken, written, completed, declined and heard of in any order."""

    def __init__(self, kind: Kind, seed: int) -> None:
        self.random = Random(seed)
        self.stage = IncrementalStage(kind, retained=self.random.randint(1, 3))
        self.story: list[str] = [f"seed {seed}"]

    def run(self) -> None:
        try:
            if self.random.random() < 0.7:
                self.stage.kind.put(self.stage.backend, range(KEYS), 0)
                self.stage.complete(self.stage.take())
            for _ in range(STEPS):
                self.step(self.random.choice(ACTIONS))
                self.stage.check_files()
            self.stage.check_restores()
        except Exception as error:
            raise AssertionError("; ".join(self.story)) from error
        finally:
            self.stage.close()

    def step(self, action: str) -> None:
        stage, random = self.stage, self.random
        self.story.append(action)
        match action:
            case "put":
                first = random.randrange(KEYS)
                stage.kind.put(stage.backend, range(first, first + random.randint(1, 9)), random.randint(-5, 5))
            case "clear":
                stage.kind.clear(stage.backend, random.randrange(KEYS))
            case "take" if len(stage.pending) < 3:
                stage.take(is_savepoint=random.random() < 0.2, is_full=random.random() < 0.1)
            case "take and complete":
                stage.complete(stage.take())
            case "hear" if stage.unheard:
                stage.hear()
            case "restart" if random.random() < 0.3:
                stage.restart()
            case "check":
                stage.check_restores(random.randint(1, 5))
            case _ if stage.pending:
                self.go_on(random.choice(stage.pending), action)

    def go_on(self, taken: Taken, action: str) -> None:
        match action:
            case "complete":
                self.stage.complete(taken, heard=not self.stage.unheard and self.random.random() < 0.5)
            case "decline":
                self.stage.decline(taken)
            case "acknowledge" if taken.state is None:
                self.stage.acknowledge(taken)
            case "arrive late" if taken.state is None:
                self.stage.arrive_late(taken)


@EACH
def test_a_full_checkpoint_uses_no_run_and_so_does_the_next_one(kind: Kind) -> None:
    """The files of those before it go when it completes. A history of faults found it."""
    stage = IncrementalStage(kind)
    kind.put(stage.backend, range(KEYS), 0)
    stage.complete(stage.take())
    stage.complete(stage.take(is_full=True))
    kind.put(stage.backend, range(3), 1)
    stage.complete(stage.take())
    stage.check_files()
    stage.check_restores()
    stage.close()


def play(kind: Kind, seeds: range) -> None:
    for seed in seeds:
        Course(kind, seed).run()


@EACH
@pytest.mark.parametrize("most_of_a_level", [1, run_ledger.MOST_OF_A_LEVEL])
def test_any_course_restores_what_was_there(kind: Kind, most_of_a_level: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_ledger, "MOST_OF_A_LEVEL", most_of_a_level)
    play(kind, range(12))


@pytest.mark.slow
@EACH
@pytest.mark.parametrize("most_of_a_level", [1, 2, run_ledger.MOST_OF_A_LEVEL])
def test_thousands_of_courses_do(kind: Kind, most_of_a_level: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_ledger, "MOST_OF_A_LEVEL", most_of_a_level)
    play(kind, range(1000, 2000))


def a_run_is_used_though_a_snapshot_since_did_without(patch: pytest.MonkeyPatch) -> None:
    """So its file goes with the checkpoint before that one."""
    plans: dict[tuple[int, CheckpointId], RunPlan] = {}
    plan = RunLedger.plan

    def planned(self: RunLedger, checkpoint_id: CheckpointId, count: int) -> RunPlan:
        plans[id(self), checkpoint_id] = made = plan(self, checkpoint_id, count)
        return made

    def complete(self: RunLedger, checkpoint_id: CheckpointId) -> None:
        done = plans.get((id(self), checkpoint_id))
        if done is not None and (done.new is None or done.new.stored is not None):
            self._runs = [*done.kept, *([] if done.new is None else [done.new])]
            if self._newest is done:
                self._unconfirmed[:] = False

    patch.setattr(RunLedger, "plan", planned)
    patch.setattr(RunLedger, "complete", complete)


def changes_are_forgotten_when_a_snapshot_is_taken(patch: pytest.MonkeyPatch) -> None:
    """So they are lost with a checkpoint that is declined."""
    plan = RunLedger.plan

    def planned(self: RunLedger, checkpoint_id: CheckpointId, count: int) -> RunPlan:
        made = plan(self, checkpoint_id, count)
        self._unconfirmed[:] = False
        return made

    patch.setattr(RunLedger, "plan", planned)


def keys_that_hold_nothing_are_not_in_a_run(patch: pytest.MonkeyPatch) -> None:
    """So what they held before comes back."""
    frozen = SlotBackend._frozen

    def holding(self: SlotBackend, some: Any) -> Any:
        return frozen(self, None if some is None else np.intersect1d(some, self._holding()))

    patch.setattr(SlotBackend, "_frozen", holding)


def a_declined_run_is_used(patch: pytest.MonkeyPatch) -> None:
    """Whatever is written last is taken for complete."""
    plan = RunLedger.plan

    def planned(self: RunLedger, checkpoint_id: CheckpointId, count: int) -> RunPlan:
        if self._newest is not None:
            self.complete(self._newest.checkpoint_id)
        return plan(self, checkpoint_id, count)

    patch.setattr(RunLedger, "plan", planned)


@pytest.mark.parametrize(
    "mutant",
    [
        a_run_is_used_though_a_snapshot_since_did_without,
        changes_are_forgotten_when_a_snapshot_is_taken,
        keys_that_hold_nothing_are_not_in_a_run,
        a_declined_run_is_used,
    ],
)
def test_courses_find_a_mistake(mutant: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    with pytest.raises(AssertionError, match="seed") as found:
        play(Compiled(), range(60))
    assert isinstance(found.value.__cause__, AssertionError | MissingState)


def filled(kind: Kind, keys: int) -> IncrementalStage:
    """With one checkpoint of so many keys."""
    stage = IncrementalStage(kind)
    kind.put(stage.backend, range(keys), 0)
    stage.complete(stage.take())
    return stage


@EACH
def test_a_checkpoint_without_changes_writes_no_run(kind: Kind) -> None:
    stage = filled(kind, 100)
    files = set(stage.storage.list_files())
    taken = stage.take()
    state = stage.acknowledge(taken)
    assert len(set(stage.storage.list_files()) - files) == 1, "the list of runs"
    assert stage.runs(state) == 1
    stage.close()


@EACH
def test_a_savepoint_stands_by_itself(kind: Kind) -> None:
    stage = filled(kind, 100)
    taken = stage.take(is_savepoint=True)
    state = stage.acknowledge(taken)
    assert stage.runs(state) == 0
    stage.close()
