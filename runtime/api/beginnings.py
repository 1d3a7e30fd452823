"""Beginnings: what the parts of a StreamEnvironment, one for each kind of outside system, begin a stream with."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from ...actors.operators.source import Source
from ..connectors.spark.stream_query import SparkStream
from .elsewhere import OF_ENVIRONMENTS, instead_of, without_guess
from .stream import DataStream


class Beginnings:
    """Base of the parts of a StreamEnvironment."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Only for what there is not."""
            hint = "" if name.startswith("_") else instead_of(name, OF_ENVIRONMENTS, dir(self))
            raise without_guess(f"a {type(self).__name__} has no {name!r}{hint}", name)

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
