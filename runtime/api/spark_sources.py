"""SparkSources: streams of what queries of Spark bring. A part of the StreamEnvironment."""

from __future__ import annotations

from typing import Any

from ...messages.known_names import known_arguments
from ...state.file_locations import AnyPath, absolute, protocol_of
from ..connectors.spark.stream_query import SparkStream
from ..connectors.spark.stream_source import SparkStreamSource
from .beginnings import Beginnings
from .checks import at_least, at_least_or_none, one_of, path, rate, yes_or_no
from .errors import InvalidSetting
from .schemas import streaming_schema
from .stream import DataStream

OUTPUT_MODES = ("append", "update", "complete")


class SparkSources(Beginnings):
    """Base of the StreamEnvironment."""

    @known_arguments(first=1)
    def from_spark_stream(
        self,
        dataframe: Any,
        *,
        spool_dir: AnyPath | None = None,
        trigger_ms: int | None = None,
        available_now: bool = False,
        output_mode: str = "append",
        batches_ahead: int = 4,
        records_per_second: float | None = None,
        name: str | None = None,
    ) -> DataStream:
        """Read a streaming DataFrame (`spark.readStream`): its query runs as long as the job does, in the program that
        submits it. See docs/connectors/spark-streams.md.

        `spool_dir`: a folder, on a disk that Spark and the TaskManagers share, where micro-batches wait; it belongs to
        the job's state, as its checkpoints do. None: `spark-streams/` with the job's name in `checkpoint_dir`.
        `trigger_ms`: how often Spark begins a micro-batch; None: as soon as the last one is done.
        `available_now`: the query takes what there is when it begins, and ends; and so does the stream.
        `output_mode`: Spark's; of an aggregation "update" or "complete".
        `batches_ahead`: how many batches wait in front of the source before the query does.

        A record is a Row: `row["delay"]`, `row.delay`. One subtask reads the batches, in order; what follows has one,
        too, up to `key_by`, `rebalance` or an operator with a `parallelism` of its own. `records_per_second`
        is its rate.
        """
        schema = streaming_schema(dataframe)
        if yes_or_no("available_now", available_now) and trigger_ms is not None:
            raise InvalidSetting("from_spark_stream: trigger_ms and available_now=True exclude each other: give one")
        interval = at_least_or_none("trigger_ms", trigger_ms, 1)
        trigger = {} if interval is None else {"processingTime": f"{interval} milliseconds"}
        stream = SparkStream(
            dataframe,
            at_least("batches_ahead", batches_ahead, 1),
            {"availableNow": True} if available_now else trigger,
            one_of("output_mode", output_mode, OUTPUT_MODES),
        )
        source = SparkStreamSource(
            schema,
            "" if spool_dir is None else absolute(local(path("spool_dir", spool_dir))),
            bounded=available_now,
            records_per_second=rate(records_per_second),
            **self._batching(),
        )
        return self._start(source, name, None, leads=True, spark_stream=stream)


def local(folder: str) -> str:
    """Raises InvalidSetting for a URL."""
    if protocol_of(folder) != "file":
        raise InvalidSetting(
            f"from_spark_stream: its batches wait in a folder of a disk that Spark and the TaskManagers share, found "
            f"{folder!r}: set spool_dir to one"
        )
    return folder.removeprefix("file://")
