"""Spool: the micro-batches of a Spark query, on a disk, between the query that writes them and the source that reads.

    query.json            the id of the query whose batches these are
    spark/                Spark's own checkpoint of the query
    data/ID-UNIQUE/       Parquet files of a batch, written by Spark's tasks
    batches/ID.json       the batch is whole: its folder, and its files in their order
    removed.json          batches before this one are gone
    reading.json          the batch that the source has reached: for back-pressure alone
    over.json             the query has ended; how, if it failed

A batch counts from the moment its file in `batches` is there; of two that write the same one the first wins. The query
writes all but `removed.json` and `reading.json`, which are the source's.
"""

from __future__ import annotations

import json
import posixpath
import uuid
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from ....state import DurableFiles
from ..errors import SpoolMismatch

_WIDTH = 12


class Spool:
    """`path`: a folder of a disk that Spark and the TaskManagers share."""

    def __init__(self, path: str) -> None:
        self._files, self.path = DurableFiles.at(path)

    @property
    def spark_checkpoint(self) -> str:
        return f"{self.path}/spark"

    def make(self) -> None:
        """The folders, as far as they are missing."""
        for folder in ("data", "batches"):
            self._files.make_folder(f"{self.path}/{folder}")

    # -- for the query

    def claim(self, query_id: str) -> None:
        """These will be batches of this query. Raises SpoolMismatch if there are others'."""
        known = self.query_id()
        if known is None:
            self._write("query.json", query_id)
        elif known != query_id:
            raise SpoolMismatch(
                f"{self.path}: its batches are of query {known}, and Spark's checkpoint in it is of query {query_id}: "
                "somebody has removed or replaced a part of the folder. Put it back, or begin in another spool_dir"
            )

    def has(self, batch: int) -> bool:
        """Whether it is whole, or was, and is read and removed."""
        return batch < self.removed_before() or self._files.exists(self._manifest(batch))

    def new_folder(self, batch: int) -> str:
        """Where a batch may be written: no other attempt has this name."""
        return f"{self.path}/data/{batch}-{uuid.uuid4().hex}"

    def add(self, batch: int, folder: str) -> bool:
        """The files that Spark has written there are this batch, also after a power cut; False if there is one."""
        names = [name for name in self._files.names(folder) if name.endswith(".parquet") and name[0] not in "._"]
        for name in names:
            with self._files.fs.open(f"{folder}/{name}", "rb+") as file:
                self._files.sync(file)
        for synced in (folder, f"{self.path}/data"):
            self._files.sync_folder(synced)
        content = json.dumps({"folder": posixpath.basename(folder), "files": names}).encode()
        temporary = f"{self.path}/data/{uuid.uuid4().hex}.json"
        try:
            self._files.write_new(self._manifest(batch), temporary, [content])
        except FileExistsError:
            self._files.remove(temporary)
            self.drop(folder)
            return False
        self._files.sync_folder(f"{self.path}/batches")
        return True

    def drop(self, folder: str) -> None:
        """It will not be added."""
        with suppress(FileNotFoundError):
            self._files.remove_folder(folder)

    def waiting(self, batch: int) -> int:
        """How many batches there are before this one that the source has not reached."""
        return batch - int(self._read("reading.json") or 0)

    def begin(self) -> None:
        """A query begins, or goes on: how the former one ended counts no more."""
        self.make()
        self._files.remove(f"{self.path}/over.json")

    def end(self, failure: str | None) -> None:
        """Nothing comes any more."""
        self._write("over.json", {"failure": failure})

    # -- for the source

    def query_id(self) -> str | None:
        found = self._read("query.json")
        return None if found is None else str(found)

    def batches(self) -> list[int]:
        """The ids of those that are whole, in order."""
        return sorted(int(name.partition(".")[0]) for name in self._files.names(f"{self.path}/batches"))

    def files(self, batch: int) -> Sequence[str]:
        """The paths of a batch's files, in order. Raises FileNotFoundError."""
        found = json.loads(self._files.read(self._manifest(batch)))
        return [f"{self.path}/data/{found['folder']}/{name}" for name in found["files"]]

    def removed_before(self) -> int:
        return int(self._read("removed.json") or 0)

    def remove_before(self, batch: int) -> None:
        """Batches before this one are not needed any more. One that is stopped in between goes on with the next."""
        if batch > self.removed_before():
            self._write("removed.json", batch)
        for each in self.batches():
            if each < batch:
                self._files.remove(self._manifest(each))
        for name in self._files.names(f"{self.path}/data"):
            number = name.partition("-")[0]
            if number.isdigit() and int(number) < batch:
                self.drop(f"{self.path}/data/{name}")

    def reached(self, batch: int) -> None:
        """The source reads this one now, or waits for it."""
        self._write("reading.json", batch)

    def over(self) -> dict[str, Any] | None:
        """How the query has ended; None: it has not, as far as is known. Asked before `batches`, nothing is missed."""
        found: dict[str, Any] | None = self._read("over.json")
        return found

    # -- inside

    def _manifest(self, batch: int) -> str:
        return f"{self.path}/batches/{batch:0{_WIDTH}}.json"

    def _read(self, name: str) -> Any:
        with suppress(FileNotFoundError):
            return json.loads(self._files.read(f"{self.path}/{name}"))
        return None

    def _write(self, name: str, content: Any) -> None:
        temporary = f"{self.path}/data/{uuid.uuid4().hex}.json"
        self._files.write(temporary, [json.dumps(content).encode()])
        self._files.replace(temporary, f"{self.path}/{name}")
