"""What the parts of a StreamEnvironment and of a stream build on, one for each kind of outside system: how a stream
begins, and how it ends.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack

from ...actors.operators.operator import Operator
from ...actors.operators.source import Source
from ..connectors import LakeSink
from .joined_streams import Options

if TYPE_CHECKING:
    from .stream import DataStream

End = TypeVar("End")


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
    ) -> DataStream:
        """`leads`: what follows has the source's parallelism, as long as the order of the records is kept."""


class Ends(Generic[End]):
    """Base of the parts of a stream. `End`: what `sink_to` returns."""

    @abstractmethod
    def sink_to(self, sink: Operator | type[Operator] | LakeSink, **options: Unpack[Options]) -> End:
        """End the stream in a sink."""
