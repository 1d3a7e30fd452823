"""What can go wrong with the tables of a lake.

ConnectorError
├── NoTable            there is no such table, or not the version that was asked for
├── NoCatalog          a catalog of Iceberg tables that cannot be opened
├── LakeUnreachable    the object store of a table, or its catalog, does not answer, or refuses
├── UnsupportedTable   a table with features that these connectors do not know how to keep
├── ColumnConflict     a table's columns and those that are written or read contradict each other
├── RowsChanged        a followed version has removed or rewritten rows, which a stream of new rows cannot say
├── VersionGone        a version that is to be read, or a file of it, was removed by the table's maintenance
└── LostDataFile       a file that a checkpoint says is written is not there any more, and cannot be committed
"""

from __future__ import annotations

from ..errors import ConnectorError


class NoTable(ConnectorError, ValueError):
    """The text says which table, and how one is made."""

    may_pass = False


class NoCatalog(ConnectorError):
    """The text names the catalog, and says what was found there; whether it may pass is for its cause to say."""


class LakeUnreachable(ConnectorError, OSError):
    """The text names the table and what was heard; `__cause__` is the client's error. Worth another try, later."""

    may_pass = True


class UnsupportedTable(ConnectorError, ValueError):
    """The text names the feature of the table that is in the way."""

    may_pass = False


class ColumnConflict(ConnectorError, ValueError):
    """The text names the column and both types."""

    may_pass = False


class RowsChanged(ConnectorError):
    """The text names the version and what was done to the table in it."""

    may_pass = False


class VersionGone(ConnectorError):
    """The text names the version or the file; keep versions for longer than a job may be behind or away."""

    may_pass = False


class LostDataFile(ConnectorError):
    """Somebody removed it before it was committed: most often a vacuum with too short a retention."""

    may_pass = False

    def __init__(self, table: str, paths: list[str]) -> None:
        more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
        super().__init__(
            f"{table}: {paths[0]}{more} was written for a checkpoint that is complete, and is gone: put it back; or, "
            "if a vacuum removed it, start the job from a newer checkpoint, and let vacuums keep files for longer than "
            "a job may be away or a savepoint is kept"
        )
