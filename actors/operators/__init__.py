"""Operators: the base classes that users subclass, and the built-in ones, one per file."""

from .aggregate import Avg, ColumnarAggregate, Count, Max, Min, Sum
from .collector import Collector
from .filter import Filter
from .flat_map import FlatMap
from .keyed_operator import KeyedOperator
from .map import Map
from .map_batches import MapBatches
from .operator import Operator, OperatorContext
from .reduce import KeyedReduce
from .source import END, Source, SourceState
from .two_phase_commit_sink import TwoPhaseCommitSink

__all__ = [
    "END",
    "Avg",
    "Collector",
    "ColumnarAggregate",
    "Count",
    "Filter",
    "FlatMap",
    "KeyedOperator",
    "KeyedReduce",
    "Map",
    "MapBatches",
    "Max",
    "Min",
    "Operator",
    "OperatorContext",
    "Source",
    "SourceState",
    "Sum",
    "TwoPhaseCommitSink",
]
