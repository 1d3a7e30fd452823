"""Operators: the base classes that users subclass, and the built-in ones, one per file."""

from .aggregate import Avg, ColumnarAggregate, Count, Max, Min, Sum
from .assign_timestamps import AssignTimestamps
from .collector import Collector, OutputTag
from .committer import CommittableWriter, Committer
from .event_times import UnusableTime
from .filter import Filter
from .flat_map import FlatMap
from .idempotent_sink import IdempotentSink
from .keyed_operator import KeyedOperator
from .ledger_sink import LedgerSink
from .map import Map
from .map_batches import MapBatches
from .marker import Marker
from .metrics import Counter, Gauge, Histogram, Meter, MetricGroup
from .operator import Operator
from .operator_context import OperatorContext
from .reduce import KeyedReduce
from .source import END, FromSplit, Source, SourceState
from .timers import KeyedTimer, Timers
from .two_phase_commit_sink import TwoPhaseCommitSink
from .watermark_generators import (
    WatermarkGenerator,
    WatermarkStrategy,
    bounded_out_of_orderness,
    monotonous,
    punctuated,
)

__all__ = [
    "END",
    "AssignTimestamps",
    "Avg",
    "Collector",
    "ColumnarAggregate",
    "CommittableWriter",
    "Committer",
    "Count",
    "Counter",
    "Filter",
    "FlatMap",
    "FromSplit",
    "Gauge",
    "Histogram",
    "IdempotentSink",
    "KeyedOperator",
    "KeyedReduce",
    "KeyedTimer",
    "LedgerSink",
    "Map",
    "MapBatches",
    "Marker",
    "Max",
    "Meter",
    "MetricGroup",
    "Min",
    "Operator",
    "OperatorContext",
    "OutputTag",
    "Source",
    "SourceState",
    "Sum",
    "Timers",
    "TwoPhaseCommitSink",
    "UnusableTime",
    "WatermarkGenerator",
    "WatermarkStrategy",
    "bounded_out_of_orderness",
    "monotonous",
    "punctuated",
]
