"""Errors of the client library as ours: which are refusals, which may pass, and how long to try again."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

from ..errors import require
from .errors import KafkaError, KafkaRefused, KafkaUnavailable, NoSuchTopic

T = TypeVar("T")

_PAUSE_S = 0.05
_REFUSALS = frozenset(
    {
        "_AUTHENTICATION",
        "_SSL",
        "SASL_AUTHENTICATION_FAILED",
        "TOPIC_AUTHORIZATION_FAILED",
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
        "GROUP_AUTHORIZATION_FAILED",
        "CLUSTER_AUTHORIZATION_FAILED",
        "INVALID_TRANSACTION_TIMEOUT",
        "MSG_SIZE_TOO_LARGE",
        "RECORD_LIST_TOO_LARGE",
        "POLICY_VIOLATION",
        "INVALID_RECORD",
        "_INVALID_ARG",
    }
)
_MISSING = frozenset({"_UNKNOWN_TOPIC", "UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_PARTITION"})


def error_of(problem: Any, doing: str) -> KafkaError:
    """Our error for one of librdkafka's, found while `doing`."""
    name, text = str(problem.name()), f"{doing}: {problem.str()} ({problem.name()})"
    if name in _REFUSALS:
        return KafkaRefused(text)
    if name in _MISSING:
        return NoSuchTopic(text)
    return KafkaUnavailable(text)


def tried(call: Callable[[float], T], doing: str, timeout_s: float) -> T:
    """What `call(seconds)` returns; called again while brokers cannot answer, and there is time. Raises our errors."""
    kafka = require("confluent_kafka", extra="kafka", wanted_by="Kafka")
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            return call(max(deadline - time.monotonic(), _PAUSE_S))
        except kafka.KafkaException as raised:
            error = error_of(raised.args[0], doing)
        if not isinstance(error, KafkaUnavailable) or time.monotonic() > deadline:
            raise error
        time.sleep(_PAUSE_S)
