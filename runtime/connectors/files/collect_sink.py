"""CollectSink: brings a bounded result back to the driver, each record once, through committed files."""

from __future__ import annotations

import os
from typing import Any

from ....messages import CheckpointId, unpack_plain
from ....state.file_locations import file_system_at
from ....state.keyring import Keyring, is_sealed, opened
from ..errors import UnreadableInput
from .committed_files import OutputOf, checkpoint_of
from .file_sink import Directory, FileSink, FileTransaction
from .file_writers import RECORDS_LENGTH_BYTES, WRITE_FORMATS

_COLLECTED = "collected"
_LEVELS = 3
"""The directory of a sink is `collected/<job>/<operator>` below the `checkpoint_dir`."""


class CollectSink(FileSink):
    """Keeps records as Python records; rows of columns become Rows. Read them with `read_collected(directory)`.

    Whoever submits the job may set `path` later than here, but before the sink is opened.
    """

    def __init__(self, directory: str | None = None) -> None:
        super().__init__(directory or "", "records", shared=True)
        self.path = self.path if directory else ""

    def open(self) -> None:
        if not self.path:
            raise ValueError(f"sink {self.context.name!r} was given no directory: CollectSink(directory)")
        super().open()

    def _directory_of(self, transaction: FileTransaction) -> Directory:
        """An earlier job of the lineage has collected below its `checkpoint_dir`. Where that was moved as a whole, or
        copied, its directory is beside this one; an older copy has not got the file.
        """
        beside = self._beside(transaction["directory"])
        if beside and _has(directory := self._directory_at(beside), transaction):
            return directory
        return super()._directory_of(transaction)

    def _beside(self, path: str) -> str:
        """Where this directory of an earlier job is if it was moved as this one was; empty: this cannot be."""
        own, earlier = self.path.rsplit("/", _LEVELS), path.rsplit("/", _LEVELS)
        if len(own) != len(earlier) or own[0] == earlier[0] or not own[1] == earlier[1] == _COLLECTED:
            return ""
        return "/".join((own[0], *earlier[1:]))


def _has(directory: Directory, transaction: FileTransaction) -> bool:
    """Whether its file is there, in progress or visible."""
    name, final = transaction["in_progress"], transaction["final"]
    return name in directory.in_progress(final) or final in directory.committed(final)


def read_collected(directory: str, *, until: CheckpointId | None = None, of: OutputOf | None = None) -> list[Any]:
    """All committed records in `directory`: by subtask, and of one subtask in the order in which it took them.

    With `until`: only those that this checkpoint and the ones before it cover; with `of`: only those of one job's sink.
    """
    fs, root = file_system_at(directory)
    fs.invalidate_cache()
    if not fs.exists(root):
        return []
    paths = sorted(path for path in fs.ls(root, detail=False) if is_collected(path))
    if until is not None:
        paths = [path for path in paths if checkpoint_of(path.rpartition("/")[2]) <= until]
    if of is not None:
        mine = set(of.among(path.rpartition("/")[2] for path in paths))
        paths = [path for path in paths if path.rpartition("/")[2] in mine]
    return [record for path in paths for record in collected_records(path, fs.cat_file(path))]


def is_collected(name: str) -> bool:
    """Whether a file of this name, or at this path, holds collected records."""
    return name.endswith(WRITE_FORMATS["records"].extension)


def collected_records(path: str, data: bytes) -> list[Any]:
    """The records of one file. Raises UnreadableInput when it is cut off, CorruptState and WrongEncryptionKey."""
    keys = Keyring.of(os.environ)
    records: list[Any] = []
    position = 0
    while position < len(data):
        begin = position + RECORDS_LENGTH_BYTES
        position = begin + int.from_bytes(data[position:begin], "big")
        if position > len(data):
            raise UnreadableInput(f"{path} is cut off: wanted {position} bytes, found {len(data)}")
        block = data[begin:position]
        records.extend(unpack_plain(opened(keys, path, block) if is_sealed(block) else block))
    return records
