"""Partials that go by the numbers of their keys: the same comes of them as of partials with their keys."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.actors.errors import ChannelBroken
from understudy.actors.flow.elements import Element, KnownRows, NamedRows, NumberedRows, SlotRows
from understudy.actors.flow.key_selector import KeySelector
from understudy.actors.flow.known_keys_input import KnownKeysInput
from understudy.actors.flow.numbered_by_key import NumberedByKey
from understudy.actors.flow.output_buffer import OutputBuffer
from understudy.actors.flow.partitioner import MAX_BATCH_RECORDS, make_partitioner
from understudy.messages import ChannelId, Partitioning
from understudy.runtime.transport.frames import Header
from understudy.runtime.transport.payloads import decode_element, encode_element
from understudy.state.columnar.columnar_table import ColumnarTable
from understudy.state.columnar.known_rows import KnownKeys
from understudy.state.kinds.aggregates import Aggregate, Avg, Count, Max, Min, Sum

AGGREGATES: dict[str, Aggregate] = {
    "rows": Count(),
    "values": Count("v"),
    "sum": Sum("v"),
    "least": Min("v"),
    "most": Max("v"),
    "mean": Avg("f"),
    "late": Max("when"),
    "ever": Max("b"),
    "always": Min("b"),
}
KEYS: dict[str, dict[str, pa.DataType]] = {
    "integers": {"k": pa.int64()},
    "texts": {"k": pa.string()},
    "pairs": {"k": pa.string(), "part": pa.int16()},
    "distinct": {"k": pa.decimal128(30, 2)},
}
VALUES = {"v": pa.int32(), "f": pa.float32(), "when": pa.timestamp("ms"), "b": pa.bool_()}

rows = st.tuples(
    st.integers(0, 40),
    st.none() | st.integers(-(2**31), 2**31 - 1),
    st.none() | st.integers(-100, 100).map(float),
    st.none() | st.integers(0, 10**12),
    st.none() | st.booleans(),
)
STEPS = st.one_of(
    st.tuples(st.just("rows"), st.integers(0, 1), st.lists(rows, min_size=1, max_size=30)),
    st.tuples(st.just("flush"), st.integers(0, 1), st.none()),
    st.tuples(st.just("anew"), st.integers(0, 1), st.none()),
    st.tuples(st.just("deliver"), st.integers(0, 5), st.integers(1, 3)),
    st.tuples(st.just("restore"), st.none(), st.none()),
)


def batch_of(kinds: dict[str, pa.DataType], found: list[Any]) -> pa.RecordBatch:
    key, *values = zip(*found, strict=True)
    columns = {}
    for name, kind in kinds.items():
        made = pa.array([each % 3 for each in key] if name == "part" else key)
        columns[name] = made.cast(pa.int64()).cast(pa.string() if pa.types.is_string(kind) else kind)
    for (name, kind), column in zip(VALUES.items(), values, strict=True):
        columns[name] = pa.array(column, kind)
    return pa.RecordBatch.from_pydict(columns)


class Line:
    """A channel whose elements wait as bytes, or as they are."""

    def __init__(self, *, is_remote: bool, make_keys: Any) -> None:
        self.waiting: deque[Element] = deque()
        self._is_remote = is_remote
        self.input = KnownKeysInput(self, make_keys)  # type: ignore[arg-type]

    def send(self, element: Any) -> None:
        self.waiting += over_the_wire(element) if self._is_remote else (element,)

    def poll(self) -> Element | None:
        return self.waiting.popleft() if self.waiting else None


def over_the_wire(element: Any, **limits: int) -> Iterator[Element]:
    for content in encode_element(element, **limits):
        payload = content.payload
        assert payload is not None
        yield decode_element(Header(content.kind, ChannelId(1), 0, content.first, content.second), bytes(payload))


class Run:
    """Two producers, and as many consumers as channels. What is delivered is taken in a step later: until then the gate
    has it, as it may be read ahead.
    """

    def __init__(self, kinds: dict[str, pa.DataType], channels: int, is_remote: bool) -> None:
        self._kinds, self._channels, self._is_remote = kinds, channels, is_remote
        self._schema = pa.schema([*kinds.items(), *VALUES.items()])
        self.expected = self._local()
        self.consumers = [self._merging() for _ in range(channels)]
        self._connect()

    def _local(self) -> ColumnarTable:
        return ColumnarTable.for_input(list(self._kinds), AGGREGATES, self._schema)

    @property
    def _partials(self) -> pa.Schema:
        return self._local().partial_schema

    def _merging(self) -> ColumnarTable:
        return ColumnarTable.for_partials(list(self._kinds), AGGREGATES, self._partials)

    def _connect(self) -> None:
        self.locals = [self._local() for _ in range(2)]
        selector = KeySelector(*self._kinds)
        count = self._channels
        self._partitioners = [
            NumberedByKey(make_partitioner(Partitioning.HASH, channels=count, selector=selector), count)
            for _ in range(2)
        ]

        def make_keys(named: NamedRows) -> KnownKeys:
            return KnownKeys(list(self._kinds), AGGREGATES, named)

        self.lines = [[Line(is_remote=self._is_remote, make_keys=make_keys) for _ in range(count)] for _ in range(2)]
        self.read: list[list[deque[Any]]] = [[deque() for _ in range(count)] for _ in range(2)]

    def rows(self, producer: int, found: list[Any]) -> None:
        batch = batch_of(self._kinds, found)
        self.locals[producer].accumulate([batch])
        self.expected.update(batch)

    def flush(self, producer: int) -> None:
        for slot_rows in self.locals[producer].take_slot_rows():
            for channel, part in self._partitioners[producer].split(slot_rows):
                assert 0 < len(part) <= MAX_BATCH_RECORDS
                self.lines[producer][channel].send(part)

    def anew(self, producer: int) -> None:
        """The first phase gives its table up."""
        self.flush(producer)
        self.locals[producer] = self._local()

    def deliver(self, which: int, most: int) -> None:
        producer, channel = which % 2, which // 2 % self._channels
        read, consumer = self.read[producer][channel], self.consumers[channel]
        while read:
            self._take(consumer, read.popleft())
        for _ in range(most):
            element = self.lines[producer][channel].input.poll()
            if element is not None:
                read.append(element)

    def _take(self, consumer: ColumnarTable, element: Any) -> None:
        if isinstance(element, KnownRows):
            consumer.merge_known(element)
        else:
            consumer.merge(element)

    def restore(self) -> None:
        """An unaligned checkpoint, and a restore from it: what is in flight is stored with its keys, and all is made
        again from partials.
        """
        for producer in range(2):
            self.flush(producer)
        flown: list[tuple[int, pa.RecordBatch]] = []
        for producer, channel in ((p, c) for p in range(2) for c in range(self._channels)):
            line, read = self.lines[producer][channel], self.read[producer][channel]
            while (element := line.input.poll()) is not None:
                read.append(element)
            flown += [(channel, each.expanded() if isinstance(each, KnownRows) else each) for each in read]
        restored = [self._merging() for _ in self.consumers]
        for before, after in zip(self.consumers, restored, strict=True):
            if len(before):
                after.merge(before.partials(np.arange(len(before))))
        for channel, records in flown:
            restored[channel].merge(records)
        self.consumers = restored
        self._connect()

    def end(self) -> None:
        for producer in range(2):
            self.flush(producer)
        while any(line.waiting for line in chain(*self.lines)) or any(map(len, chain(*self.read))):
            for which in range(2 * self._channels):
                self.deliver(which, 5)

    def results(self) -> list[Any]:
        return sorted(chain(*(list_of(table) for table in self.consumers)), key=repr)


def list_of(table: ColumnarTable) -> list[Any]:
    return list(table.results(table.all_slots()).to_pylist()) if len(table) else []


@given(st.sampled_from(sorted(KEYS)), st.sampled_from([1, 2, 3, 9]), st.booleans(), st.lists(STEPS, max_size=25))
@settings(deadline=None)
def test_it_is_the_same_as_without_numbers(kind: str, channels: int, is_remote: bool, steps: list[Any]) -> None:
    run = Run(KEYS[kind], channels, is_remote)
    for step, *arguments in steps:
        getattr(run, step)(*[each for each in arguments if each is not None])
    run.end()
    assert run.results() == sorted(list_of(run.expected), key=repr)


@pytest.mark.usual_sizes
def test_after_the_first_flush_keys_stay_at_home() -> None:
    run = Run(KEYS["texts"], 2, True)
    for _ in range(3):
        run.rows(0, [(key, 1, None, None, None) for key in range(30)])
        run.flush(0)
    sent = [element for line in run.lines[0] for element in line.waiting]
    assert [type(each) for each in sent] == [NamedRows, NumberedRows, NumberedRows] * 2
    known = [each for each in sent if isinstance(each, NumberedRows)]
    assert all(isinstance(each.numbers, slice) for each in known)
    assert sum(map(len, known)) == 60
    run.rows(0, [(key, 1, None, None, None) for key in range(0, 30, 7)])
    run.flush(0)
    run.end()
    assert run.results() == sorted(list_of(run.expected), key=repr)


@pytest.mark.usual_sizes
@pytest.mark.parametrize("channels", [1, 2, 9])
def test_another_table_begins_again(channels: int) -> None:
    """Its slots are of other keys, those that the channels know among them; each channel names from 0 on."""
    run = Run(KEYS["texts"], channels, True)
    for keys in (range(30), range(39, -1, -1), range(5, 50)):
        run.anew(0)
        for _ in range(3):
            run.rows(0, [(key, key, None, None, None) for key in keys])
            run.flush(0)
    for line in run.lines[0]:
        assert [each.first for each in line.waiting if isinstance(each, NamedRows)] == [0, 0, 0]
    run.end()
    assert run.results() == sorted(list_of(run.expected), key=repr)


def test_some_of_the_keys_go_by_a_list_of_numbers() -> None:
    """Known ones, of which some are left out, and new ones behind them."""
    run = Run(KEYS["pairs"], 3, True)
    for keys in (range(20), range(0, 20, 3), range(1, 40, 2), range(19, 60), range(0, 60, 7)):
        run.rows(1, [(key, key, None, None, None) for key in keys])
        run.flush(1)
    sent = [element for line in run.lines[1] for element in line.waiting]
    assert not any(isinstance(each, pa.RecordBatch) for each in sent)
    assert any(not isinstance(each.numbers, slice) for each in sent if isinstance(each, NumberedRows))
    run.end()
    assert run.results() == sorted(list_of(run.expected), key=repr)


@pytest.mark.usual_sizes
def test_large_flushes_are_cut() -> None:
    run = Run(KEYS["integers"], 1, False)
    for _ in range(2):
        run.rows(0, [(key, 1, 0.5, 7, True) for key in range(MAX_BATCH_RECORDS + 10)])
        run.flush(0)
    assert [len(each) for each in run.lines[0][0].waiting] == [MAX_BATCH_RECORDS, 10] * 2  # type: ignore[arg-type]
    run.end()
    assert len(run.consumers[0]) == MAX_BATCH_RECORDS + 10


def test_what_is_too_large_for_a_frame_goes_in_several() -> None:
    run = Run(KEYS["texts"], 1, False)
    for _ in range(2):
        run.rows(0, [(key, 1, 0.5, 7, True) for key in range(100)])
        run.flush(0)
    line = run.lines[0][0]
    line.waiting = deque(part for each in line.waiting for part in over_the_wire(each, max_bytes=2000))
    assert len(line.waiting) > 2
    run.end()
    assert run.results() == sorted(list_of(run.expected), key=repr)


def named(first: int, keys: int) -> NamedRows:
    table = Run(KEYS["integers"], 1, False).locals[0]
    table.accumulate([batch_of(KEYS["integers"], [(first + key, 1, 0.5, 7, True) for key in range(keys)])])
    (slot_rows,) = (each.kept() for each in table.take_slot_rows())
    return NamedRows(first, slot_rows.records())


def numbered(numbers: slice, columns: int = 12) -> NumberedRows:
    words = np.ones(numbers.stop - numbers.start, np.int64)
    return NumberedRows(numbers, (words,), (0,) * columns)


@pytest.mark.parametrize(
    "sent",
    [
        [numbered(slice(0, 1))],
        [named(5, 1)],
        [named(0, 3), named(2, 3)],
        [named(0, 3), numbered(slice(2, 4))],
        [named(0, 3), numbered(slice(0, 3), 11)],
        [named(0, 3), NamedRows(3, pa.RecordBatch.from_pydict({"k": [1]}))],
        [NamedRows(0, pa.RecordBatch.from_pydict({"k": [1]}))],
    ],
)
def test_numbers_that_do_not_fit_break_the_channel(sent: list[Any]) -> None:
    line = Run(KEYS["integers"], 1, True).lines[0][0]
    for each in sent:
        line.send(each)
    for _ in sent[1:]:
        line.input.poll()
    with pytest.raises(ChannelBroken, match="rows whose keys have numbers"):
        line.input.poll()


def test_a_table_of_other_slots_is_followed() -> None:
    """The consumer's table may be replaced by one in which keys have other slots: numbers go on."""
    run = Run(KEYS["texts"], 1, False)
    run.rows(0, [(key, 1, 0.5, 7, True) for key in range(20)])
    run.flush(0)
    run.deliver(0, 1)
    run.deliver(0, 1)
    (before,) = run.consumers
    after = run._merging()
    after.merge(before.partials(np.arange(len(before))[::-1]))
    run.consumers = [after]
    run.rows(0, [(key, key, 0.5, 7, False) for key in range(20)])
    run.end()
    assert run.results() == sorted(list_of(run.expected), key=repr)


