"""What can go wrong where data enters and leaves.

ConnectorError
├── MissingExtra            a connector whose client library is not installed; names the extra that brings it
├── UnknownFileSystem       a URL that fsspec cannot open; names the package that is missing
├── NoInput                 a path that names no readable file
├── UnreadableInput         a file whose content is not what its format or schema says
│   └── UnreadableFile      the same, read to that point and unchanged: it will be the same when it is read again
├── InputChanged            a file that is not what it was when the job was made
├── NotAScan                a DataFrame whose rows Spark itself has to compute; caught where there is another way
├── OffsetMismatch          a recorded offset that does not belong to this source as it is now
├── NonDeterministicSource  a Spark partition that came out different when it was computed again
├── RewindImpossible        an offset older than what this process has kept of its Spark partition
├── PartitionFailed         Spark raised while the partition was read; the cause says what
├── SparkQueryFailed        a streaming query of Spark whose batches a job reads has failed
├── SpoolMismatch           a folder of a query's batches that does not belong to the job's state, or to the query
├── RedisRefused            what Redis will always refuse: credentials, rights, a key of another type
├── HttpRefused             an HTTP endpoint that answers with what is no success and no "come again"
├── StreamTrimmed           entries of a Redis stream that were trimmed or deleted before they were read
├── InletLogDamaged         records that were acknowledged are missing in the log of an inlet
├── InletSchemaChanged      acknowledged records of an inlet do not fit the schema that it has now
├── UnusableOutput          an output folder that cannot be made or written, or that somebody has removed
├── OutputTakenOver         an output folder that another job writes to since; names that job
└── LostTransaction         a pre-committed file that is neither where it was written nor where it belongs
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType


class ConnectorError(Exception):
    """Base of all errors of the connectors."""


class MissingExtra(ConnectorError, ImportError):
    """The client library of this connector is an optional dependency; known when the source or sink is made."""

    def __init__(self, module: str, extra: str, wanted_by: str) -> None:
        package = module.replace("_", "-")
        super().__init__(f'{wanted_by} needs {package}: pip install "understudy[{extra}]"', name=module)


class UnknownFileSystem(ConnectorError, ValueError):
    """The URL's protocol is unknown, or what fsspec needs for it is not installed."""


class NoInput(ConnectorError, ValueError):
    """There is nothing to read at this path; known when the source is made."""


class UnreadableInput(ConnectorError, ValueError):
    """This file cannot be read as this format with these columns; names the file and both schemas where two differ."""


class UnreadableFile(UnreadableInput):
    """The file has been read, it has not changed since the job was made, and its content does not fit."""


class InputChanged(ConnectorError):
    """This file was written or removed after the job was made: its rows would be neither the old nor the new ones."""


class NotAScan(ConnectorError):
    """The rows of this DataFrame cannot be read from its files without Spark; the message says why."""


class OffsetMismatch(ConnectorError, ValueError):
    """The offset was recorded with other files or another parallelism: to go on would lose or repeat records."""


class NonDeterministicSource(ConnectorError):
    """The rows before the offset are not the rows that were consumed: going on would break exactly-once unnoticed."""


class RewindImpossible(ConnectorError):
    """Rows before the last completed checkpoint are needed, and are gone: the TaskManager's process starts again."""

    may_pass = True


class PartitionFailed(ConnectorError):
    """The Spark partition cannot be read on; `__cause__` is what Spark raised."""

    may_pass = True


class SparkQueryFailed(ConnectorError):
    """The text has what Spark said; a job that is started again from its newest checkpoint starts the query again."""

    may_pass = False


class SpoolMismatch(ConnectorError):
    """Batches that are to be read were removed, or are another query's; the text says which, and what to do."""

    may_pass = False


class UnusableOutput(ConnectorError):
    """The text names the folder; `__cause__`, if there is one, is what the file system said. To restart does not help:
    somebody has to put the folder right.
    """


class OutputTakenOver(ConnectorError):
    """The text names the folder and the job that has taken it over. To restart does not help."""

    may_pass = False


class LostTransaction(ConnectorError):
    """Committed data is missing: neither the in-progress nor the final file exists. Somebody moved or deleted it."""


class RedisRefused(ConnectorError):
    """The text says what Redis did, and what is wanted; no password stands in it."""

    may_pass = False


class HttpRefused(ConnectorError):
    """The text has the status and the beginning of the answer."""

    may_pass = False


class StreamTrimmed(ConnectorError):
    """To go on would leave them out unnoticed; the text says how many there were, or which."""

    may_pass = False


class InletLogDamaged(ConnectorError):
    """A log on the checkpoint storage lacks records that were acknowledged: a file of it was removed or has rotted."""

    def __init__(self, inlet: str, found: str) -> None:
        super().__init__(
            f"inlet {inlet!r}: {found}: a file of the log is missing or damaged; restore its files, or start the job "
            "from a savepoint, which needs none. Without a savepoint, make one of a checkpoint below "
            "checkpoint_dir: Savepoint.open(checkpoint).edit().write(checkpoint_dir); records acknowledged later are "
            "not in it, and inlet.last_number() says what to send again"
        )


class InletSchemaChanged(ConnectorError):
    """Records that were acknowledged under another schema are to be processed still, and do not fit that of today."""

    def __init__(self, inlet: str, was: str, wanted: str, problem: str) -> None:
        super().__init__(
            f"inlet {inlet!r}: acknowledged records, not processed yet, have the columns {was}; its schema wants "
            f"{wanted} ({problem}): start the job once more with the schema of then, and end it with job.stop(), which "
            "processes them; or keep their columns, and let new ones be nullable"
        )


def check_extra(module: str, *, extra: str, wanted_by: str) -> None:
    """Raises MissingExtra if the top-level `module` is not installed. Imports nothing: what makes a source need not
    pay for its client.
    """
    if find_spec(module) is None:
        raise MissingExtra(module, extra, wanted_by)


def require(module: str, *, extra: str, wanted_by: str) -> ModuleType:
    """Import the module of an optional client library; raises MissingExtra if it is not installed.

    Only the absence of the library is a MissingExtra: an import that fails inside of it raises as it is.
    """
    check_extra(module.partition(".")[0], extra=extra, wanted_by=wanted_by)
    return import_module(module)
