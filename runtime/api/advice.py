"""Advice: what is written here, in texts that stand in more than one table of names from elsewhere."""

from __future__ import annotations

from typing import Final

UNTYPED: Final = "leave it out: types of records are not declared"
BY_KEY: Final = "write key_by(...).process(...) with a KeyedOperator, whose ValueState holds what is kept per key"
OF_A_TOPIC: Final = "a topic has format=..., as in from_kafka(topic, servers, format='json'): docs/connectors/kafka.md"
OWN_SOURCE: Final = "subclass Source, with poll, offset and seek: docs/connectors/your-own.md"
OWN_SINK: Final = "subclass LedgerSink, IdempotentSink or TwoPhaseCommitSink: docs/connectors/your-own.md"