def test_keys_without_rows_since_the_last_flush_do_not_go_again() -> None:
    """Nor where rows are not counted."""
    columns = pa.schema({"k": pa.int64(), "v": pa.int64()})
    table = ColumnarTable.for_input(["k"], {"sum": Sum("v")}, columns)
    for keys in ([1, 2, 3], [2]):
        table.accumulate([pa.record_batch({"k": keys, "v": keys})])
        (rows,) = (each.kept() for each in table.take_slot_rows())
        assert rows.records()["k"].to_pylist() == keys


@pytest.mark.usual_sizes
def test_rows_between_known_ones_are_cut_by_slot() -> None:
    table = Run(KEYS["texts"], 1, False).locals[0]
    table.accumulate([batch_of(KEYS["texts"], [(key, 1, 0.5, 7, True) for key in range(10)])])
    (whole,) = (each.kept() for each in table.take_slot_rows())
    part = whole.cut(3, 5)
    assert isinstance(part, SlotRows)
    assert part.records().equals(whole.records().slice(3, 2))
    assert part.origin is whole.origin


@pytest.mark.usual_sizes
def test_keys_behind_one_that_was_left_out_go_without_numbers() -> None:
    run = Run(KEYS["integers"], 2, False)
    for _ in range(2):
        run.rows(0, [(key, 1, 0.5, 7, True) for key in range(10)])
        (slot_rows,) = (each.kept() for each in run.locals[0].take_slot_rows())
        parts = run._partitioners[0].split(slot_rows.cut(2, 10))
        assert {type(part) for _, part in parts} == {pa.RecordBatch}
        for channel, part in parts:
            run.consumers[channel].merge(part)  # type: ignore[arg-type]
    assert sum(row["rows"] for row in run.results()) == 16


