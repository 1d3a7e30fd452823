"""MissingColumn: a record was asked for a column that it does not have. Says which there are, and which was meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

_NAMES_SHOWN = 30


class MissingColumn(KeyError, AttributeError):
    """Of `record["name"]` and of `record.name`. The text is made when it is read, as whoever asks often goes on."""

    def __init__(self, wanted: Any, names: Iterable[Any]) -> None:
        super().__init__(wanted, tuple(names))

    def __str__(self) -> str:
        wanted, names = self.args
        return f"no column {wanted!r}; the row has {those_there_are(wanted, names)}"


def those_there_are(wanted: Any, names: Iterable[Any]) -> str:
    """The names that a record or a stream has, for an error text, and the one that is close to what was wanted."""
    known = list(map(str, names))
    told = ", ".join(known[:_NAMES_SHOWN]) or "no columns"
    if len(known) > _NAMES_SHOWN:
        told += f" and {len(known) - _NAMES_SHOWN} more"
    close = get_close_matches(wanted, known, n=1) if isinstance(wanted, str) and wanted not in known else []
    return f"{told}; did you mean {close[0]!r}?" if close else told
