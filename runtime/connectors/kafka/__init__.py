"""Kafka: topics as sources and sinks. Needs `understudy[kafka]`; importing this room does not import the client.

At home: sources, sinks, formats of messages, and the requests of Kafka's protocol that recovery needs. Not at home:
`Source` and `TwoPhaseCommitSink` (`actors/operators`), brokers for tests (`tests/systems`).
"""

from .avro import AvroFormat
from .errors import (
    DataGone,
    KafkaError,
    KafkaRefused,
    KafkaUnavailable,
    NoSuchTopic,
    TransactionLost,
    UnreadableMessage,
)
from .formats import KafkaFormat
from .kafka_sink import KafkaSink
from .kafka_source import KafkaSource

__all__ = [
    "AvroFormat",
    "DataGone",
    "KafkaError",
    "KafkaFormat",
    "KafkaRefused",
    "KafkaSink",
    "KafkaSource",
    "KafkaUnavailable",
    "NoSuchTopic",
    "TransactionLost",
    "UnreadableMessage",
]
