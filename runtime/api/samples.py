"""Sample: the first records of a collection, as far as a stream still has them: what they tell before the job runs.

Columns that they do not have are refused where the user names them. Records that a function makes are not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from typing import Any

from ...actors.flow.key_selector import getter_of
from ...actors.flow.records import RecordMismatch, batch_of, mapping_of
from ...actors.operators.assign_timestamps import AssignTimestamps
from ...actors.operators.async_functions import AsyncFilter
from ...actors.operators.event_times import UnusableTime, times_of_list
from ...actors.operators.filter import Filter
from ...messages import those_there_are
from ...state.errors import WrongColumn
from ...state.kinds.aggregates import Aggregate
from ..connectors import CollectionSource
from .errors import InvalidProgram, SchemaMismatch, UnknownColumn
from .pairs import refuse_names_in_pairs
from .stream_graph import StreamEdge

SIZE = 100


@dataclass(frozen=True, slots=True)
class Sample:
    """`all_come`: no filter lies between the source of this name and the stream."""

    source: str
    collection: Sequence[Any]
    all_come: bool

    @property
    def records(self) -> Sequence[Any]:
        return self.collection[:SIZE]

    @property
    def has_names(self) -> bool:
        """Whether its records say which columns they have."""
        return bool(self.collection) and all(map(_has_names, self.records))

    def without(self, name: str) -> int | None:
        """The place of the first record that lacks the name."""
        return next((place for place, record in enumerate(self.records) if not _has(record, name)), None)

    def lacks(self, name: str) -> bool:
        """Whether no record has it, of the whole collection."""
        return not any(_has(record, name) for record in self.collection)

    def error(self, method: str, name: str, place: int) -> UnknownColumn:
        known = those_there_are(name, mapping_of(self.collection[place]))
        return UnknownColumn(f"{method}: there is no {name!r} in record {place} of {self.source!r}; it has {known}")


def samples_of(edges: Iterable[StreamEdge], *, all_come: bool = True) -> Iterator[Sample | None]:
    """Of each stream that comes together in these; None for records that are not those of a collection."""
    for edge in edges:
        operator = edge.source.operator
        if edge.output_tag:
            yield None
        elif isinstance(operator, CollectionSource):
            yield Sample(edge.source.name, operator.records, all_come)
        elif isinstance(operator, AssignTimestamps | Filter | AsyncFilter):
            yield from samples_of(edge.source.inputs, all_come=all_come and isinstance(operator, AssignTimestamps))
        else:
            yield None


def check_names(method: str, names: Sequence[Any], edges: Iterable[StreamEdge]) -> None:
    """For what every record must have. Raises UnknownColumn if one lacks it; behind a filter, if all do."""
    edges = list(edges)
    refuse_names_in_pairs(method, names, edges)
    for sample in _named(edges):
        for name in names:
            place = sample.without(name) if isinstance(name, str) else None
            if place is not None and (sample.all_come or sample.lacks(name)):
                raise sample.error(method, name, place)


def check_times(time: Any, edges: Iterable[StreamEdge]) -> None:
    """For the name of a column of event times. Raises InvalidProgram."""
    if not isinstance(time, str):
        return
    edges = list(edges)
    check_names("assign_timestamps", [time], edges)
    for sample in _named(edges):
        if sample.all_come:
            try:
                times_of_list([getter_of(time, each)(each) for each in sample.records], f"the time column {time!r}")
            except UnusableTime as error:
                raise InvalidProgram(f"assign_timestamps: in {sample.source!r}: {error}") from None


def check_columns(aggregates: Mapping[str, Any], edges: Iterable[StreamEdge]) -> None:
    """For columns that named aggregates are computed from, of which a record may lack some. Raises UnknownColumn."""
    names = [each.column for each in aggregates.values() if isinstance(each, Aggregate) and each.column is not None]
    edges = list(edges)
    refuse_names_in_pairs("aggregate", names, edges)
    for sample in _named(edges):
        for name in names:
            if sample.without(name) is not None and sample.lacks(name):
                raise sample.error("aggregate", name, 0)


def check_types(aggregates: Mapping[str, Aggregate], edges: Iterable[StreamEdge]) -> None:
    """For those that are computed from whole columns. Raises SchemaMismatch."""
    for sample in _named(edges):
        if not sample.all_come:
            continue
        try:
            schema = batch_of(sample.records).schema
        except RecordMismatch:  # which is not about the aggregates
            continue
        for each in aggregates.values():
            if each.column in schema.names:
                try:
                    each.check(schema)
                except WrongColumn as error:
                    raise SchemaMismatch(f"aggregate: in {sample.source!r}: {error}") from None


def _named(edges: Iterable[StreamEdge]) -> Iterator[Sample]:
    return (sample for sample in samples_of(edges) if sample is not None and sample.has_names)


def _has(record: Any, name: str) -> bool:
    if isinstance(record, dict):
        return name in record
    return name in mapping_of(record) or hasattr(record, name)


def _has_names(record: Any) -> bool:
    if isinstance(record, tuple):
        return hasattr(record, "_fields")
    return isinstance(record, dict) or (is_dataclass(record) and not isinstance(record, type))
