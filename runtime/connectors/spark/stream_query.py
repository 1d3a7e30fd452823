"""StreamQuery: a streaming DataFrame, run as a query of Spark whose micro-batches go to a Spool. It lives where the
Spark session does, in the program that submits the job.

    not begun -> running (a thread of its own) -> over

Spark repeats the last batch after a crash, under the same id: one that the spool has is not written again, so what was
read once stays as it is, whatever Spark would compute now.
"""

from __future__ import annotations

import logging
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from .spool import Spool

log = logging.getLogger("understudy.source")

_LOOK_S = 0.05
_ENDING_S = 0.2
_SETTINGS = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.writeLegacyFormat": "false",
}
"""What is written has the types that the Arrow schema says."""


@dataclass(frozen=True, slots=True)
class SparkStream:
    """A streaming DataFrame, and how its query is to run. `batches_ahead`: how many batches it may be in front of the
    source.
    """

    dataframe: Any
    batches_ahead: int
    trigger: dict[str, Any]
    output_mode: str


class _Stopped(Exception):
    """The query ends because its job has."""


class StreamQuery:
    """One query. `ending` and `close` may be called from any thread."""

    def __init__(self, source_name: str, spool: Spool, stream: SparkStream) -> None:
        self.path, self._name, self._spool, self._stream = spool.path, source_name, spool, stream
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name=f"spark-query-{source_name}")
        self._before: StreamQuery | None = None
        self._is_claimed = threading.Event()
        """The spool is this query's: batches may go there."""
        self._is_refused = False
        self._error: Exception | None = None

    def begin(self, before: StreamQuery | None) -> None:
        """`before`: one that ends, with the same spool."""
        self._before = before
        self._thread.start()

    def ending(self) -> None:
        """The job is over. Does not block."""
        self._ending.set()

    def close(self, timeout: float) -> None:
        """Wait until the query is over."""
        self._ending.set()
        if self._thread.ident is not None:
            self._thread.join(timeout)

    # -- on the query's own thread

    def _run(self) -> None:
        failure: str | None = None
        try:
            if self._before is not None:
                self._before._thread.join()
            query = self._started()
            while not self._ending.is_set() and not query.awaitTermination(_ENDING_S):
                pass
            if query.isActive:
                query.stop()
        except Exception as error:  # noqa: BLE001 - whatever Spark raises: the job's source raises it again
            failure = _said(self._error or error)
        if self._ending.is_set():
            return
        if failure is not None:
            log.warning("source %r: its Spark query has failed: %s", self._name, failure)
        try:
            self._spool.end(failure)
        except OSError as error:
            log.error("source %r: cannot write to %s that its query is over: %s", self._name, self.path, error)

    def _started(self) -> Any:
        stream = self._stream
        writer = stream.dataframe.writeStream.foreachBatch(self._take).outputMode(stream.output_mode)
        if stream.trigger:
            writer = writer.trigger(**stream.trigger)
        query = writer.option("checkpointLocation", f"file://{self._spool.spark_checkpoint}").start()
        try:
            self._spool.claim(str(query.id))
        except Exception:
            self._is_refused = True
            with suppress(Exception):  # there is a better one to raise
                query.stop()
            raise
        self._is_claimed.set()
        return query

    # -- on the thread that Spark calls from

    def _take(self, batch: Any, number: int) -> None:
        """A micro-batch. When this returns, Spark counts it as done."""
        try:
            self._write(batch, number)
        except Exception as error:
            self._error = error  # what Spark makes of it says less
            raise

    def _write(self, batch: Any, number: int) -> None:
        while not self._is_claimed.wait(_LOOK_S):
            self._check_wanted()
        if self._spool.has(number):
            log.info("source %r: Spark repeats batch %d, which is there already", self._name, number)
            return
        while self._spool.waiting(number) >= self._stream.batches_ahead:
            self._check_wanted()
            time.sleep(_LOOK_S)
        for name, value in _SETTINGS.items():
            batch.sparkSession.conf.set(name, value)
        folder = self._spool.new_folder(number)
        batch.write.parquet(f"file://{folder}")
        self._spool.add(number, folder)

    def _check_wanted(self) -> None:
        if self._ending.is_set() or self._is_refused:
            raise _Stopped


def _said(error: Exception) -> str:
    """The telling lines of what Spark raises."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if not line.startswith(("at ", "File ", "JVM stacktrace"))]
    return (f"{type(error).__name__}: " + " ".join(told[:6]))[:600]
