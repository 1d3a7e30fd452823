"""Mutants of outlets: what is committed, what a restore makes of it, and what readers are given."""

from __future__ import annotations

from typing import Any

from understudy.runtime.connectors.files.outlet_sink import OutletSink
from understudy.runtime.simulation.histories.outlet_readers import ORACLE
from understudy.runtime.simulation.histories.scenario import Scenario
from understudy.state.outlets import segments
from understudy.state.outlets.lineage import OutletLineage

from .mutant import EARLY, LEAKED, Patch, mutant, nothing


def followed(seed: int) -> Scenario:
    """Any history of the job that has an outlet."""
    return Scenario.of(seed, "followed")


@mutant(EARLY, ORACLE, within=40, scenarios=followed)
def outlets_commit_at_the_barrier(patch: Patch) -> None:
    on_checkpoint = OutletSink.on_checkpoint

    def hasty(self: Any, checkpoint_id: Any) -> None:
        on_checkpoint(self, checkpoint_id)
        self.commit(self._pending[-1].handle)
        self._pending[-1].handle["segments"].clear()

    patch.setattr(OutletSink, "on_checkpoint", hasty)


@mutant(ORACLE, within=40, scenarios=followed)
def the_end_of_an_outlet_is_not_in_its_state(patch: Patch) -> None:
    restored = OutletSink._restored_lineage

    def forget(self: OutletSink) -> tuple[OutletLineage, int]:
        lineage, _ = restored(self)
        return OutletLineage(lineage.outlet, ()), 0

    patch.setattr(OutletSink, "_restored_lineage", forget)


@mutant(ORACLE, within=40, scenarios=followed)
def the_branches_of_an_outlet_are_not_in_its_state(patch: Patch) -> None:
    """It goes on at its end, and does not know who has written what is before it."""
    restored = OutletSink._restored_lineage

    def forget(self: OutletSink) -> tuple[OutletLineage, int]:
        lineage, end = restored(self)
        return OutletLineage(lineage.outlet, ()), end

    patch.setattr(OutletSink, "_restored_lineage", forget)


@mutant(ORACLE, within=40, scenarios=followed)
def records_are_deleted_before_they_are_too_old(patch: Patch) -> None:
    def all_but_the_newest(self: OutletSink, newest_from: int) -> list[segments.Segment]:
        found = []
        while self._kept and self._kept[0].first < newest_from:
            found.append(self._kept.popleft())
        return found

    patch.setattr(OutletSink, "_superfluous", all_but_the_newest)


@mutant(ORACLE, within=150, scenarios=followed)
def a_fork_is_not_noticed(patch: Patch) -> None:
    """Whoever has read what counts no more goes on at the same position."""
    patch.setattr(OutletLineage, "_common_with", lambda self, branch, end: 1 << 60)


@mutant(ORACLE, within=40, scenarios=followed)
def a_reader_is_told_the_cursor_before_its_records(patch: Patch) -> None:
    cursor = OutletLineage.cursor
    patch.setattr(OutletLineage, "cursor", lambda self, position: cursor(self, max(0, position - 1)))


@mutant(LEAKED, within=80, scenarios=followed)
def what_crashed_writers_have_left_stays(patch: Patch) -> None:
    patch.setattr(OutletSink, "_remove_leftovers", nothing)
