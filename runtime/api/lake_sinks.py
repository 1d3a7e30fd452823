"""LakeSinks: streams that end in tables of lakes. A part of every stream."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Unpack

from ...messages.known_names import known_arguments
from ...state.file_locations import AnyPath
from ..connectors.lakes.delta_sink import DeltaSink
from ..connectors.lakes.iceberg_sink import IcebergSink
from ..connectors.lakes.lake_sink import LakeSink
from .ends import End, Ends
from .known_options import Options


class LakeSinks(Ends[End]):
    """Base of the DataStream."""

    @abstractmethod
    def process(self, operator: Any, **options: Unpack[Options]) -> Any:
        """Run an operator."""

    @known_arguments(first=1)
    def to_delta(
        self,
        path: AnyPath,
        *,
        name: str | None = None,
        parallelism: int | None = None,
        slot_sharing_group: str | None = None,
        **options: Any,
    ) -> End:
        """Append to a Delta table exactly once, one commit per checkpoint: `sink_to(DeltaSink(path, **options))`."""
        return self.sink_to(
            DeltaSink(path, **options), name=name, parallelism=parallelism, slot_sharing_group=slot_sharing_group
        )

    @known_arguments(first=1)
    def to_iceberg(
        self,
        table: str,
        *,
        name: str | None = None,
        parallelism: int | None = None,
        slot_sharing_group: str | None = None,
        **options: Any,
    ) -> End:
        """Append to an Iceberg table exactly once, one snapshot per checkpoint: `sink_to(IcebergSink(...))`."""
        return self.sink_to(
            IcebergSink(table, **options), name=name, parallelism=parallelism, slot_sharing_group=slot_sharing_group
        )

    def _in_two(
        self,
        sink: LakeSink,
        name: str | None = None,
        parallelism: int | None = None,
        slot_sharing_group: str | None = None,
    ) -> End:
        """The writers, which have the parallelism that was given, and the committer, which has the name."""
        of_writers = None if name is None else f"{name}-writer"
        written = self.process(
            sink.writer(), name=of_writers, parallelism=parallelism, slot_sharing_group=slot_sharing_group
        )
        end: End = written.sink_to(sink.committer(), name=name, parallelism=1, slot_sharing_group=slot_sharing_group)
        return end
