"""KafkaSources: `env.from_kafka`. A part of the StreamEnvironment; the source is in `runtime/connectors/kafka`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict, Unpack

import pyarrow as pa

from ...messages.known_names import known_arguments
from ..connectors import KafkaSource
from ..connectors.kafka.client_settings import Options as ClientOptions
from ..connectors.kafka.partitions import Start
from .beginnings import Beginnings
from .stream import DataStream


class KafkaSourceOptions(TypedDict, total=False):
    """What `from_kafka` takes beside topics and servers; KafkaSource says what each means."""

    format: Any
    schema: pa.Schema | None
    metadata: Sequence[str]
    deleted: str | None
    key: str | None
    start: Start
    group: str | None
    bounded: bool
    isolation: str
    allow_data_loss: bool
    discover_ms: int
    batch_rows: int
    retry_ms: int
    options: ClientOptions | None


_SERVERS = "write bootstrap_servers='host:9092'"
_FORMAT = "write format=..., as in format='json': docs/connectors/kafka.md"
_ELSEWHERE = {
    "brokers": _SERVERS,
    "broker": _SERVERS,
    "servers": _SERVERS,
    "topic": "write topics=..., one or several",
    "group_id": "write group=..., or leave it out: offsets are in checkpoints",
    "auto_offset_reset": "write start='earliest' or start='latest'",
    "starting_offset": "write start=...",
    "value_serializer": _FORMAT,
    "value_deserializer": _FORMAT,
    "value_type": _FORMAT,
    "value_format": _FORMAT,
}
"""Of Faust, Bytewax and clients of Kafka."""


class KafkaSources(Beginnings):
    """Base of the StreamEnvironment."""

    @known_arguments(first=1, also=KafkaSourceOptions.__annotations__, elsewhere=_ELSEWHERE)
    def from_kafka(
        self,
        topics: str | Sequence[str],
        bootstrap_servers: str | Sequence[str],
        *,
        name: str | None = None,
        parallelism: int | None = None,
        **options: Unpack[KafkaSourceOptions],
    ) -> DataStream:
        """Read a topic, or several: `from_source(KafkaSource(...))`. Each partition is a split with a watermark of its
        own.
        """
        source = KafkaSource(topics, bootstrap_servers, **self._with(options))
        return self._start(source, name, parallelism)
