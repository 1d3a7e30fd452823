"""What can go wrong with a savepoint that is opened as data. A file that is missing or corrupt: see `state/errors`.

SavepointError
├── NotASavepoint           a path at which there is something else, or nothing that could be a savepoint
│   └── IncompleteSavepoint a checkpoint's folder without `_metadata`: it was never complete
├── NoSuchState             it has no such operator, or the operator no such state; lists those that there are
├── UnreadableState         state in a form that cannot be read as data here; says what would help
├── QueryFailed             SQL that DuckDB refuses
├── NotComparable           two savepoints, or states, that cannot be compared key by key
└── InvalidEdit             an edit that cannot be made; nothing was written
"""

from __future__ import annotations

from collections.abc import Iterable

from ...state.errors import StateError


class SavepointError(StateError):
    """Base of what is wrong with a savepoint that is used as data."""


class NotASavepoint(SavepointError, ValueError):
    """No savepoint is at this path."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: not a savepoint: {why}")
        self.path = path


class IncompleteSavepoint(NotASavepoint):
    """Half a checkpoint: some of its files are there, and the one that is written last is not."""


class NoSuchState(SavepointError, LookupError):
    """`what`, as "operator 'count'", is not there."""

    def __init__(self, where: str, what: str, there: Iterable[str]) -> None:
        known = ", ".join(map(repr, there)) or "none"
        super().__init__(f"{where}: there is no {what}; there are: {known}")


class UnreadableState(SavepointError):
    """The bytes are whole, and cannot be shown here."""


class QueryFailed(SavepointError, ValueError):
    """DuckDB refuses the query; the text is its own, and the tables that there are."""


class NotComparable(SavepointError, ValueError):
    """The text says what differs that must be alike."""


class InvalidEdit(SavepointError, ValueError):
    """What was asked for cannot be made of this savepoint; the text names operator and state. Nothing was written."""
