"""What can go wrong with a database. No text holds a password.

SqlError
├── DatabaseUnreachable     nobody answered within `retry_ms`, or the server lets nobody in, or only reads
├── DatabaseRefused         wrong credentials, no such database, no permission; at submit: it only reads
├── NoSuchTable             the table, the query's table or the schema is not there
├── TableMismatch           the table's columns, their types or its keys are not what is wanted
├── KeyNotUnique            rows cannot be resumed by this key: it is NULL or there twice
├── StatementFailed         the database refused a statement: a constraint, a value, a full disk, a time-out
│   └── RowsLeftOut         a trigger let fewer rows in than were sent
└── ReplicationError
    ├── NotReplicable       a setting of server, table or publication stands against change data capture
    ├── SlotInUse           another job reads this slot
    ├── ChangesLost         changes that are needed are not there any more: the slot or its log is gone, or past them
    └── TableChanged        the table's columns are no longer those that the job was made with
"""

from __future__ import annotations

from ..errors import ConnectorError


class SqlError(ConnectorError):
    """Base of all errors with databases."""


class DatabaseUnreachable(SqlError):
    """It was tried again and again, for `retry_ms`; the cause is what was heard last."""

    may_pass = True


class DatabaseRefused(SqlError, ValueError):
    """The database answers, and does not let this user do this. To restart does not help."""

    may_pass = False


class NoSuchTable(SqlError, ValueError):
    """Names the table and those that there are."""

    may_pass = False


class TableMismatch(SqlError, ValueError):
    """Names columns and types, found and wanted."""

    may_pass = False


class KeyNotUnique(SqlError, ValueError):
    """Rows are read in the order of a key and resumed behind its last value: NULLs and equal keys would be lost."""

    may_pass = False


class StatementFailed(SqlError):
    """The text has the words of the database; `__cause__` is the driver's own error."""

    may_pass = False


class RowsLeftOut(StatementFailed):
    """The database has taken fewer rows than were sent, without an error of its own; none of them is committed."""

    def __init__(self, table: str, database: str, sent: int, got_in: int) -> None:
        super().__init__(
            f"{database}: of {sent} rows that were sent to table {table} it has taken {got_in}, and left out the "
            "others without an error, as a BEFORE INSERT trigger does that returns NULL. Let the trigger return NEW or "
            "raise, filter such records before the sink, or write to the table that the trigger puts them into"
        )


class ReplicationError(SqlError):
    """Base of what goes wrong with logical replication."""

    may_pass = False


class NotReplicable(ReplicationError, ValueError):
    """Says which setting, what it is and what it has to be."""


class SlotInUse(ReplicationError):
    """One slot feeds one job."""


class ChangesLost(ReplicationError):
    """To go on would leave a gap. The text says how far the slot is, and what the job needs."""


class TableChanged(ReplicationError):
    """Columns were added, dropped or have another type."""
