"""An InletSource alone with a storage, and what is sent to it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pykka
import pytest

from understudy.actors.flow.records import rows_of
from understudy.actors.operators.task_access import TaskAccess
from understudy.messages import InletAnswer, JobId, SendToInlet, SubtaskIndex, pack_plain
from understudy.runtime.connectors import InletSource, SentRecords, to_payload
from understudy.state import CheckpointStorage

from ..harness import make_context

SCHEMA = pa.schema([("number", pa.int64())])


class Stage:
    """One attempt. What it has done aside is done when the test says so."""

    def __init__(
        self,
        folder: Path,
        *,
        attempt: int = 0,
        offset: Any = None,
        offsets: Any = None,
        where: tuple[int, int] = (0, 1),
        job: str = "job-a",
        from_savepoint: bool = False,
        settled: bool = True,
        max_parallelism: int = 128,
        **options: Any,
    ) -> None:
        self.aside: deque[Callable[[], object]] = deque()
        storage = CheckpointStorage(str(folder))
        root = storage.location() if job != "job-a" else ""
        access = TaskAccess(
            storage, CheckpointStorage, root, from_savepoint, (), self._run_aside, lambda: pykka.ThreadingFuture()
        )
        self.source = InletSource(**options)
        context = make_context(*where, attempt=attempt, job=job)
        self.source.context = replace(context, task=access, max_parallelism=max_parallelism)
        self.source.open()
        if offset is not None:
            self.source.seek(offset)
        if offsets is not None:
            self.source.rescale(offsets)
        if settled:
            self.source._read_on()
            self.settle()

    def _run_aside(self, work: Callable[[], Any], done: Callable[[Any], Any], failed: Callable[[Any], Any]) -> None:
        def run() -> None:
            try:
                found = work()
            except OSError as error:
                failed(error)
            else:
                done(found)

        self.aside.append(run)

    def settle(self) -> None:
        while self.aside:
            self.aside.popleft()()
            if not self.source._has_read:
                self.source._read_on()

    def send(self, *sent: SentRecords) -> Any:
        """What it promises."""
        request = SendToInlet(JobId("job-a"), "operator", SubtaskIndex(0), to_payload(sent))
        return self.source.on_receive(request)

    def sent(self, *sent: SentRecords) -> InletAnswer:
        """What it answers in the end."""
        promise = self.send(*sent)
        self.settle()
        return answer_of(promise)

    def emitted(self) -> list[Any]:
        found: list[Any] = []
        while isinstance(batch := self.source.poll(), list | pa.RecordBatch):
            found += batch if isinstance(batch, list) else [row.number for row in rows_of(batch)]
            self.settle()
        return found


def answer_of(promise: Any) -> InletAnswer:
    found: InletAnswer = promise.get(timeout=0)
    return found


def is_open(promise: Any) -> bool:
    with pytest.raises(pykka.Timeout):
        promise.get(timeout=0)
    return True


def numbers(sender: str, first: int, last: int) -> SentRecords:
    """What a sender sends under these numbers: the numbers themselves."""
    records = range(first, last + 1)
    return SentRecords(sender, first, len(records), False, b"".join(map(pack_plain, records)))
