"""Keys by number whose type is not that of the consumer's table."""

from __future__ import annotations

from itertools import chain
from typing import Any

import pyarrow as pa
import pytest

from understudy.actors.flow.elements import NamedRows, NumberedRows
from understudy.actors.flow.numbered_by_key import NumberedByKey
from understudy.actors.flow.partitioner import make_partitioner
from understudy.messages import Partitioning
from understudy.state.columnar.columnar_table import ColumnarTable
from understudy.state.columnar.known_rows import KnownKeys
from understudy.state.kinds.aggregates import Count, Sum


def known_of(kind: pa.DataType, consumed_as: pa.DataType, keys: list[Any]) -> tuple[ColumnarTable, list[Any]]:
    """A consumer whose keys are of another type than the channel's, and what comes: keys but for the last are named,
    then that one, then all by number.
    """

    def table(key: pa.DataType) -> ColumnarTable:
        return ColumnarTable.for_input(
            ["k"], {"rows": Count(), "sum": Sum("v")}, pa.schema({"k": key, "v": pa.int64()})
        )

    consumer = ColumnarTable.for_partials(["k"], {"rows": Count(), "sum": Sum("v")}, table(consumed_as).partial_schema)
    local, split, known = table(kind), NumberedByKey(make_partitioner(Partitioning.FORWARD, channels=1), 1), None
    received = []
    for several in (keys[:-1], keys[-1:], keys):
        local.accumulate([pa.record_batch({"k": pa.array(several, kind), "v": [1] * len(several)})])
        for _, rows in chain(*map(split.split, local.take_slot_rows())):
            assert isinstance(rows, NamedRows | NumberedRows)
            if known is None:
                assert isinstance(rows, NamedRows)
                known = KnownKeys(["k"], {"rows": Count(), "sum": Sum("v")}, rows)
            received.append(known.receive(rows))
    return consumer, received


@pytest.mark.parametrize(
    ("kind", "consumed_as", "keys"),
    [
        (pa.int32(), pa.int64(), [1, 2, 3]),
        (pa.float64(), pa.int16(), [1.0, 2.0, 3.0]),
        (pa.string(), pa.large_string(), ["a", "b", "c"]),
        (pa.timestamp("s", "UTC"), pa.timestamp("us", "Asia/Tokyo"), [1, 2, 3]),
    ],
)
@pytest.mark.parametrize("taken", [1, 2])
def test_rows_in_flight_have_the_key_types_of_their_channel(
    kind: pa.DataType, consumed_as: pa.DataType, keys: list[Any], taken: int
) -> None:
    """As behind a union: the keys of one input are int32, and those of the table int64."""
    consumer, received = known_of(kind, consumed_as, keys)
    for rows in received[:taken]:
        consumer.merge_known(rows)
    in_flight = received[2].expanded()
    assert in_flight.schema == received[2].schema
    assert in_flight["k"].equals(pa.array(keys, kind))


def test_keys_that_are_one_in_the_type_of_the_table_are_all_counted() -> None:
    """float64 becomes float32 without a word, and two numbers of a channel have one slot."""
    consumer, received = known_of(pa.float64(), pa.float32(), [0.5, 0.1, 0.1 + 1e-12])
    for rows in received:
        consumer.merge_known(rows)
    assert [row["rows"] for row in consumer.results(consumer.all_slots()).to_pylist()] == [2, 4]
