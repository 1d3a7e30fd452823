"""SourceContract: what every replayable source must do. Subclass it and say how to make one.

"A source is replayable: it yields batches from an offset, and its offset is operator state" (DESIGN, section 3).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, repeat
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from understudy.actors.flow.elements import Batch
from understudy.actors.flow.records import rows_of
from understudy.actors.operators.source import END, FromSplit, RecordedOffset, Source, continue_source
from understudy.messages import pack_plain, unpack_plain

from ..runtime.connectors.harness import ManualClock, make_context

RECORDS = 60
"""Every source made for the contract has so many different records."""

MOST_OPEN = 16
"""No test needs more attempts at a time; older ones are closed, as they may have threads and connections."""

relaxed = settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.differing_executors],  # one contract, many sources
)


class SourceContract(ABC):
    """Records are compared as Python values, so that columns and lists pass the same tests."""

    @abstractmethod
    def make_source(self, batch_rows: int, records_per_second: float | None) -> Source:
        """A fresh source of RECORDS records, as each attempt gets one."""

    _runs: list[_Run]

    @pytest.fixture(autouse=True)
    def _close_all(self) -> Iterator[None]:
        self._runs = []
        yield
        self.close_all()

    def close_all(self) -> None:
        """Sources may have threads and connections."""
        while self._runs:
            self._runs.pop().source.close()

    def resources(self, subtask: int, parallelism: int, batch_rows: int) -> dict[str, Any]:
        """What the TaskManager lends to it."""
        return {}

    def advance(self, source: Source, clock: ManualClock) -> None:
        """`poll` returned None: let the world go on."""
        delay_ms = source.poll_delay_ms()
        assert delay_ms is not None
        assert delay_ms > 0
        clock.ms += delay_ms

    @relaxed
    @given(batch_rows=st.integers(1, 70), parallelism=st.integers(1, 4))
    def test_the_subtasks_together_read_everything_once(self, batch_rows: int, parallelism: int) -> None:
        union = [
            record
            for subtask in range(parallelism)
            for record in _records(_Run(self, subtask, parallelism, batch_rows).rest())
        ]
        assert len(union) == RECORDS
        assert len(set(map(pack_plain, union))) == RECORDS

    @relaxed
    @given(batch_rows=st.integers(1, 70), parallelism=st.integers(1, 3), data=st.data())
    def test_an_offset_leads_to_the_same_remaining_records(
        self, batch_rows: int, parallelism: int, data: st.DataObject
    ) -> None:
        subtask = data.draw(st.integers(0, parallelism - 1))
        run = _Run(self, subtask, parallelism, batch_rows)
        seen: list[Any] = []
        offsets = [(0, run.offset())]
        for batch in run.rest():
            seen += _records([batch])
            offsets.append((len(seen), run.offset()))
        for taken, offset in data.draw(st.lists(st.sampled_from(offsets), min_size=1, max_size=3)):
            again = _Run(self, subtask, parallelism, batch_rows, offset)
            assert _records(again.rest()) == seen[taken:]

    @relaxed
    @given(rate=st.floats(0.5, 5000), parallelism=st.integers(1, 3))
    def test_a_paced_source_keeps_to_its_share_of_the_rate(self, rate: float, parallelism: int) -> None:
        clock = ManualClock()
        run = _Run(self, 0, parallelism, 1000, records_per_second=rate, clock=clock)
        taken = 0
        for batch in run.rest():
            taken += len(batch)
            assert taken <= clock.ms / 1000 * rate / parallelism + 1.001

    @relaxed
    @given(batch_rows=st.integers(1, 70))
    def test_the_end_stays_the_end_and_can_be_sought(self, batch_rows: int) -> None:
        run = _Run(self, 0, 1, batch_rows)
        assert _records(run.rest())
        assert run.source.poll() is END
        assert _records(_Run(self, 0, 1, batch_rows, run.offset()).rest()) == []

    @settings(relaxed, max_examples=40)
    @given(stages=st.lists(st.tuples(st.integers(1, 5), st.integers(1, 20)), min_size=2, max_size=5), data=st.data())
    def test_after_any_change_of_parallelism_every_record_has_come_once(
        self, stages: list[tuple[int, int]], data: st.DataObject
    ) -> None:
        """`stages`: parallelism and batch_rows of jobs, each restored from a savepoint of the one before; every subtask
        has had so many polls when it is taken."""
        seen: list[Any] = []
        recorded: list[RecordedOffset] = []
        for parallelism, batch_rows in stages:
            runs = [_Run(self, subtask, parallelism, batch_rows, recorded=recorded) for subtask in range(parallelism)]
            for run in runs:
                seen += _records(islice(run.rest(), data.draw(st.integers(0, 8))))
            recorded = [RecordedOffset(subtask, parallelism, run.offset()) for subtask, run in enumerate(runs)]
        for subtask, parallelism in enumerate(repeat(stages[-1][0], stages[-1][0])):
            seen += _records(_Run(self, subtask, parallelism, 7, recorded=recorded).rest())
        assert Counter(map(pack_plain, seen)) == Counter(map(pack_plain, self.everything()))

    def everything(self) -> list[Any]:
        return _records(_Run(self, 0, 1, 10).rest())

    def test_the_schema_is_that_of_the_batches(self) -> None:
        run = _Run(self, 0, 1, 10)
        schema = run.source.source_schema()
        for batch in run.rest():
            assert (batch.schema if isinstance(batch, pa.RecordBatch) else None) == schema


class _Run:
    """One attempt of one subtask."""

    def __init__(
        self,
        contract: SourceContract,
        subtask: int,
        parallelism: int,
        batch_rows: int,
        offset: Any = None,
        records_per_second: float | None = None,
        clock: ManualClock | None = None,
        recorded: Sequence[RecordedOffset] = (),
    ) -> None:
        self._contract, self._clock = contract, clock or ManualClock()
        self.source = contract.make_source(batch_rows, records_per_second)
        resources = contract.resources(subtask, parallelism, batch_rows)
        self.source.context = make_context(subtask, parallelism, clock=self._clock, resources=resources)
        self.source.open()
        continue_source(self.source, recorded)
        if offset is not None:
            self.source.seek(offset)
        contract._runs.append(self)
        while len(contract._runs) > MOST_OPEN:
            contract._runs.pop(0).source.close()

    def offset(self) -> Any:
        """As it comes back from a checkpoint."""
        return unpack_plain(pack_plain(self.source.offset()))

    def rest(self) -> Iterator[Batch]:
        """All batches until the end."""
        while (polled := self.source.poll()) is not END:
            batch = polled.records if isinstance(polled, FromSplit) else polled
            if batch is None:
                self._contract.advance(self.source, self._clock)
            else:
                assert len(batch), "a batch is never empty"
                yield batch


def _records(batches: Iterable[Batch]) -> list[Any]:
    return [record for batch in batches for record in (rows_of(batch) if isinstance(batch, pa.RecordBatch) else batch)]
