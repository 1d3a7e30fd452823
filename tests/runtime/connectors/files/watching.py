"""Attempts of a WatchedFileSource, with a clock of their own, and files for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from understudy.actors.flow.records import rows_of
from understudy.actors.operators.source import FromSplit, RecordedOffset, continue_source
from understudy.messages import pack_plain, unpack_plain
from understudy.runtime.connectors import WatchedFileSource

from ..harness import ManualClock, make_context

SCHEMA = pa.schema([("n", pa.int64())])


class Attempt:
    """One attempt of one subtask."""

    def __init__(
        self,
        folder: Path | str,
        where: tuple[int, int] = (0, 1),
        recorded: Any = (),
        clock: ManualClock | None = None,
        format: str = "csv",
        **options: Any,
    ) -> None:
        self.clock = clock or ManualClock()
        options = {"schema": SCHEMA, "settle_ms": 0, "batch_rows": 2} | options
        self.source = WatchedFileSource(str(folder), format, **options)
        self.source.context = make_context(*where, clock=self.clock)
        self.source.open()
        continue_source(self.source, recorded)
        self.where = where

    def polls(self, most: int = 1_000) -> list[int]:
        """What comes until there is nothing at the moment, in at most so many polls."""
        found: list[int] = []
        for _ in range(most):
            polled = self.source.poll()
            if polled is None:
                break
            assert isinstance(polled, FromSplit)
            found += [row.n for row in rows_of(polled.records)]
        return found

    def look(self) -> list[int]:
        """What comes of another look."""
        self.clock.ms += self.source.watch_ms
        return self.polls()

    def recorded(self) -> RecordedOffset:
        return RecordedOffset(*self.where, unpack_plain(pack_plain(self.source.offset())))


def write(folder: Path, name: str, *numbers: int) -> Path:
    path = folder / name
    path.write_text("n\n" + "".join(f"{number}\n" for number in numbers))
    return path
