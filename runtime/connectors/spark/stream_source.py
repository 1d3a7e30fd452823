"""SparkStreamSource: the rows of a streaming DataFrame, from the spool to which its query writes micro-batches.

Each batch is a version of a LakeSource, which only adds; its id is the version. One subtask reads them all, in their
order, so the offset is a batch, a file and a row. Batches that no attempt will be restored from are removed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import pyarrow as pa

from ....actors.flow.records import RecordMismatch, conform
from ....actors.operators.source import END, Source, SourceState
from ....messages import CheckpointId
from ..errors import SparkQueryFailed, SpoolMismatch, UnreadableFile, UnreadableInput
from ..lakes.lake_source import LakeSource, without_first
from ..lakes.spans import Share
from .spool import Spool

log = logging.getLogger(__name__)

WATCH_MS = 50
_NONE = -1
"""The batch before the first."""


class SparkStreamSource(LakeSource):
    """`schema`: the Arrow schema of the DataFrame; `spool`: a Spool's path, empty: the job gives it one;
    `bounded`: whether the query ends by itself.
    """

    _how_to_bound = "available_now=True lets it end with what there is when its query begins"

    def __init__(
        self,
        schema: pa.Schema,
        spool: str = "",
        *,
        bounded: bool = False,
        batch_rows: int | None = None,
        records_per_second: float | None = None,
    ) -> None:
        super().__init__(_NONE, False, WATCH_MS, batch_rows, records_per_second)
        self.schema, self.spool, self.bounded = schema, spool, bounded

    rescale = Source.rescale

    def versions(self) -> SpooledBatches:
        return SpooledBatches(Spool(self.spool), self.spool)

    def open(self) -> None:
        if self.context.parallelism != 1:
            raise ValueError(f"source {self.context.name!r}: wanted parallelism=1, found {self.context.parallelism}")
        super().open()
        self._spool = Spool(self.spool)
        self._recorded: dict[CheckpointId, int] = {}
        """The first batch that each checkpoint needs."""
        self._query: str | None = None
        self._has_checked = False
        self._reached = _NONE
        self._over: dict[str, Any] | None = None

    def close(self) -> None:
        super().close()
        self._has_checked = False

    def check_at_submit(self, on_this_machine: bool) -> None:
        """Make the spool. Raises OSError."""
        Spool(self.spool).make()

    # -- reading

    def read(self, max_records: int) -> pa.RecordBatch | Literal[SourceState.END] | None:
        if not self._has_checked:
            self._check_position()
        found = super().read(max_records)
        if self._position() != self._reached:
            self._reached = self._position()
            self._spool.reached(self._reached)
        if found is not None and found is not END:
            return found
        if self._over is None:
            return None
        if (failure := self._over["failure"]) is not None:
            raise SparkQueryFailed(f"source {self.context.name!r}: its Spark query has failed: {failure}")
        return END

    def poll_delay_ms(self) -> float | None:
        paced_ms = super().poll_delay_ms()
        return max(0.0, self._look_at_ms - self.context.clock.now_ms()) if paced_ms is None else paced_ms

    def _looked_further(self) -> bool:
        if self.context.clock.now_ms() < self._look_at_ms:
            return False
        over = self._spool.over()  # asked before, so that no batch comes behind it
        if super()._looked_further():
            return True
        self._over = over
        return False

    # -- state

    def offset(self) -> dict[str, Any]:
        """A Share of batches, and the id of the query once there is one."""
        self._query = self._query or self._spool.query_id()
        return {**super().offset(), "query": self._query}

    def seek(self, offset: dict[str, Any]) -> None:
        self._share, self._query = Share.from_plain(offset), offset["query"]

    def on_checkpoint(self, checkpoint_id: CheckpointId) -> None:
        self._recorded[checkpoint_id] = self._position()

    def _forget_before(self, checkpoint_id: CheckpointId) -> None:
        needed = self._recorded.get(checkpoint_id)
        self._recorded = {each: batch for each, batch in self._recorded.items() if each >= checkpoint_id}
        if needed is not None:
            self._spool.remove_before(needed)

    def _position(self) -> int:
        """The batch that is being read, or waited for."""
        return self._share.spans[0].version if self._share.spans else self._share.seen + 1

    def _check_position(self) -> None:
        """Raises SpoolMismatch when it cannot go on from here."""
        found, place = self._spool.query_id(), f"source {self.context.name!r}: {self.spool}"
        if self._query is not None and found != self._query:
            what = "has no query" if found is None else f"has batches of query {found}"
            raise SpoolMismatch(
                f"{place} {what}, and the state is of query {self._query}: give it the spool_dir that it had, or start "
                "the job without its state, in a new one"
            )
        if (removed := self._spool.removed_before()) > (wanted := self._position()):
            from_where = "the state that the job started from" if self._share.seen != _NONE else "a new job"
            raise SpoolMismatch(
                f"{place}: {from_where} needs batch {wanted}, and a later checkpoint has let those before {removed} be "
                "removed: go on from the newest checkpoint (resume='latest'), or begin again in a new spool_dir"
            )
        self._has_checked = True


class SpooledBatches:
    """A Spool as a LakeSource reads it. A file is its path."""

    def __init__(self, spool: Spool, place: str) -> None:
        self._spool, self._place = spool, place
        self._filled: set[str] = set()
        """Columns of which it was said that they are null in some batches."""

    def files(self, version: int) -> Sequence[str]:
        """There is none as a whole."""
        return ()

    def added(self, version: int) -> Sequence[str]:
        try:
            return self._spool.files(version)
        except FileNotFoundError as error:
            raise self._gone(version) from error

    def after(self, version: int) -> Sequence[int]:
        found = [batch for batch in self._spool.batches() if batch > version]
        if found and found != list(range(version + 1, version + 1 + len(found))):
            missing = next(batch for batch in range(version + 1, found[-1]) if batch not in found)
            raise self._gone(missing)
        return found

    def batches(self, file: str, schema: pa.Schema, skipped: int) -> Iterator[pa.RecordBatch]:
        import pyarrow.parquet as parquet

        try:
            with parquet.ParquetFile(file) as opened:
                for batch in without_first(skipped, opened.iter_batches()):
                    yield self._as_wanted(batch, schema, file)
        except FileNotFoundError as error:
            raise SpoolMismatch(f"{file}: a file of a batch that is to be read is gone: put it back") from error
        except RecordMismatch as error:
            raise UnreadableFile(
                f"{file} cannot be read as the DataFrame's columns: {error}. The query has written it before it was "
                "changed: give the DataFrame the columns of then, and let new ones be nullable"
            ) from error
        except (pa.ArrowException, OSError) as error:
            raise UnreadableInput(f"{file} cannot be read as the DataFrame's columns: {error}") from error

    def _as_wanted(self, batch: pa.RecordBatch, schema: pa.Schema, file: str) -> pa.RecordBatch:
        """Rows that the query has written before it was changed: without the columns that are gone, and new ones are
        null, which is logged. Raises RecordMismatch for what does not fit.
        """
        new = [field for field in schema if field.name not in batch.schema.names]
        if all(field.nullable for field in new):
            if unsaid := [field.name for field in new if field.name not in self._filled]:
                self._filled.update(unsaid)
                log.warning(
                    "%s was written by the query before it had %s: null there, as in all such rows",
                    file,
                    ", ".join(unsaid),
                )
            for field in new:
                batch = batch.append_column(field, pa.nulls(batch.num_rows, field.type))
            batch = batch.select([name for name in batch.schema.names if name in schema.names])
        return conform(batch, schema)

    def _gone(self, batch: int) -> SpoolMismatch:
        return SpoolMismatch(
            f"{self._place}: batch {batch} is to be read, and is gone: put it back, or begin again in a new spool_dir"
        )
