"""Mutants of windows and joins: what they hold is lost or counted twice, late records count, sessions merge wrongly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow.compute as pc

from understudy.actors.flow.elements import END_OF_TIME, NO_WATERMARK
from understudy.actors.joins.record_interval_join import RecordIntervalJoin
from understudy.actors.operators.timers import Timers
from understudy.actors.windows.window_operator import WindowOperator
from understudy.runtime.simulation.histories import time_themes
from understudy.runtime.simulation.histories.windowed_topologies import LATENESS_MS
from understudy.state.backends import heap_accessors
from understudy.state.columnar.pane_table import PaneTable
from understudy.state.columnar.session_table import SessionTable

from .mutant import OUTPUT, Patch, mutant, nothing
from .time_mutants import led


@mutant(OUTPUT, within=10, scenarios=led(time_themes.event_time, "latecomers"))
def late_records_count(patch: Patch) -> None:
    _by_another_watermark(patch, lambda watermark_ms: NO_WATERMARK)


@mutant(OUTPUT, within=10, scenarios=led(time_themes.event_time, "latecomers"))
def records_that_are_allowed_to_be_late_do_not_count(patch: Patch) -> None:
    _by_another_watermark(patch, lambda watermark_ms: min(watermark_ms + LATENESS_MS, END_OF_TIME))


def _by_another_watermark(patch: Patch, other: Callable[[int], int]) -> None:
    process = WindowOperator.process

    def judging(self: WindowOperator, record: Any, out: Any) -> None:
        before, self.watermark = self.watermark, other(self.watermark)
        process(self, record, out)
        self.watermark = before

    patch.setattr(WindowOperator, "process", judging)


@mutant(OUTPUT, within=10, scenarios=led(time_themes.event_time, "sessions"))
def sessions_merge_without_their_timer(patch: Patch) -> None:
    """What was set for the parts is deleted, and nothing is set for the whole."""
    add, merge_into = WindowOperator._add, WindowOperator._merge_into

    def merged(self: WindowOperator, merge: Any, windows: Any) -> None:
        self.timers = _Deleting(self.timers)  # type: ignore[assignment]
        merge_into(self, merge, windows)

    def added(self: WindowOperator, *args: Any) -> None:
        add(self, *args)
        self.timers = getattr(self.timers, "timers", self.timers)

    patch.setattr(WindowOperator, "_merge_into", merged)
    patch.setattr(WindowOperator, "_add", added)


class _Deleting:
    """Timers of which none can be set."""

    at_event_time = nothing

    def __init__(self, timers: Timers) -> None:
        self.timers = timers
        self.delete_event_time = timers.delete_event_time


@mutant(OUTPUT, within=10, scenarios=led(time_themes.event_time, "sessions"))
def sessions_that_merge_lose_what_they_held(patch: Patch) -> None:
    for accessor in vars(heap_accessors).values():
        if isinstance(accessor, type) and "merge_namespaces" in vars(accessor):
            patch.setattr(accessor, "merge_namespaces", nothing)


@mutant(OUTPUT, within=60, scenarios=led(time_themes.event_time, "panes"))
def panes_are_restored_one_slide_late(patch: Patch) -> None:
    _columns_moved(patch, PaneTable, "_pane_name")


@mutant(OUTPUT, within=60, scenarios=led(time_themes.event_time, "panes"))
def panes_that_fired_in_part_are_not_restored(patch: Patch) -> None:
    stored = PaneTable.stored

    def forgetful(self: PaneTable, some: Any = None) -> Any:
        panes = self._panes._panes
        self._panes._panes = dict(list(panes.items())[1:])
        try:
            return stored(self, some)
        finally:
            self._panes._panes = panes

    patch.setattr(PaneTable, "stored", forgetful)


@mutant(OUTPUT, within=60, scenarios=led(time_themes.event_time, "visits"))
def columnar_sessions_that_were_emitted_are_bridged(patch: Patch) -> None:
    """A restored session is longer than it was, and takes in the next one."""
    restore = SessionTable.restore

    def longer(self: SessionTable, batch: Any) -> None:
        last = batch.schema.get_field_index(self._names[1])
        later = pc.add(batch.column(last), 2_000)
        restore(self, batch.set_column(last, batch.schema.field(last), later))

    patch.setattr(SessionTable, "restore", longer)


@mutant(OUTPUT, within=60, scenarios=led(time_themes.event_time, "either"))
def a_join_forgets_what_has_had_a_match(patch: Patch) -> None:
    take = RecordIntervalJoin._take

    def forgetful(self: RecordIntervalJoin, side: int, record: Any, out: Any) -> None:
        take(self, side, record, out)
        for state in (self._left, self._right):
            state.update([[held[0], held[1], False] for held in state.get()])

    patch.setattr(RecordIntervalJoin, "_take", forgetful)


def _columns_moved(patch: Patch, table: type[PaneTable], attribute: str) -> None:
    restore = table.restore

    def moved(self: Any, batch: Any) -> None:
        place = batch.schema.get_field_index(getattr(self, attribute))
        restore(self, batch.set_column(place, batch.schema.field(place), pc.add(batch.column(place), 1)))

    patch.setattr(table, "restore", moved)
