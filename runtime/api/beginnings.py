"""Beginnings: what the parts of a StreamEnvironment, one for each kind of outside system, begin a stream with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...actors.operators.source import Source
from ..connectors.spark.stream_query import SparkStream
from .elsewhere import OF_ENVIRONMENTS, instead_of, without_guess
from .schemas import declared_schema
from .stream import DataStream
from .stream_graph import StreamEdge, StreamGraph


class _ClassOfBeginnings(type):
    if not TYPE_CHECKING:

        def __getattr__(cls, name: str) -> Any:
            """Only for what there is not, as in StreamEnvironment.get_execution_environment()."""
            hint = "" if name.startswith("_") else instead_of(name, OF_ENVIRONMENTS, ())
            raise without_guess(f"the class {cls.__name__} has no {name!r}{hint}", name)


class Beginnings(metaclass=_ClassOfBeginnings):
    """Base of the parts of a StreamEnvironment."""

    graph: StreamGraph
    batch_rows: int | None

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Only for what there is not."""
            hint = "" if name.startswith("_") else instead_of(name, OF_ENVIRONMENTS, dir(self))
            raise without_guess(f"a {type(self).__name__} has no {name!r}{hint}", name)

    def _batching(self) -> dict[str, Any]:
        """The `batch_rows` of a source, if the environment has one."""
        return {} if self.batch_rows is None else {"batch_rows": self.batch_rows}

    def _with(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """What the user has said of a source, and else the environment. Raises InvalidSetting for what is no schema."""
        declared_schema(options.get("schema"))
        return {**self._batching(), **options}

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
        """`leads`: it has one subtask if nothing is said, and what follows has as many as it, as long as the order of
        the records is kept. `spark_stream`: what runs in the program as long as the job does.
        """
        node = self.graph.add(
            "source",
            source,
            name=self.graph.name_for(name, type(source).__name__),
            schema=source.source_schema(),
            bounded=source.bounded,
            parallelism=1 if leads and parallelism is None else parallelism,
            slot_sharing_group=slot_sharing_group,
            dataframe=dataframe,
            leads=leads,
        )
        node.spark_stream = spark_stream
        return DataStream(self.graph, [StreamEdge(node)])
