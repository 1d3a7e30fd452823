"""OutletReaders: readers that follow the outlet of a history's jobs, stop, and go on from the cursor that they stored.

Each stores its cursor together with what it has read, as `docs/service.md` has it. Now and then one loses what it was
just given, before that is stored, and begins again. When the job has gone back (CursorForked), a reader undoes what
came after the place that the error names, and goes on. So whatever happens, what it has stored is the outlet, in order
and once; at the end it is compared with the outlet read from its beginning, and that with what the job was to put out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

from ....actors.ask_errors import ActorDead
from ....messages import OutletAnswer, ReadOutlet
from ....state.outlets.lineage import CURSOR
from ....state.outlets.segments import records_of
from ...oracles import Violation
from ...system import ActorFuture
from ..world.cluster import SimulatedCluster
from .lineage import Lineage
from .outlet_topologies import OUTLET

READERS = 3
ORACLE = "outlet-exactly-once"
"""Readers do not have the records of the outlet."""

_WAIT_MS = 5_000
_PAUSE_MS = 400.0
_LOSES = 0.2
_SMALL, _LARGE = 1, 1 << 20


@dataclass(slots=True)
class Reader:
    """One reader. `stored`: (position behind them, records), in order."""

    number: int
    cursor: str = ""
    stored: list[tuple[int, list[Any]]] = field(default_factory=list)
    answers: int = 0
    is_over: bool = False

    @property
    def records(self) -> list[Any]:
        return [record for _, records in self.stored for record in records]


class OutletReaders:
    """Of one history."""

    def __init__(
        self,
        cluster: SimulatedCluster,
        lineage: Lineage,
        report: Callable[[Violation], None],
        is_alone: Callable[[], bool],
    ) -> None:
        self._cluster = cluster
        self._lineage = lineage
        self._report = report
        self._is_alone = is_alone
        self._chance = cluster.world.chance("readers of outlets")
        self._readers = [Reader(number) for number in range(READERS)]
        self._is_ending = False

    def begin(self) -> None:
        """Once there is a job."""
        for reader in self._readers:
            self._ask(reader)

    def end(self) -> None:
        """The last job has ended: let all read to the end, and compare them with one that reads from the beginning."""
        self._is_ending = True
        if self._is_alone():
            return
        last = Reader(READERS)
        self._ask(last)
        everybody = [*self._readers, last]
        limit_ms = self._cluster.now_ms + 20 * _WAIT_MS
        self._cluster.world.run_until(lambda: all(each.is_over for each in everybody), limit_ms)
        self.all = last.records
        for reader in everybody:
            if not reader.is_over:
                self._broken(f"reader {reader.number} does not come to the end of the outlet")
            elif reader.records != self.all:
                self._broken(f"reader {reader.number} has {reader.records}, and the outlet {self.all}")

    all: list[Any] | None = None
    """What the outlet has at the end, if it was read."""

    def _broken(self, problem: str) -> None:
        self._report(Violation(ORACLE, problem))

    def _ask(self, reader: Reader) -> None:
        if self._is_alone() or reader.is_over:
            return
        size = self._chance.choice((_SMALL, _LARGE))
        question = ReadOutlet(self._lineage.latest.job_id, OUTLET, reader.cursor, False, size, _WAIT_MS)
        answer = cast("ActorFuture[OutletAnswer]", self._cluster.job_manager.ask(question, timeout_ms=math.inf))
        answer.add_done_callback(lambda done: self._answered(reader, question, done))

    def _answered(self, reader: Reader, question: ReadOutlet, done: Any) -> None:
        """Asks again later: who reads does not hold up who answers."""
        try:
            self._take(reader, question, done.get())
        except ActorDead:
            return
        except OSError:  # storage is in trouble
            pass
        pause_ms = _PAUSE_MS * self._chance.choice((0.1, 1, 10))
        self._cluster.world.after(pause_ms, None, self._ask, reader)

    def _take(self, reader: Reader, question: ReadOutlet, answer: OutletAnswer) -> None:
        reader.answers += 1
        if answer.refusal is not None:
            self._refused(reader, answer)
        elif answer.parts and self._chance.random() >= _LOSES:
            for part in answer.parts:
                records = list(records_of(part.data))
                if len(records) != part.rows:
                    self._broken(f"a part of {part.rows} rows has {records}")
                reader.stored.append((position_of(part.cursor), records))
            reader.cursor = answer.cursor
        is_latest = question.job_id == self._lineage.latest.job_id
        reader.is_over = answer.is_over and self._is_ending and is_latest

    def _refused(self, reader: Reader, answer: OutletAnswer) -> None:
        refusal = answer.refusal
        assert refusal is not None
        if refusal.kind != "forked":
            self._broken(f"cursor {reader.cursor} is refused as {refusal.kind}: {refusal.text}")
            reader.is_over = True
            return
        back = position_of(refusal.go_on_from)
        reader.stored = [(position, records) for position, records in reader.stored if position <= back]
        reader.cursor = refusal.go_on_from if back else ""
        if back != (reader.stored[-1][0] if reader.stored else 0):
            self._broken(f"reader {reader.number} is to go on from {refusal.go_on_from}, where no batch had ended")
            reader.is_over = True


def position_of(cursor: str) -> int:
    """How many records are before it."""
    found = CURSOR.fullmatch(cursor)
    assert found is not None, cursor
    return int(found["position"])
