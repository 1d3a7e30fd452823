"""A key of `hash` or `id` is another one in the next process: key_by says so."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from understudy import StreamEnvironment


def by_helper(record: Any) -> int:
    return sum(hash(part) for part in record)


@pytest.mark.parametrize(
    ("key", "called"),
    [
        (lambda record: hash(record["a"]) % 10, "hash"),
        (lambda record: id(record), "id"),
        (by_helper, "hash"),
        (hash, "hash"),
    ],
)
def test_it_is_said_with_its_line(key: Any, called: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        StreamEnvironment().from_collection([{"a": "x"}]).key_by(key)
    (said,) = caplog.messages
    assert f"takes {called}(...) as a key, which is another one in each new process" in said
    assert ("test_unstable_keys.py:" in said) == (key is not hash)


def test_a_key_of_that_name_is_none(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        stream = StreamEnvironment().from_collection([{"id": "x", "hash": 1}])
        stream.key_by("id", "hash")
        stream.key_by(lambda record: (record["id"], record.hash))
    assert caplog.messages == []
