"""PartitionReader: what one call of the client brings, in whatever order. The rest is tested on a real broker."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from threading import Condition
from types import SimpleNamespace
from typing import Any

from understudy.runtime.connectors.kafka.partition_reader import PartitionReader
from understudy.runtime.connectors.kafka.partitions import Partition, Position


@dataclass
class Message:
    at: int
    problem: Any = None

    def error(self) -> Any:
        return self.problem

    def topic(self) -> str:
        return "orders"

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self.at


def test_messages_that_come_together_with_the_end_of_their_partition_are_read() -> None:
    partition = Partition("orders", 0)
    reader: Any = PartitionReader.__new__(PartitionReader)
    reader._kafka = SimpleNamespace(Message=Message)
    reader._decoder = SimpleNamespace(decode=lambda _, messages: [each.at for each in messages])
    reader._positions = {partition: Position(0, 3)}
    reader._changed, reader._wake = Condition(), lambda: None
    reader._ready, reader._ahead = {}, {}
    end = SimpleNamespace(name=lambda: "_PARTITION_EOF")
    reader._on_messages(None, [Message(0), Message(1), Message(2), Message(3, end)])
    chunks: deque[Any] = reader._ready[partition]
    assert [record for chunk in chunks for record in chunk.records] == [0, 1, 2]
    assert chunks[-1].position.is_done
