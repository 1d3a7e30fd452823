"""FetchedMessages: messages of one partition, in their order, and their values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any, Generic, TypeVar, cast

from .partitions import Partition

V = TypeVar("V", bound=bytes | None)


@dataclass(frozen=True, slots=True)
class FetchedMessages(Generic[V]):
    """The value of a message that says that its key is gone is None; those `with_values` have none of these."""

    partition: Partition
    messages: Sequence[Any]
    """confluent_kafka's."""
    values: list[V]

    def __len__(self) -> int:
        return len(self.messages)

    def with_values(self) -> FetchedMessages[bytes]:
        """Those that have one; the same object if all do."""
        if None not in self.values:
            return cast("FetchedMessages[bytes]", self)
        there = [place for place, value in enumerate(self.values) if value is not None]
        values = [cast("bytes", self.values[place]) for place in there]
        return FetchedMessages(self.partition, [self.messages[place] for place in there], values)

    def owners(self, rows: Iterable[int]) -> list[Any]:
        """The message of each record, where they give this many."""
        return list(chain.from_iterable(map(repeat, self.messages, rows)))

    def place(self, message: Any) -> str:
        """Where one of them is, for a text."""
        return f"topic {self.partition.topic!r}, partition {self.partition.number}, offset {message.offset()}"

    def range(self) -> str:
        """Where all of them are, for a text."""
        first, last = self.messages[0].offset(), self.messages[-1].offset()
        return f"topic {self.partition.topic!r}, partition {self.partition.number}, offsets {first} to {last}"


def fetched(partition: Partition, messages: Sequence[Any]) -> FetchedMessages[bytes | None]:
    """At least one message."""
    return FetchedMessages(partition, messages, list(map(type(messages[0]).value, messages)))
