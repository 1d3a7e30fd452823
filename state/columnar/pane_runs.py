"""Runs of rows of panes and windows, on their way out of a PaneTable: to results, to partials, or into a snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ..columns.column_values import Numbers
from ..keys.word_table import Slots
from .pane import Pane
from .pane_windows import Rows
from .part_columns import Values, joined_values, values_at


class Run(NamedTuple):
    """Rows of one window, or one pane, that are given out."""

    start: int
    end: int
    slots: Slots
    values: Values


class LeavingWindow:
    """A window that has fired: its pane takes no more in. From place `at` on its rows have not been given out."""

    def __init__(self, start: int, end: int, pane: Pane) -> None:
        self.start, self.end, self.pane, self.at = start, end, pane, 0

    def __len__(self) -> int:
        return len(self.pane) - self.at

    def next_run(self, most_rows: int) -> Run:
        places = slice(self.at, min(self.at + most_rows, len(self.pane)))
        return Run(self.start, self.end, self.pane.slots[places], values_at(self.pane.values(), places))


def rows_of(batch: pa.RecordBatch, rows: Rows) -> pa.RecordBatch:
    if isinstance(rows, slice):
        return batch.slice(rows.start, rows.stop - rows.start)
    return batch.take(pa.array(rows))


def field_of_rows(runs: Sequence[Run], field: str) -> Numbers:
    """A field of the run for each of its rows."""
    return np.repeat(np.array([getattr(run, field) for run in runs], np.int64), [len(run.slots) for run in runs])


def joined_runs(runs: Sequence[Run]) -> tuple[Slots, Values]:
    """The slots and values of all."""
    slots = runs[0].slots if len(runs) == 1 else np.concatenate([run.slots for run in runs])
    return slots, joined_values([run.values for run in runs])
