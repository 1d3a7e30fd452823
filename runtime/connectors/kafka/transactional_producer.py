"""TransactionalProducer: one producer of librdkafka with a transactional id, and transactions that others can end.

    idle -> begun -> prepared -> idle (committed), again and again; close at any time

A prepared transaction is all there and open. A `PreparedTransaction` ends it from elsewhere: the producer's
number and epoch, which librdkafka shows in its statistics, and its place in the book of marks (`marks.py`).
Blocks; calls of the task's thread alone. When and why transactions end is decided in `kafka_sink.py`.
"""

from __future__ import annotations

import json
import logging
import time
import weakref
from collections.abc import Callable
from typing import Any, TypedDict, TypeVar

from ....messages.counted import counted
from ..errors import require
from .array_producer import ArrayProducer
from .client_errors import error_of
from .errors import KafkaUnavailable, TransactionLost
from .librdkafka import can_do

log = logging.getLogger(__name__)

T = TypeVar("T")

STATISTICS_MS = 200
"""How soon the number and the epoch are known after the first transaction has begun."""

_FENCED = frozenset({"_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH", "INVALID_TXN_STATE"})


class PreparedTransaction(TypedDict):
    """Plain data, and all that any process needs to commit it. Of one that has no records, `id` is empty."""

    id: str
    producer_id: int
    epoch: int
    book: str
    """The consumer group that its mark is kept in."""
    branch: str
    sequence: int


NOTHING: PreparedTransaction = {"id": "", "producer_id": -1, "epoch": -1, "book": "", "branch": "", "sequence": 0}


class TransactionalProducer:
    """`settings`: of librdkafka. `timeout_ms`: how long one call may take, and so a broker be away. `in_columns`: all
    messages will come in columns, so that an ArrayProducer will do.
    """

    def __init__(
        self, settings: dict[str, Any], transactional_id: str, timeout_ms: int, *, in_columns: bool = False
    ) -> None:
        self._kafka = require("confluent_kafka", extra="kafka", wanted_by="KafkaSink")
        self.id = transactional_id
        self._timeout_s = timeout_ms / 1000
        self._producer_id = self._epoch = -1
        self._is_prepared = False
        this = weakref.ref(self)  # so that the client goes when this does
        own = settings | {"transactional.id": transactional_id, "statistics.interval.ms": STATISTICS_MS}
        make = ArrayProducer if in_columns and can_do(own) else self._kafka.Producer
        self._producer = make(own, stats_cb=lambda text: _statistics(this(), text))
        try:
            self._call("init_transactions")
        except BaseException:
            drop(self._producer)
            raise

    def begin(self) -> None:
        self._call("begin_transaction", timed=False)

    @property
    def client(self) -> Any:
        """The producer of librdkafka, to produce with: an ArrayProducer, or that of the client."""
        return self._producer

    def hear(self) -> None:
        """Take the statistics that have come: until then they stay in memory, five a second, while no record comes."""
        self._producer.poll(0)

    def prepare(self, mark: Callable[[Any, float], None]) -> tuple[int, int]:
        """All that was produced is with the brokers when this returns. `mark(producer, seconds)` adds the mark.

        Returns the producer's number and epoch. Raises our errors.
        """
        flush(self._producer, self._timeout_s, self.id)
        self._try("the mark", lambda: mark(self._producer, self._timeout_s))
        deadline = time.monotonic() + self._timeout_s
        while self._producer_id < 0:
            self._producer.poll(0.05)
            if time.monotonic() > deadline:
                raise KafkaUnavailable(f"{self.id}: the number of the producer does not appear in its statistics")
        self._is_prepared = True
        return self._producer_id, self._epoch

    def commit(self) -> None:
        """Raises TransactionLost where the broker has ended it, or has given the id to another."""
        self._call("commit_transaction")
        self._is_prepared = False

    def abort(self, timeout_s: float) -> None:
        """Drops records in the queue, too. If the brokers cannot be reached, they abort it when its time is over."""
        try:
            self._producer.abort_transaction(timeout_s)
        except self._kafka.KafkaException as raised:
            log.info("%s: not aborted from here: %s", self.id, raised.args[0].str())

    def close(self) -> None:
        """A prepared transaction stays as it is: `close` of the client would abort it, so this client is let go of."""
        if self._is_prepared:
            del self._producer
        else:
            drop(self._producer)

    def _call(self, method: str, *, timed: bool = True) -> None:
        arguments = (self._timeout_s,) if timed else ()
        self._try(method, lambda: getattr(self._producer, method)(*arguments))

    def _try(self, what: str, call: Callable[[], T]) -> T:
        """Again as long as librdkafka says that it may pass, and there is time."""
        deadline = time.monotonic() + self._timeout_s
        while True:
            try:
                return call()
            except self._kafka.KafkaException as raised:
                problem = raised.args[0]
                if problem.name() in _FENCED or (problem.fatal() and "FENCED" in problem.name()):
                    raise TransactionLost(
                        f"transactional id {self.id!r}, {what}: {problem.str()}: the broker has ended the "
                        "transaction, or another producer has begun to use the id: an attempt of this job that took "
                        "over, or another job with the same transactional_id_prefix"
                    ) from None
                if not problem.retriable() or time.monotonic() > deadline:
                    raise error_of(problem, f"transactional id {self.id!r}, {what}") from None


def _statistics(producer: TransactionalProducer | None, text: str) -> None:
    found = json.loads(text).get("eos") or {}
    if producer is not None and found.get("producer_id", -1) >= 0:
        producer._producer_id, producer._epoch = found["producer_id"], found["producer_epoch"]


def drop(producer: Any) -> None:
    """Close it with all that it has queued. One that is fenced or has failed says so again, which is known already."""
    kafka = require("confluent_kafka", extra="kafka", wanted_by="KafkaSink")
    try:
        producer.purge()
        producer.close(0)
    except kafka.KafkaException as raised:
        log.debug("closing a producer: %s", raised.args[0].str())


def flush(producer: Any, timeout_s: float, name: str) -> None:
    """Wait until all that was produced has been answered. Raises KafkaUnavailable."""
    if left := producer.flush(timeout_s):
        records = f"{counted(left, 'record')} {'is' if left == 1 else 'are'}"
        raise KafkaUnavailable(f"{name}: {records} not with the brokers after {timeout_s:.0f} s")
