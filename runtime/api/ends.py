"""Ends: what the parts of a stream, one for each kind of outside system, end it with."""

from __future__ import annotations

from abc import abstractmethod
from typing import Generic, TypeVar, Unpack

from ...actors.operators.operator import Operator
from ..connectors import LakeSink
from .known_options import Options

End = TypeVar("End")


class Ends(Generic[End]):
    """Base of the parts of a stream. `End`: what `sink_to` returns."""

    @abstractmethod
    def sink_to(self, sink: Operator | type[Operator] | LakeSink, **options: Unpack[Options]) -> End:
        """End the stream in a sink."""
