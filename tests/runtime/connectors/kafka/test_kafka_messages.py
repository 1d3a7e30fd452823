"""MessageMaker without a broker: a record's key is the same whether it comes in columns or by itself."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from understudy.runtime.connectors.kafka.kafka_messages import MessageMaker


class Producer:
    """Notes the keys."""

    def __init__(self) -> None:
        self.keys: list[bytes | None] = []

    def produce(self, _topic: str, _value: Any, key: bytes | None) -> None:
        self.keys.append(key)

    def poll(self, _timeout_s: float) -> None: ...


def keys_of(batch: Any) -> list[bytes | None] | str:
    producer = Producer()
    try:
        MessageMaker("topic", "json", "key", None, None, None).produce(producer, batch, 1.0)
    except ValueError as error:
        return str(error)
    return producer.keys


@pytest.mark.parametrize(
    "keys",
    [
        pa.array([1, None, -3], pa.int8()),
        pa.array([2**64 - 1, 0, None], pa.uint64()),
        pa.array(["", None, "ü😀"]),
        pa.array(["a", None, "ü"], pa.large_string()),
        pa.array(["a", None, "ü"]).dictionary_encode(),
        pa.array([b"", None, b"\xff"]),
    ],
    ids=lambda keys: str(keys.type),
)
def test_a_column_gives_the_keys_of_its_records(keys: pa.Array) -> None:
    """By its key a message finds its partition; None: any, and no key that is empty."""
    batch = pa.record_batch({"key": keys, "n": [1, 2, 3]})
    found = keys_of(batch)
    assert found == keys_of(batch.to_pylist())
    assert len(found) == 3
    assert None in found
    assert keys_of(batch.slice(1)) == found[1:]


@pytest.mark.parametrize("key", [True, 1.5, date(2026, 11, 27), Decimal("1.0"), [1]])
def test_what_is_no_key_is_refused_in_columns_too(key: Any) -> None:
    batch = pa.record_batch({"key": [key]})
    found = keys_of(batch)
    assert found == keys_of(batch.to_pylist())
    assert "key: wanted text, bytes, a whole number or None, found " in str(found)
