"""What can be asked of a broker before a job starts: is the topic there, may one log in, what does it take?

Blocks, for as long as it may. Raises the errors of this folder.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import Any

from ..errors import require
from .client_settings import ClientSettings
from .errors import KafkaRefused, KafkaUnavailable, NoSuchTopic

log = logging.getLogger(__name__)

_ASK_S, _STEP_S = 1.0, 5.0
_SHOWN = 10


class ClusterChecks:
    """`wanted_by`: the source or sink, for texts. One client, which `close` drops."""

    def __init__(self, settings: ClientSettings, wanted_by: str, timeout_ms: int) -> None:
        self._kafka = require("confluent_kafka", extra="kafka", wanted_by=wanted_by)
        self._admin_of = require("confluent_kafka.admin", extra="kafka", wanted_by=wanted_by)
        self._wanted_by, self._has_warned = wanted_by, False
        self._deadline = time.monotonic() + timeout_ms / 1000
        self._servers, self._timeout_ms = settings.bootstrap_servers, timeout_ms
        self._refusal = self._found = ""
        self._admin = self._admin_of.AdminClient(settings.for_reaching(error_cb=self._on_error))

    def partitions(self, topic: str) -> int:
        """How many the topic has. Raises NoSuchTopic, KafkaRefused, KafkaUnavailable."""
        found = self._metadata().topics.get(topic)
        if found is None or found.error is not None:
            raise NoSuchTopic(
                f"topic {topic!r} is not there, or this user may not see it: make it first, or correct its name "
                f"(found at {self._servers}: {_some_of(self._metadata().topics, topic)})"
            )
        return len(found.partitions)

    def longest_transaction_ms(self) -> int | None:
        """`transaction.max.timeout.ms` of a broker; None: it may not be asked."""
        metadata = self._metadata()
        kind = self._admin_of.ConfigResource(self._admin_of.ConfigResource.Type.BROKER, str(min(metadata.brokers)))
        try:
            found = self._admin.describe_configs([kind])[kind].result(timeout=_STEP_S)
        except Exception:  # noqa: BLE001  (a user without the right to ask: the broker says it when a producer begins)
            return None
        return int(found["transaction.max.timeout.ms"].value)

    def _metadata(self) -> Any:
        while True:
            try:
                return self._admin.list_topics(timeout=min(_ASK_S, max(self._deadline - time.monotonic(), 0.1)))
            except self._kafka.KafkaException as raised:
                problem = raised.args[0]
            self._admin.poll(0)  # calls `_on_error`
            if self._refusal:
                raise KafkaRefused(f"{self._servers}: {self._refusal}: correct the user, the password or the protocol")
            found = self._found or problem.str()
            if time.monotonic() > self._deadline:
                raise KafkaUnavailable(
                    f"no broker at {self._servers} within {self._timeout_ms / 1000:.0f} s ({found}): correct "
                    "bootstrap_servers, or start the broker"
                )
            if not self._has_warned:
                self._has_warned = True
                log.warning(
                    "%s: no broker at %s yet, and tries again for %.0f s (%s): check bootstrap_servers, and that the "
                    "broker runs",
                    self._wanted_by,
                    self._servers,
                    self._timeout_ms / 1000,
                    found,
                )

    def _on_error(self, problem: Any) -> None:
        if problem.name() in ("_TRANSPORT", "_RESOLVE"):
            self._found = problem.str()
        if problem.name() in ("_AUTHENTICATION", "_SSL"):
            self._refusal = problem.str()


def check_topic(
    settings: ClientSettings, topic: str, wanted_by: str, timeout_ms: int, *, must: bool
) -> ClusterChecks | None:
    """Raises if the topic is not there. None, where the brokers need not be reached from this machine, and are not."""
    checks = ClusterChecks(settings, wanted_by, timeout_ms)
    try:
        checks.partitions(topic)
    except KafkaUnavailable:
        if must:
            raise
        return None
    return checks


def _some_of(topics: Iterable[str], wanted: str) -> str:
    """The names that are most like the wanted one, and how many more there are; none of Kafka's own."""
    names = sorted(name for name in topics if not name.startswith("_"))
    shown = sorted(names, key=lambda name: -SequenceMatcher(None, wanted, name).ratio())[:_SHOWN]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f", and {more} more" if more else "") if names else "none"
