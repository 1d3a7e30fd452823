"""Polls sources whose records come from a thread, until something is there; nothing here asserts a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from understudy import END, Source
from understudy.actors.operators.source import FromSplit

from ..harness import make_context

WAIT_S = 30


class Driven:
    """One attempt of one source subtask, opened; `offset` continues an earlier one."""

    def __init__(self, source: Source, offset: Any = None, **where: Any) -> None:
        self.source = source
        self._woken = threading.Event()
        source.context = make_context(**where)
        source.context.wake = self._woken.set
        source.open()
        if offset is not None:
            source.seek(offset)

    def poll(self) -> Any:
        """The next batch or END; waits for it."""
        until = time.monotonic() + WAIT_S
        while True:
            self._woken.clear()
            polled = self.source.poll()
            if polled is not None:
                return polled.records if isinstance(polled, FromSplit) else polled
            assert time.monotonic() < until, "waited in vain for a batch"
            self._woken.wait(0.5)

    def batches(self) -> Iterator[pa.RecordBatch]:
        while (batch := self.poll()) is not END:
            yield batch

    def rows(self) -> list[dict[str, Any]]:
        """All that is left."""
        return [row for batch in self.batches() for row in batch.to_pylist()]

    def take(self, number: int) -> list[dict[str, Any]]:
        """At least so many rows, in whole batches."""
        taken: list[dict[str, Any]] = []
        while len(taken) < number:
            taken += self.poll().to_pylist()
        return taken

    def until(self, holds: Callable[[], Any], what: str) -> Any:
        """Poll until something outside holds; what is polled meanwhile must be nothing."""
        deadline = time.monotonic() + WAIT_S
        while not (found := holds()):
            assert self.source.poll() is None
            assert time.monotonic() < deadline, f"waited in vain for {what}"
            time.sleep(0.01)
        return found

    def close(self) -> None:
        self.source.close()

    def __enter__(self) -> Driven:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
