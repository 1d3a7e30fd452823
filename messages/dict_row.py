"""DictRow: a record of a collection of dicts. It is a dict whose items can be read as attributes too.

A program that reads `flight["delay"]` or `flight.delay` runs unchanged on a collection, on files and on a
DataFrame. In every other respect it is the dict that it was made of: equal to it, shown and iterated as it is. What is
computed from it (`{**flight}`, `flight | {...}`, `flight.copy()`) is a plain dict.

Items come after the methods of dict: an item `keys` is `flight["keys"]`. Brackets are the quick way; an attribute takes
some ten times as long here.
"""

from __future__ import annotations

from typing import Any, NoReturn

from .missing_column import MissingColumn


class DictRow(dict[Any, Any]):
    """A dict with `record.name`, `record.asdict()`, and errors that say which names there are."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # a protocol that somebody looks for
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name)
        return self[name]

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"a record's items are set by brackets: record[{name!r}] = ...")

    def __missing__(self, name: Any) -> NoReturn:
        raise MissingColumn(name, self)

    def asdict(self) -> dict[Any, Any]:
        """A plain dict of the same items. Values that are records stay what they are."""
        return dict(self)


def dict_rows(records: list[Any]) -> list[Any]:
    """The records, with a DictRow in place of each plain dict; the list itself if there is none."""
    if dict not in set(map(type, records)):
        return records
    return [DictRow(record) if type(record) is dict else record for record in records]
