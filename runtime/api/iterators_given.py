"""Iterators that from_collection is given, with warnings of one that has no end, or that was read before."""

from __future__ import annotations

from collections.abc import Iterator
from types import GeneratorType
from typing import Any, Final

from .warned import warn

MANY: Final = 1_000_000
"""Records that one in memory seldom has."""


def told_when_many(records: Iterator[Any], many: int = MANY) -> Iterator[Any]:
    """The same records. Warns when there are many, while it goes on, and at the end when there was none."""
    named = f"the generator {records.__name__}" if isinstance(records, GeneratorType) else "the iterator"
    count = 0
    for count, record in enumerate(records, 1):
        if count == many:
            warn(
                f"from_collection: {named} has given {many:,} records, and goes on: all are read, and held in memory, "
                "before the job begins. Write env.generate(function) or a Source of your own for data without an "
                "end, and read much data from files"
            )
        yield record
    if not count:
        warn(
            f"from_collection: {named} gave no record: one that was read before gives nothing again; make it "
            "again, or give a list"
        )
