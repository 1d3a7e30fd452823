"""Each way to deal batches out: nothing lost, nothing doubled, order kept within a channel."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.actors.errors import UserCodeError
from understudy.actors.flow.elements import Batch
from understudy.actors.flow.key_selector import KeySelector, NoSuchColumn
from understudy.actors.flow.partitioner import MAX_BATCH_RECORDS, Parts, make_partitioner
from understudy.messages import Partitioning
from understudy.state.keys.key_groups import key_group, operator_index_of

ROWS = st.lists(st.tuples(st.text("abcd", min_size=1, max_size=2), st.integers()), min_size=1)


def plain(batch: Batch) -> list[Any]:
    return [tuple(row.values()) for row in batch.to_pylist()] if isinstance(batch, pa.RecordBatch) else list(batch)


def by_channel(parts: Parts) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = defaultdict(list)
    for channel, part in parts:
        assert 0 < len(part) <= MAX_BATCH_RECORDS
        found[channel] += plain(part)
    return found


def columnar(rows: list[tuple[str, int]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"key": [key for key, _ in rows], "n": [float(n) for _, n in rows]})


@given(ROWS, st.integers(1, 5), st.sampled_from([7, 128]), st.booleans())
@settings(deadline=None)
def test_hash_sends_a_record_to_the_owner_of_its_key_group(
    rows: list[tuple[str, int]], channels: int, maximum: int, as_columns: bool
) -> None:
    batch: Batch = columnar(rows) if as_columns else rows
    selector = KeySelector("key" if as_columns else 0)
    partitioner = make_partitioner(
        Partitioning.HASH, channels=channels, selector=selector, max_parallelism=maximum, subtask_index=1
    )
    expected: dict[int, list[Any]] = defaultdict(list)
    for row in plain(batch):
        expected[operator_index_of(key_group(row[0], maximum), maximum, channels)].append(row)
    assert by_channel(partitioner.split(batch)) == expected


def test_a_batch_of_one_owner_is_handed_on_as_it_is() -> None:
    partitioner = make_partitioner(Partitioning.HASH, channels=4, selector=KeySelector("key"))
    batch = columnar([("a", 1), ("a", 2)])
    ((_, part),) = partitioner.split(batch)
    assert part is batch


def test_rebalance_deals_whole_batches_in_turn_from_its_own_index() -> None:
    partitioner = make_partitioner(Partitioning.REBALANCE, channels=3, subtask_index=4)
    assert [partitioner.split([n]) for n in range(4)] == [[(1, [0])], [(2, [1])], [(0, [2])], [(1, [3])]]


def test_broadcast_sends_everything_to_all() -> None:
    partitioner = make_partitioner(Partitioning.BROADCAST, channels=2)
    assert partitioner.split([1, 2]) == [(0, [1, 2]), (1, [1, 2])]


def test_a_missing_key_is_told_in_the_name_of_the_operator_whose_key_it_is() -> None:
    for selector, told in (
        (KeySelector("orgin").of_operator("worst"), UserCodeError),
        (KeySelector("orgin"), NoSuchColumn),
    ):
        partitioner = make_partitioner(Partitioning.HASH, channels=2, selector=selector)
        with pytest.raises(told) as raised:
            partitioner.split([{"origin": "JFK"}])
        if isinstance(raised.value, UserCodeError):
            assert (raised.value.operator_name, raised.value.record_position) == ("worst", None)
            assert "there is origin; did you mean 'origin'?" in str(raised.value.__cause__)


def test_forward_has_one_channel() -> None:
    assert make_partitioner(Partitioning.FORWARD, channels=1).split([1, 2]) == [(0, [1, 2])]


@pytest.mark.parametrize("partitioning", Partitioning)
@pytest.mark.parametrize("as_columns", [True, False])
def test_a_long_batch_is_cut(partitioning: Partitioning, as_columns: bool) -> None:
    count = 2 * MAX_BATCH_RECORDS + 1
    batch = columnar([("a", n) for n in range(count)]) if as_columns else [("a", n) for n in range(count)]
    channels = 1 if partitioning is Partitioning.FORWARD else 2
    partitioner = make_partitioner(partitioning, channels=channels, selector=KeySelector("key" if as_columns else 0))
    found = by_channel(partitioner.split(batch))
    assert sum(map(len, found.values())) == count * (2 if partitioning is Partitioning.BROADCAST else 1)
    if partitioning is not Partitioning.REBALANCE:
        assert all([n for _, n in rows] == list(range(count)) for rows in found.values())
