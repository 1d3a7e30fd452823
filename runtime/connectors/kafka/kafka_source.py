"""KafkaSource: topics as a source, a split per partition, the offsets in the checkpoint. Flink: KafkaSource.

Partitions are assigned by name and parallelism, never by the group's protocol. A thread of its own reads ahead
(`partition_reader.py`); `poll` takes what is there, and moves the offset. A partition that appears later is read from
its beginning. With a `group` the offsets of completed checkpoints are committed to it, to show to users and monitors;
the job itself goes on from its checkpoint.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import nan
from typing import Any, Literal

import pyarrow as pa

from ....actors.operators.patience import RETRY_MS
from ....actors.operators.source import END, FromSplit, Source, SourceState
from ....actors.setting_limits import whole_setting
from ....messages import CheckpointId
from ....messages.absent import name_absent
from ..errors import check_extra
from ..names import several_names
from .client_settings import ClientSettings, Options
from .cluster_checks import check_topic
from .message_decoder import METADATA, MessageDecoder
from .partition_reader import PartitionReader
from .partitions import Partition, Position, Start, check_start, split_of
from .reading import ReadingSettings
from .tombstones import nullable

BATCH_ROWS = 8192

_CHECK_MS = 15_000
_CLOSE_S = 10.0
_RESERVED = (
    "group.id",
    "enable.auto.commit",
    "enable.auto.offset.store",
    "enable.partition.eof",
    "auto.offset.reset",
    "isolation.level",
)


class KafkaSource(Source):
    """Reads one topic or several. See docs/connectors/kafka.md.

    `format`: "json" (dicts), "text", "bytes", "arrow", an AvroFormat, or a function from a list of values to as many
    records. `schema`: the records come as these columns. `metadata`: some of "topic", "partition", "offset",
    "timestamp", "key", "headers", added to each record as `kafka_<name>`.

    `deleted`: the name of a column that is true in the record of a message without a value (a tombstone), whose other
    columns are null; without it such a message gives no record. `key`: the column that has the message's key there, as
    KafkaSink's `key` has written it.

    `start`: "earliest", "latest", "group" (what the group has committed, or else from the beginning),
    "group-or-latest", or a time; only for a job without a checkpoint. `bounded`: end where the topics end when the job
    starts. `allow_data_loss`: go on where records have been deleted before they were read. `discover_ms`: how often to
    look for new partitions. `retry_ms`: how long brokers may be away. `options`: as of KafkaSink.
    """

    _how_to_bound = "bounded=True lets it end where its topics end"

    def __init__(
        self,
        topics: str | Sequence[str],
        bootstrap_servers: str | Sequence[str],
        *,
        format: Any = "json",
        schema: pa.Schema | None = None,
        metadata: Sequence[str] = (),
        deleted: str | None = None,
        key: str | None = None,
        start: Start = "earliest",
        group: str | None = None,
        bounded: bool = False,
        isolation: str = "read_committed",
        allow_data_loss: bool = False,
        discover_ms: int = 60_000,
        batch_rows: int = BATCH_ROWS,
        retry_ms: int = RETRY_MS,
        options: Options | None = None,
    ) -> None:
        check_extra("confluent_kafka", extra="kafka", wanted_by="KafkaSource")
        named = several_names("topics", topics, "the name of a topic")
        if isolation not in ("read_committed", "read_uncommitted"):
            raise ValueError(f"isolation: wanted 'read_committed' or 'read_uncommitted', found {isolation!r}")
        for name, value, least in (
            ("discover_ms", discover_ms, 1),
            ("batch_rows", batch_rows, 1),
            ("retry_ms", retry_ms, 1),
        ):
            whole_setting(name, value, least)
        self.bounded = bounded
        self._settings = ReadingSettings(
            topics=named,
            client=ClientSettings.of(bootstrap_servers, options, _RESERVED),
            format=format,
            schema=schema if schema is None or deleted is None else nullable(schema),
            deleted=deleted,
            key=key,
            metadata=(metadata,) if isinstance(metadata, str) else tuple(metadata),
            start=check_start(start, group),
            group=group,
            bounded=bounded,
            isolation=isolation,
            allow_data_loss=allow_data_loss,
            discover_ms=discover_ms,
            batch_rows=batch_rows,
            retry_ms=retry_ms,
        )
        self.gives_changes = deleted is not None
        MessageDecoder(self._settings)  # refuses a format that is none
        self._reader: PartitionReader | None = None

    def check_at_submit(self, on_this_machine: bool) -> None:
        """Raises NoSuchTopic, KafkaRefused, and KafkaUnavailable where the brokers should be reached from here."""
        timeout_ms = min(_CHECK_MS, self._settings.retry_ms)
        for topic in self._settings.topics:
            check_topic(self._settings.client, topic, type(self).__name__, timeout_ms, must=on_this_machine)

    @property
    def _writes_to(self) -> str:
        settings = self._settings
        if settings.group is None:
            return ""
        return f"the offsets of group {settings.group!r} of {settings.client.bootstrap_servers}"

    def source_schema(self) -> pa.Schema | None:
        settings = self._settings
        if settings.schema is None:
            return None
        beside = [pa.field(f"kafka_{name}", METADATA[name][0]) for name in settings.metadata]
        said = [] if settings.deleted is None else [pa.field(settings.deleted, pa.bool_())]
        return pa.schema([*settings.schema, *beside, *said])

    # -- where it is

    def open(self) -> None:
        self._positions: dict[Partition, Position] | None = None
        """None: it is not known yet which partitions there are, and where they begin."""
        self._restored: dict[Partition, Position] = {}
        self._restored_ids: set[tuple[str, str]] = set()
        """Of topics: other ones of the same names have other records at these positions."""
        self._unfound: set[int] | None = None
        """Old subtasks that had not found their partitions; None: nothing is restored."""
        self._old_parallelism = 1
        self._reader = None
        self._of_checkpoints: dict[CheckpointId, dict[Partition, int]] = {}
        self.metrics.gauge("pendingRecords", self._pending)

    def seek(self, offset: Any) -> None:
        self.rescale([offset])

    def rescale(self, offsets: Sequence[Any]) -> None:
        """Each partition is where the subtask that read it has left it."""
        self._unfound = {each["subtask"] for each in offsets if each["positions"] is None}
        self._old_parallelism = offsets[0]["parallelism"]
        for each in offsets:
            self._restored_ids |= set(each.get("topics", {}).items())
            for split, (next_, end) in (each["positions"] or {}).items():
                partition = split_of(split)
                if self._is_mine(partition):
                    self._restored[partition] = Position(next_, end)
        if not self._unfound:
            self._positions = {each: Position(at.next, at.end) for each, at in self._restored.items()}

    def offset(self) -> dict[str, Any]:
        """By split: the next offset, and where it ends; and which topics these are of."""
        positions, reader = self._positions, self._reader
        ids = dict(self._restored_ids) if reader is None or not reader.topic_ids else reader.topic_ids
        return {
            "subtask": self.context.subtask_index,
            "parallelism": self.context.parallelism,
            "topics": {} if positions is None else ids,
            "positions": None if positions is None else {p.split: [at.next, at.end] for p, at in positions.items()},
        }

    def current_splits(self) -> Collection[str] | None:
        """None until they are found: then nothing goes on without them."""
        if self._positions is None:
            return None
        return tuple(partition.split for partition, at in self._positions.items() if not at.is_done)

    # -- records

    def poll(self) -> FromSplit | Literal[SourceState.END] | None:
        reader = self._reader
        if reader is None:
            reader = self._reader = PartitionReader(
                self._settings,
                self._restored,
                self._restored_ids,
                self._is_mine,
                self._is_initial,
                self.context.wake,
            )
        paused = frozenset(map(split_of, self.paused_splits)) if self.paused_splits else frozenset()
        while (taken := reader.take(paused)) is not None:
            if isinstance(taken, dict):
                self._positions = (self._positions or {}) | taken
                self.context.wake()
                return None  # so that `current_splits` is asked before their records come
            assert self._positions is not None, "records before their partition"
            self._positions[taken.partition] = taken.position
            if len(taken.records):
                return FromSplit(taken.partition.split, taken.records)
        if not self.bounded or self._positions is None:
            return None
        return END if reader.are_same and all(at.is_done for at in self._positions.values()) else None

    def on_checkpoint(self, checkpoint_id: CheckpointId) -> None:
        if self._settings.group is not None and self._positions:
            self._of_checkpoints[checkpoint_id] = {each: at.next for each, at in self._positions.items()}

    def on_checkpoint_complete(self, checkpoint_id: CheckpointId) -> None:
        done = [each for each in self._of_checkpoints if each <= checkpoint_id]
        for each in done:
            offsets: Mapping[Partition, int] = self._of_checkpoints.pop(each)
            if each == done[-1] and self._reader is not None:
                self._reader.commit(offsets)

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close(_CLOSE_S)
            self._reader = None

    def _pending(self) -> float:
        pending = None if self._reader is None else self._reader.pending()
        return nan if pending is None else pending

    # -- whose partition is it

    def _is_mine(self, partition: Partition) -> bool:
        return (
            partition.topic in self._settings.topics
            and partition.owner(self.context.parallelism) == self.context.subtask_index
        )

    def _is_initial(self, partition: Partition) -> bool:
        """Whether nobody had found it in the checkpoint because it had only begun to look."""
        return self._unfound is None or partition.owner(self._old_parallelism) in self._unfound


name_absent(
    KafkaSource,
    "KafkaSource",
    {"builder": 'write env.from_kafka("topic", "host:9092", ...), or KafkaSource(...): docs/connectors/kafka.md'},
)
