"""Beginnings: what the parts of a StreamEnvironment, one for each kind of outside system, begin a stream with."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from ...actors.operators.source import Source
from ..connectors.spark.stream_query import SparkStream
from .stream import DataStream


class Beginnings:
    """Base of the parts of a StreamEnvironment."""

    @abstractmethod
    def _batching(self) -> dict[str, Any]:
        """The `batch_rows` of a source, if the environment has one."""

    @abstractmethod
    def _start(
        self,
        source: Source,
        name: str | None,
        parallelism: int | None,
        slot_sharing_group: str | None = None,
        dataframe: Any = None,
        leads: bool = False,
        spark_stream: SparkStream | None = None,
    ) -> DataStream:
        """`leads`: what follows has the source's parallelism, as long as the order of the records is kept.
        `spark_stream`: what runs in the program as long as the job does.
        """
