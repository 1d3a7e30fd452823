"""Runs of an incremental checkpoint of columnar windows: what a run says of itself, and what several say together.

A run has all rows of the keys that have changed, and takes the place of what older runs say of these keys. Two things
need no row of their own:

- A pane that has closed is gone for all keys at once. Panes close in their order, so each run says from which one on
  they are still there: what the newest run says holds for the rows of all.
- A key that has no session any more has one of no rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ..keys.key_index import KeyIndex
from .window_rows import WindowRows

RUN = "run"
"""The key in a header; older snapshots, and whole ones that are no run, do not have it."""


def about_run(rows: WindowRows, kept_from: tuple[str, int] | None) -> dict[str, Any]:
    """For the header. `kept_from`: a column, and its least value in the rows that are still there, of all keys."""
    return {RUN: {"rows": rows.rows_name, "from": None if kept_from is None else list(kept_from)}}


def newest_windows(runs: Sequence[pa.RecordBatch], rows: WindowRows, header: Mapping[str, Any]) -> pa.RecordBatch:
    """The rows that are left of these runs, the oldest first; `header`: that of the newest one. Raises InvalidKey,
    LookupError, TypeError or ValueError for batches that are no such runs.
    """
    index = KeyIndex(list(rows.keys.values()))
    slots = [index.slots_of(rows.key_columns(batch)) for batch in runs]
    newest = np.zeros(len(index), np.int64)
    for number, own in enumerate(slots):
        newest[own] = number
    left = [
        batch.filter(pa.array(newest[own] == number))
        for number, (batch, own) in enumerate(zip(runs, slots, strict=True))
    ]
    return without_gone(pa.concat_batches(left), header)


def without_gone(rows: pa.RecordBatch, header: Mapping[str, Any]) -> pa.RecordBatch:
    """Rows of runs without those that are not there any more. Raises LookupError, TypeError or ValueError."""
    count, kept_from = header[RUN]["rows"], header[RUN]["from"]
    is_there = rows.column(count).to_numpy() > 0
    if kept_from is not None:
        place, least = kept_from
        is_there &= rows.column(place).to_numpy() >= least
    return rows if is_there.all() else rows.filter(pa.array(is_there))
