"""KafkaSink: records into a topic, exactly once by transactions, or at least once. Flink: KafkaSink.

    a pool per subtask:  free -> open -> prepared -> free (committed)

A transaction is open between two barriers, prepared at the second, and committed when that checkpoint is complete: by
the producer that has it, or, after a restore, by any process, from the few numbers in the checkpoint (`recovery.py`).
A producer is used again only when its commit is confirmed; a pool has two from the beginning, so that no record waits
for one, and grows while checkpoints do not complete. Why each transaction has a mark in it: `marks.py`. Readers see the
records with `isolation.level=read_committed`.

At least once: one producer, and a barrier waits until the brokers have everything. A restore writes again what came
after the checkpoint.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from typing import Any, ClassVar

import pyarrow as pa

from ....actors.flow.elements import Batch
from ....actors.flow.key_selector import KeyPart
from ....actors.operators.operator import Takes
from ....actors.operators.patience import RETRY_MS
from ....actors.operators.two_phase_commit_sink import TRANSACTIONS, TwoPhaseCommitSink
from ....actors.setting_limits import whole_setting
from ....messages import CheckpointId
from ....messages.absent import name_absent
from ....state import OperatorListState
from ..errors import check_extra, require
from ..names import one_name
from ..removals import Removals
from .client_errors import error_of
from .client_settings import ClientSettings, Options
from .cluster_checks import check_topic
from .errors import KafkaRefused, KafkaUnavailable, TransactionLost
from .kafka_messages import MessageMaker, OfRecord
from .recovery import Recovery
from .transactional_producer import (
    NOTHING,
    PreparedTransaction,
    TransactionalProducer,
    drop,
    flush,
)

log = logging.getLogger(__name__)

GUARANTEES = ("exactly-once", "at-least-once")

RESTART_ALLOWANCE_MS = 60_000
"""What a transaction must outlast beside three checkpoint intervals: a failure, the restart, and the commit then."""

_POOL = 2
_CHECK_MS = 15_000
_ABORT_S = 5.0
_LOOK_MS = 5_000
"""How long an attempt asks whether its topic is there, before it takes brokers that do not answer for the reason."""
_LINGER_MS, _UNSEEN_LINGER_MS = 20, 100
"""How long records wait for others to go with. Nobody reads those of a transaction before it is committed, and what
still waits at the barrier goes then.
"""
_RESERVED = ("transactional.id", "transaction.timeout.ms", "enable.idempotence", "acks", "statistics.interval.ms")


class KafkaSink(TwoPhaseCommitSink[PreparedTransaction]):
    """Writes to one topic, which has to be there. See docs/connectors/kafka.md.

    `format`: "json", "text", "bytes", "arrow", an AvroFormat, or a function of the record that returns its value.
    `key`, `partition`, `timestamp` (ms), `headers`: a column's name, or a function of the record. Without `partition`,
    `partitioner` chooses by key, as librdkafka calls them; the default does as Java's client.

    `deleted`: a column that is true in a record whose key is gone: its message has no value (a tombstone), as compacted
    topics want it. `kind`: the column of a changelog, which says so by "-D" and "-U". The column itself is not written,
    but by a format of your own; either wants `key`.

    `transactional_id_prefix`: of jobs that run at the same time each needs its own; by default it comes from the job
    that was started first, and jobs that go on from its checkpoints keep it. `retry_ms`: how long brokers may be away.
    `options`: settings of librdkafka, or a function that returns them on the TaskManager.
    """

    takes: ClassVar[Takes] = "any"

    _recorded = OperatorListState(dict, mode="union", name="kafka-transactions")
    """Per subtask: its place, the prefix of its ids, and its prepared transactions."""
    _recorded.beside = TRANSACTIONS

    def __init__(
        self,
        topic: str,
        bootstrap_servers: str | Sequence[str],
        *,
        format: Any = "json",
        key: OfRecord | None = None,
        partition: OfRecord | None = None,
        partitioner: str = "murmur2_random",
        timestamp: OfRecord | None = None,
        headers: OfRecord | None = None,
        kind: str | None = None,
        deleted: str | None = None,
        guarantee: str = "exactly-once",
        transactional_id_prefix: str | None = None,
        transaction_timeout_ms: int = 900_000,
        ignore_failures_after_timeout: bool = False,
        retry_ms: int = RETRY_MS,
        options: Options | None = None,
    ) -> None:
        check_extra("confluent_kafka", extra="kafka", wanted_by="KafkaSink")
        if guarantee not in GUARANTEES:
            raise ValueError(f"guarantee: wanted 'exactly-once' or 'at-least-once', found {guarantee!r}")
        one_name("topic", topic, "the name of a topic")
        if transactional_id_prefix is not None:
            one_name("transactional_id_prefix", transactional_id_prefix, "a name, or None")
        for name, value in (("transaction_timeout_ms", transaction_timeout_ms), ("retry_ms", retry_ms)):
            whole_setting(name, value, 1000)
        self.topic, self.guarantee, self.retry_ms = topic, guarantee, retry_ms
        self.transaction_timeout_ms = self._timeout_ms = transaction_timeout_ms
        self.ignore_failures_after_timeout = ignore_failures_after_timeout
        self.transactional_id_prefix = transactional_id_prefix
        self._is_exact = guarantee == "exactly-once"
        self._settings: ClientSettings = ClientSettings.of(bootstrap_servers, options, _RESERVED)
        self._partitioner = partitioner
        removals = Removals(kind, deleted)
        self.removes_rows = removals.column is not None
        self._key = key
        self._maker = MessageMaker(topic, format, key, partition, timestamp, headers, removals)
        if self._is_exact and not callable(options):
            self._settings.login()  # refuses what recovery cannot do
        self._recovery: Recovery | None = None
        self._open_one: TransactionalProducer | None = None
        self._plain: Any = None

    @property
    def is_exact(self) -> bool:
        """Whether it writes in transactions."""
        return self._is_exact

    @property
    def bootstrap_servers(self) -> str:
        return self._settings.bootstrap_servers

    @property
    def _writes_to(self) -> str:
        return f"topic {self.topic!r} of {self.bootstrap_servers}"

    @property
    def _row_key(self) -> tuple[KeyPart, ...]:
        return (self._key,) if self.removes_rows and self._key is not None else ()

    # -- at submit

    def check_interval(self, interval_ms: int | None) -> None:
        """Raises ValueError when the broker may give a transaction up before its checkpoint can complete."""
        wanted_ms = 3 * (interval_ms or 0) + RESTART_ALLOWANCE_MS
        if self._is_exact and self._timeout_ms < wanted_ms:
            raise ValueError(
                f"transaction_timeout_ms: wanted at least {wanted_ms} (three checkpoint intervals, and "
                f"{RESTART_ALLOWANCE_MS} for a restart), found {self.transaction_timeout_ms}: the broker would abort "
                "what a completed checkpoint covers; raise it, and transaction.max.timeout.ms of the brokers with it, "
                "or shorten checkpoint_interval_ms"
            )

    def check_at_submit(self, on_this_machine: bool) -> None:
        """Raises NoSuchTopic, KafkaRefused, and KafkaUnavailable where the brokers should be reached from here."""
        name, timeout_ms = type(self).__name__, min(_CHECK_MS, self.retry_ms)
        checks = check_topic(self._settings, self.topic, name, timeout_ms, must=on_this_machine)
        if checks is None or not self._is_exact:
            return
        longest_ms = checks.longest_transaction_ms()
        if longest_ms is not None and self._timeout_ms > longest_ms:
            raise KafkaRefused(
                f"transaction_timeout_ms: wanted at most {longest_ms}, the brokers' transaction.max.timeout.ms, found "
                f"{self.transaction_timeout_ms}: lower it here, or raise it there"
            )

    def output_schema(self, *inputs: pa.Schema | None) -> None:
        """A sink emits nothing."""

    # -- life cycle

    def open(self) -> None:
        if self._is_exact:
            self._take_over()
        else:
            self._check_topic()
        super().open()
        if self._is_exact:
            with ThreadPoolExecutor(_POOL) as threads:  # each waits for the brokers
                self._free += threads.map(self._producer, range(_POOL))
            self._made = _POOL

    def on_checkpoint(self, checkpoint_id: CheckpointId) -> None:
        super().on_checkpoint(checkpoint_id)
        if self._is_exact:
            for producer in self._all_producers():
                producer.hear()
            place = {"subtask": self.context.subtask_index, "prefix": self._prefix}
            self._recorded.update([place | {"prepared": [each for each in self.transactions() if each["id"]]}])

    def close(self) -> None:
        super().close()
        producers = [] if not self._is_exact or self._recovery is None else self._all_producers()
        for producer in producers:
            producer.close()
        if self._recovery is not None:
            self._recovery.close()
            self._recovery = None
        if self._plain is not None:
            drop(self._plain)
            self._plain = None

    # -- transactions

    def begin_transaction(self) -> PreparedTransaction:
        return NOTHING

    def write(self, transaction: PreparedTransaction, batch: Batch) -> None:
        client = self._begun().client if self._is_exact else self._plain_producer()
        kafka = require("confluent_kafka", extra="kafka", wanted_by="KafkaSink")
        try:
            self._maker.produce(client, batch, self.retry_ms / 1000)
        except kafka.KafkaException as raised:
            raise error_of(raised.args[0], f"topic {self.topic!r}") from None
        self._raise_failure()

    def pre_commit(self, transaction: PreparedTransaction) -> PreparedTransaction | None:
        try:
            if self._is_exact:
                return self._prepare()
            if self._plain is not None:
                flush(self._plain, self.retry_ms / 1000, f"topic {self.topic!r}")
                self._raise_failure()
            return None
        except KafkaUnavailable:
            self._check_topic()
            raise

    def commit(self, transaction: PreparedTransaction) -> None:
        if not transaction["id"]:
            return
        producer = self._prepared[transaction["id"]]
        producer.commit()
        self._free.append(self._prepared.pop(producer.id))

    def abort(self, transaction: PreparedTransaction) -> None:
        producer, self._open_one = self._open_one, None
        if producer is not None:
            self._free.append(producer)
            producer.abort(_ABORT_S)

    def recover_and_commit(self, transaction: PreparedTransaction) -> None:
        self._recovered().commit(transaction)

    def recover_and_abort(self, transaction: PreparedTransaction) -> None:
        """Its id is fenced with its pool."""

    # -- details

    def _take_over(self) -> None:
        """Commit what the checkpoint has of the subtasks whose pools are this one's now, and fence the rest of them."""
        context, recorded = self.context, self._recorded.get()
        self._free: list[TransactionalProducer] = []
        self._prepared: dict[str, TransactionalProducer] = {}
        self._made = 0
        self._prefix = self.transactional_id_prefix or self._inherited_prefix(recorded)
        self._branch = blake2b(context.attempt_id.encode(), digest_size=4).hexdigest()
        self._sequence = 0
        self._recovery = Recovery(self._settings, self.topic, self.retry_ms)
        self._recovery.reach(self._book)
        self._check_topic()
        for each in recorded:
            if each["subtask"] % context.parallelism == context.subtask_index:
                for transaction in each["prepared"]:
                    self._commit_recorded(transaction)
        before = max((each["subtask"] + 1 for each in recorded), default=0)
        self._recovery.abort_pools(self._prefix, context.subtask_index, context.parallelism, before)
        is_new = not recorded and self.transactional_id_prefix is None
        self._branches = {} if is_new else self._recovery.book(self._book).read(settled=True)

    def _prepare(self) -> PreparedTransaction | None:
        producer = self._open_one
        if producer is None:
            return None
        self._sequence += 1
        branches = self._branches | {self._branch: self._sequence}
        book = self._recovered().book(self._book)
        producer_id, epoch = producer.prepare(lambda client, timeout_s: book.write(client, branches, timeout_s))
        self._open_one, self._prepared[producer.id] = None, producer
        return {
            "id": producer.id,
            "producer_id": producer_id,
            "epoch": epoch,
            "book": self._book,
            "branch": self._branch,
            "sequence": self._sequence,
        }

    def _check_topic(self) -> None:
        """Raises NoSuchTopic. To librdkafka a topic that was deleted looks like brokers that do not answer."""
        check_topic(self._settings, self.topic, type(self).__name__, min(_LOOK_MS, self.retry_ms), must=False)

    def _commit_recorded(self, transaction: PreparedTransaction) -> None:
        """A loss that may be ignored is seen, and said, when `open` commits it."""
        try:
            self._recovered().commit(transaction)
        except TransactionLost:
            if not self.ignore_failures_after_timeout:
                raise

    def _inherited_prefix(self, recorded: list[dict[str, Any]]) -> str:
        if recorded:
            return str(recorded[0]["prefix"])
        return f"understudy-{self.context.job_id}-{self.context.operator_id}"

    @property
    def _book(self) -> str:
        return f"{self._prefix}-{self.context.subtask_index}"

    def _recovered(self) -> Recovery:
        assert self._recovery is not None, "the sink is not open"
        return self._recovery

    def _all_producers(self) -> list[TransactionalProducer]:
        return [*self._free, *self._prepared.values(), *([self._open_one] if self._open_one else [])]

    def _begun(self) -> TransactionalProducer:
        """The producer of the open transaction, which begins with its first record."""
        if self._open_one is None:
            producer = self._free.pop(0) if self._free else self._another()
            producer.begin()
            self._open_one = producer
        return self._open_one

    def _another(self) -> TransactionalProducer:
        self._made += 1
        return self._producer(self._made - 1)

    def _producer(self, number: int) -> TransactionalProducer:
        settings = self._producer_settings(transaction_timeout_ms=self.transaction_timeout_ms)
        transactional_id = f"{self._book}-{number}"
        return TransactionalProducer(settings, transactional_id, self.retry_ms, in_columns=self._maker.is_plain)

    def _plain_producer(self) -> Any:
        if self._plain is None:
            kafka = require("confluent_kafka", extra="kafka", wanted_by="KafkaSink")
            self._failure: Any = None
            reports = {"delivery.report.only.error": True, "on_delivery": self._on_failed}
            own = self._producer_settings(enable_idempotence=True, message_timeout_ms=self.retry_ms)
            self._plain = kafka.Producer(own | reports)
        return self._plain

    def _producer_settings(self, **own: Any) -> dict[str, Any]:
        linger_ms = _UNSEEN_LINGER_MS if self._is_exact else _LINGER_MS
        return {"linger.ms": linger_ms, "partitioner": self._partitioner} | self._settings.with_own(**own)

    def _on_failed(self, problem: Any, _message: Any) -> None:
        self._failure = self._failure or problem

    def _raise_failure(self) -> None:
        if not self._is_exact and self._plain is not None and self._failure is not None:
            raise error_of(self._failure, f"topic {self.topic!r}")


name_absent(
    KafkaSink,
    "KafkaSink",
    {"builder": 'write stream.to_kafka("topic", "host:9092", ...), or KafkaSink(...): docs/connectors/kafka.md'},
)
