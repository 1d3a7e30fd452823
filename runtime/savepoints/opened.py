"""Savepoint: what users open. It joins reading with all that can be done: SQL, differences, verification."""

from __future__ import annotations

import pyarrow as pa

from ...state.file_locations import AnyPath
from .difference import SavepointDiff
from .edit import SavepointEdit
from .reading import SavepointReader
from .sql import query
from .verification import Verification, verify
from .written import write


class Savepoint(SavepointReader):
    """`Savepoint.open(path)`: a savepoint's path, a checkpoint's folder or its `_metadata`; local, or a URL."""

    @staticmethod
    def verify(path: AnyPath) -> Verification:
        """Read every byte of it, and say which files are missing or corrupt. Raises NotASavepoint alone."""
        return verify(path)

    def query(self, sql: str) -> pa.Table:
        """What DuckDB answers, where `operator.state` names a table (in double quotes, where it is no plain name).
        Raises MissingExtra without DuckDB, QueryFailed and NoSuchState.
        """
        return query(self, sql)

    def diff(self, other: SavepointReader | AnyPath) -> SavepointDiff:
        """What is other in `other`, which is the later one. Raises NotComparable."""
        return SavepointDiff(self, other if isinstance(other, SavepointReader) else SavepointReader.open(other))

    def edit(self) -> SavepointEdit:
        """What is to be other in a new savepoint: `edit.write()` writes it. This one stays as it is."""
        return SavepointEdit(self, write)

    @staticmethod
    def new(max_parallelism: int | None = None) -> SavepointEdit:
        """A savepoint from nothing: add operators with `add`, put rows into their states, and `write(checkpoint_dir)`.
        None: 128 key groups, as a StreamEnvironment has by default up to a parallelism of 85.
        """
        return SavepointEdit(None, write, max_parallelism)
