"""Mutants of inlets: records are acknowledged too early, counted twice, or not found again in the log."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from understudy.actors.checkpoints.checkpoint_tasks import CheckpointTasks
from understudy.messages import InletAnswer
from understudy.runtime.connectors.inlet.inlet_source import InletSource
from understudy.runtime.connectors.inlet.sent_records import SentRecords
from understudy.runtime.simulation.histories.mix import standard_history
from understudy.runtime.simulation.histories.scenario import Scenario
from understudy.runtime.simulation.histories.topologies import Workload
from understudy.runtime.simulation.world.faults import FreezeProcess, PowerFailure
from understudy.state import DurableFiles, record_log

from .mutant import LIVENESS, OUTPUT, Patch, mutant

ACKNOWLEDGED = "nothing-acknowledged-is-lost"


def sent_in(seed: int) -> Scenario:
    return standard_history(seed, "inlet")


@mutant(ACKNOWLEDGED, LIVENESS, within=40, scenarios=sent_in)
def records_are_acknowledged_before_they_are_written(patch: Patch) -> None:
    write = InletSource._write

    def early(self: InletSource) -> None:
        for _, promise in self._next.waiting:
            promise.set(InletAnswer({}))
        self._next.waiting.clear()
        write(self)

    patch.setattr(InletSource, "_write", early)


@mutant(ACKNOWLEDGED, LIVENESS, within=40, scenarios=sent_in)
def what_was_written_is_not_synced(patch: Patch) -> None:
    """The power takes it."""

    def append(self: Any, data: bytes) -> None:
        self._file.write(data)
        self._file.flush()

    patch.setattr(record_log._GrowingSegment, "append", append)


def frozen_before_the_power_fails(seed: int) -> Scenario:
    """The power fails while a TaskManager stands still in the middle of an operation, and its successor runs."""
    workload = Workload(records=19, keys=1, parallelism=1, records_per_second=2.7)
    frozen = FreezeProcess(at_ms=1800.0, for_ms=4000.0, who=1, operations=seed % 8)
    return Scenario(seed, "inlet-columns", workload, faults=(frozen, PowerFailure(at_ms=5000.0)))


@mutant(ACKNOWLEDGED, LIVENESS, within=40, scenarios=frozen_before_the_power_fails)
def what_was_read_is_not_synced(patch: Patch) -> None:
    """Its writer did not come to it."""
    patch.setattr(DurableFiles, "sync_found", lambda self, path, top: None)


@mutant(OUTPUT, ACKNOWLEDGED, LIVENESS, within=20, scenarios=sent_in)
def the_last_numbers_are_not_in_the_checkpoint(patch: Patch) -> None:
    offset = InletSource.offset
    patch.setattr(InletSource, "offset", lambda self: offset(self) | {"senders": {}})


@mutant(OUTPUT, ACKNOWLEDGED, LIVENESS, within=20, scenarios=sent_in)
def the_log_is_read_from_one_record_later_on(patch: Patch) -> None:
    read = InletSource._read
    patch.setattr(InletSource, "_read", lambda self, chunk: read(self, replace(chunk, sent=chunk.sent[1:])))


@mutant(OUTPUT, within=20, scenarios=sent_in)
def records_that_are_there_are_taken_again(patch: Patch) -> None:
    new_of = InletSource._new_of

    def again(self: InletSource, sent: SentRecords, numbers: Any) -> SentRecords | None:
        return new_of(self, sent, numbers) or (sent if sent.rows else None)

    def take(self: InletSource, records: Iterable[SentRecords], payload: bytes) -> None:
        for each in records:
            if each.rows:
                self._taken.set(each.sender, max(each.last, self._taken.last(each.sender)))
                self._next.sent.append(each)
        if self._next.sent:
            self._next.payloads.append(payload)

    patch.setattr(InletSource, "_new_of", again)
    patch.setattr(InletSource, "_take", take)


@mutant(OUTPUT, ACKNOWLEDGED, LIVENESS, within=40, scenarios=sent_in)
def the_log_is_removed_before_the_checkpoint_is_complete(patch: Patch) -> None:
    on_checkpoint = InletSource.on_checkpoint

    def removing(self: InletSource, checkpoint_id: Any) -> None:
        on_checkpoint(self, checkpoint_id)
        self._log.remove(f"{self._log.own.segment}~")

    patch.setattr(InletSource, "on_checkpoint", removing)


@mutant(ACKNOWLEDGED, LIVENESS, OUTPUT, within=60, scenarios=sent_in)
def what_the_newest_checkpoint_does_not_need_is_forgotten(patch: Patch) -> None:
    """An older one is restored, if that one is unreadable."""

    notify = CheckpointTasks.notify_complete

    def newest(self: CheckpointTasks, done: Any, oldest: Any) -> Any:
        return notify(self, done, None if oldest is None else done.checkpoint_id)

    patch.setattr(CheckpointTasks, "notify_complete", newest)
