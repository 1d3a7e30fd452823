"""ReadingSettings: what a KafkaSource was made with, as its thread needs it. No decision is at home here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from .client_settings import ClientSettings

NO_GROUP = "understudy-without-group"
"""librdkafka wants a group's name. Nothing is committed to it, and it is never joined."""

_BACKOFF_MS = 10
"""How soon librdkafka asks a broker again after its queue was full. By default it is a second, in which a thread that
reads faster than the brokers send has nothing to do: 190,000 messages a second in place of 700,000.
"""


@dataclass(frozen=True, slots=True)
class ReadingSettings:
    """`start`: a name of STARTS, or ms."""

    topics: tuple[str, ...]
    client: ClientSettings
    format: Any
    schema: pa.Schema | None
    metadata: tuple[str, ...]
    deleted: str | None
    """A column that is true in the record of a message without a value; None: such a message gives no record."""
    key: str | None
    """The column that has the key of what is gone then."""
    start: str | int
    group: str | None
    bounded: bool
    isolation: str
    allow_data_loss: bool
    discover_ms: int
    batch_rows: int
    retry_ms: int

    @property
    def name(self) -> str:
        """For logs."""
        return f"topic {', '.join(self.topics)}"

    def consumer(self, on_error: Callable[[Any], None], on_commit: Callable[[Any, Any], None]) -> dict[str, Any]:
        """Settings of librdkafka."""
        return {"fetch.queue.backoff.ms": _BACKOFF_MS} | self.client.with_own(
            group_id=self.group or NO_GROUP,
            enable_auto_commit=False,
            enable_auto_offset_store=False,
            enable_partition_eof=True,
            auto_offset_reset="error",
            isolation_level=self.isolation,
            error_cb=on_error,
            on_commit=on_commit,
        )
