"""An outside system with one atomic act, on a bad day if a test wants one, and a LedgerSink into it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from understudy.actors.errors import MarkerMoved
from understudy.actors.operators.ledger_sink import LedgerSink
from understudy.actors.operators.marker import Marker


class Ledger:
    """Rows and markers. `bad_day`: what the next acts do, one each: None does it, "refuses", "loses the answer"."""

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self.markers: dict[str, int] = {}
        self.bad_day: list[str | None] = []
        self.acts: list[Marker] = []
        self.reads = 0
        self.is_away = False

    def act(self, rows: list[Any], marker: Marker) -> None:
        day = self.bad_day.pop(0) if self.bad_day else None
        if self.is_away or day == "refuses":
            raise ConnectionError("the ledger is away")
        found = self.markers.get(marker.writer, 0)
        if found != marker.after:
            raise MarkerMoved(marker.writer, marker.after, found)
        self.acts.append(marker)
        self.rows += rows
        self.markers[marker.writer] = marker.sequence
        if day == "loses the answer":
            raise ConnectionError("no answer")

    def read(self, writer: str) -> int | None:
        self.reads += 1
        if self.is_away:
            raise ConnectionError("the ledger is away")
        return self.markers.get(writer)


LEDGERS: dict[str, Ledger] = {}
"""By name: a harness pickles its operators."""


class IntoLedger(LedgerSink):
    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def ledger(self) -> Ledger:
        return LEDGERS[self.name]

    def apply(self, batches: list[Any], marker: Marker) -> None:
        rows = [[batch] if isinstance(batch, pa.RecordBatch) else batch for batch in batches]
        self.ledger.act([row for each in rows for row in each], marker)

    def last_marker(self, writer: str) -> int | None:
        return self.ledger.read(writer)
