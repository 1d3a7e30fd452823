"""Whether the records of a collection have the names of a key: said when the program is built, not when it runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import is_dataclass
from typing import Any

from ...actors.flow.records import mapping_of
from ...messages import those_there_are
from ..connectors import CollectionSource
from .errors import UnknownColumn
from .stream_graph import StreamNode

SAMPLE = 100
"""The number of records of a collection that are looked at; all others are taken to have the same columns."""


def check_records(keys: Sequence[Any], producers: Iterable[StreamNode]) -> None:
    """Raises UnknownColumn if a record of a collection among the producers lacks a name of the key."""
    names = [key for key in keys if isinstance(key, str)]
    for producer in producers:
        source = producer.operator
        sample = source.records[:SAMPLE] if isinstance(source, CollectionSource) else []
        if all(map(_has_names, sample)):
            for position, record in enumerate(sample):
                _check_record(names, record, f"record {position} of {producer.name!r}")


def _check_record(keys: Sequence[str], record: Any, where: str) -> None:
    known = mapping_of(record)
    for key in keys:
        if key not in known and (isinstance(record, dict) or not hasattr(record, key)):
            raise UnknownColumn(f"key_by: there is no {key!r} in {where}; it has {those_there_are(key, known)}")


def _has_names(record: Any) -> bool:
    if isinstance(record, tuple):
        return hasattr(record, "_fields")
    return isinstance(record, dict) or (is_dataclass(record) and not isinstance(record, type))
