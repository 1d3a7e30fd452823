"""KafkaSinks: `stream.to_kafka`. A part of the DataStream; the sink itself is in `runtime/connectors/kafka`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict, Unpack

from ...messages.known_names import known_arguments
from ..connectors import KafkaSink
from ..connectors.kafka.client_settings import Options as ClientOptions
from ..connectors.kafka.kafka_messages import OfRecord
from .ends import End, Ends


class KafkaSinkOptions(TypedDict, total=False):
    """What `to_kafka` takes beside topic and servers; KafkaSink says what each means."""

    format: Any
    key: OfRecord | None
    partition: OfRecord | None
    partitioner: str
    timestamp: OfRecord | None
    headers: OfRecord | None
    kind: str | None
    deleted: str | None
    guarantee: str
    transactional_id_prefix: str | None
    transaction_timeout_ms: int
    ignore_failures_after_timeout: bool
    retry_ms: int
    options: ClientOptions | None


class KafkaSinks(Ends[End]):
    """Base of the DataStream."""

    @known_arguments(first=1, also=KafkaSinkOptions.__annotations__)
    def to_kafka(
        self,
        topic: str,
        bootstrap_servers: str | Sequence[str],
        *,
        name: str | None = None,
        parallelism: int | None = None,
        **options: Unpack[KafkaSinkOptions],
    ) -> End:
        """Write to a topic that is there, exactly once if not said otherwise: `sink_to(KafkaSink(...))`."""
        return self.sink_to(KafkaSink(topic, bootstrap_servers, **options), name=name, parallelism=parallelism)
