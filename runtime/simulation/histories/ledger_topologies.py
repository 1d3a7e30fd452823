"""Ledger topologies: jobs that end in a LedgerSink, beside the sink that the other oracles look at.

A job may be set back, or go on twice from one savepoint, and rows that it has applied stay. So which rows count follows
from the notes that sinks leave in the ledger when they are opened: a fork of the last job counts whole, an earlier
one up to the sequence at which a later one has left it. Rows that count are exactly those that must come.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ....actors.errors import MarkerMoved
from ....actors.operators.ledger_sink import LedgerSink
from ....actors.operators.marker import Marker
from ...api.environment import StreamEnvironment
from ..world.fake_ledger import FakeLedger, NotThere
from .topologies import Topology, Workload, all_counts, by_name, counting_job, wrong_counts

LEDGER = FakeLedger("ledger")
EVER = 1 << 60


@dataclass(frozen=True, slots=True)
class Opened:
    """A subtask of the sink was opened, and counts under `fork`."""

    job: str
    subtask: int
    attempt: int
    fork: str
    left: tuple[tuple[str, int], ...]
    """The forks of the state that it was restored from, and how far each had counted there."""


class Booked(LedgerSink):
    """Rows as (fork, sequence, row): under which they were staged."""

    takes = "records"

    def apply(self, batches: list[Any], marker: Marker) -> None:
        try:
            LEDGER.act(marker.writer, marker.after, marker.sequence, [tuple(row) for row in batches])
        except NotThere as error:
            raise MarkerMoved(marker.writer, marker.after) from error

    def last_marker(self, writer: str) -> int | None:
        return LEDGER.read(writer)

    def stage(self, batches: list[Any]) -> Any:
        rows = [row for batch in batches for row in batch]
        return [[self._writer.name, self._sequence + 1, list(row)] for row in rows] or None

    def unstage(self, handle: Any) -> Any:
        return [(fork, sequence, tuple(row)) for fork, sequence, row in handle]

    def _restore_writer(self) -> None:
        super()._restore_writer()
        context = self.context
        left = tuple((name, sequence) for _, _, name, sequence in self._writers_state.get())
        opened = Opened(context.job_id, context.subtask_index, context.attempt_number, self._writer.name, left)
        LEDGER.contents.notes.append(opened)


def _booked(workload: Workload) -> StreamEnvironment:
    env, counts = counting_job(workload)
    counts.sink_to(Booked(), name="booked")
    return env


def counting(notes: Iterable[Opened]) -> dict[str, int]:
    """By fork, up to which sequence its rows count."""
    opened = list(notes)
    first: dict[str, Opened] = {}
    for each in opened:
        first.setdefault(each.fork, each)
    jobs = list(dict.fromkeys(each.job for each in opened))
    last: dict[int, Opened] = {}
    for each in opened:
        if each.job == jobs[-1] and (each.subtask not in last or each.attempt >= last[each.subtask].attempt):
            last[each.subtask] = each
    counts = {each.fork: EVER for each in last.values()}
    to_do = list(counts)
    while to_do:
        for fork, sequence in first[to_do.pop()].left:
            if fork in first and sequence > counts.get(fork, -1):
                counts[fork] = sequence
                to_do.append(fork)
    return counts


def _what_is_wrong(workload: Workload, is_whole: bool) -> str:
    contents = LEDGER.contents
    if not contents.notes:
        return "it was never opened" if is_whole else ""
    counts = counting(contents.notes)
    found = (row for fork, sequence, row in contents.rows if sequence <= counts.get(fork, -1))
    return wrong_counts(found, workload, is_whole=is_whole)


LEDGERS = by_name(Topology("booked", _booked, all_counts, counts_up=True, answer_ms=2_000.0, outside=_what_is_wrong))