@pytest.mark.parametrize(("part", "kind"), [("min(v", pa.int64()), ("max(when", pa.timestamp("us"))])
def test_a_consumer_whose_parts_have_other_types_takes_rows_with_their_keys(part: str, kind: pa.DataType) -> None:
    """As behind a union: the least of one input is an int32, and that of all an int64."""
    run = Run(KEYS["texts"], 1, True)
    wide = [field.with_type(kind) if field.name.startswith(part) else field for field in run._partials]
    run.consumers = [ColumnarTable.for_partials(list(KEYS["texts"]), AGGREGATES, pa.schema(wide))]
    for turn in range(2):
        run.rows(0, [(key, key, 0.5, 7 + turn, True) for key in range(10)])
        run.flush(0)
    run.end()
    assert run.results() == sorted(list_of(run.expected), key=repr)


@pytest.mark.usual_sizes
def test_rows_that_an_output_keeps_stay_what_they_were() -> None:
    """The table goes on, and gives out views of what it holds."""
    table = Run(KEYS["texts"], 1, False).locals[0]
    rows = [(key, 1, 0.5, 7, True) for key in range(10)]
    buffer = OutputBuffer(channels=1, timeout_ms=5.0)
    table.accumulate([batch_of(KEYS["texts"], rows)])
    for slot_rows in table.take_slot_rows():
        wanted = slot_rows.records()
        assert not buffer.add(slot_rows, 0.0)
    table.accumulate([batch_of(KEYS["texts"], rows * 3)])
    (kept,) = buffer.take()
    assert isinstance(kept, SlotRows)
    assert kept.records().equals(wanted)
