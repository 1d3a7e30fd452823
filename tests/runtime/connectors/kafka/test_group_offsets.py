"""What a source says to its group: offsets of completed checkpoints, which never go back."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from understudy import KafkaSource
from understudy.messages import CheckpointId
from understudy.runtime.connectors.kafka.partitions import Partition, Position

from ..harness import make_context

ORDERS = Partition("orders", 0)


def test_a_checkpoint_that_a_later_one_has_overtaken_moves_no_group_back() -> None:
    source: Any = KafkaSource("orders", "nowhere:9092", group="readers")
    source.context = make_context()
    source.open()
    committed: list[Mapping[Partition, int]] = []
    source._reader = SimpleNamespace(commit=committed.append)
    for checkpoint, read in ((1, 10), (2, 20), (3, 30)):
        source._positions = {ORDERS: Position(read)}
        source.on_checkpoint(CheckpointId(checkpoint))
    for checkpoint in (2, 1, 3):
        source.on_checkpoint_complete(CheckpointId(checkpoint))
    assert committed == [{ORDERS: 20}, {ORDERS: 30}]
