"""Runs of an incremental checkpoint of columnar windows: what a run says of itself, and what several say together.

A run has all rows of the keys that have changed, and takes the place of what older runs say of these keys. Two things
need no row of their own:

- A pane that has closed is gone for all keys at once. Panes close in their order, so each run says from which one on
  they are still there: what the newest run says holds for the rows of all.
- A key that has no session any more has one of no rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from .window_rows import WindowRows

RUN = "run"
"""The key in a header; older snapshots, and whole ones that are no run, do not have it."""


def about_run(rows: WindowRows, kept_from: tuple[str, int] | None) -> dict[str, Any]:
    """For the header. `kept_from`: a column, and its least value in the rows that are still there, of all keys."""
    return {RUN: {"rows": rows.rows_name, "from": None if kept_from is None else list(kept_from)}}


def without_gone(rows: pa.RecordBatch, header: Mapping[str, Any]) -> pa.RecordBatch:
    """Rows of runs without those that are not there any more. Raises LookupError, TypeError or ValueError."""
    count, kept_from = header[RUN]["rows"], header[RUN]["from"]
    is_there = rows.column(count).to_numpy() > 0
    if kept_from is not None:
        place, least = kept_from
        is_there &= rows.column(place).to_numpy() >= least
    return rows if is_there.all() else rows.filter(pa.array(is_there))
