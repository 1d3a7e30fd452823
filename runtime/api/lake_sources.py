"""LakeSources: streams of what stands in tables of lakes. A part of the StreamEnvironment."""

from __future__ import annotations

from typing import Any

from ...messages.known_names import known_arguments
from ...state.file_locations import AnyPath
from ..connectors.lakes.delta_source import DeltaSource
from ..connectors.lakes.iceberg_source import IcebergSource
from .beginnings import Beginnings
from .checks import rate
from .stream import DataStream


class LakeSources(Beginnings):
    """Base of the StreamEnvironment."""

    @known_arguments(first=1)
    def from_delta(
        self,
        path: AnyPath,
        *,
        records_per_second: float | None = None,
        name: str | None = None,
        parallelism: int | None = None,
        **options: Any,
    ) -> DataStream:
        """Read a Delta table: `DeltaSource(path, **options)`. A record is a Row.

        `records_per_second` is the rate of all subtasks together.
        """
        source = DeltaSource(path, records_per_second=rate(records_per_second), **self._with(options))
        return self._start(source, name, parallelism)

    @known_arguments(first=1)
    def from_iceberg(
        self,
        table: str,
        *,
        records_per_second: float | None = None,
        name: str | None = None,
        parallelism: int | None = None,
        **options: Any,
    ) -> DataStream:
        """Read an Iceberg table: `IcebergSource(table, **options)`. A record is a Row.

        `records_per_second` is the rate of all subtasks together.
        """
        source = IcebergSource(table, records_per_second=rate(records_per_second), **self._with(options))
        return self._start(source, name, parallelism)
