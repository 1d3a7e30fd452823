"""OutputSoFar: whether all that is committed is expected, asked after each commit, and so answered from what is new.

It reads the disk itself and not through the product's readers, which are asked when it says no, and at the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Any

from ....messages import CheckpointId
from ...connectors import UnreadableInput
from ...connectors.files.collect_sink import collected_records, is_collected
from ...connectors.files.committed_files import checkpoint_of
from ...oracles import multiset
from ..world.disk import SimulatedDisk
from ..world.file_system import SimulatedFileSystem


class OutputSoFar:
    """Of one history. A file that is there no more, or is another one, makes it begin again."""

    def __init__(self, disk: SimulatedDisk, expected: Iterable[Any]) -> None:
        self._disk = disk
        self._expected = multiset(expected)
        self._counted: dict[str, bytes] = {}
        self._left = Counter[Hashable]()
        """Expected records that are not in the files that are counted."""

    def is_expected(self, outputs: Iterable[tuple[str, CheckpointId | None]]) -> bool:
        """Whether the files in these directories, up to a checkpoint each, hold nothing that is not expected; False,
        too, when one cannot be read.
        """
        files = dict(pair for directory, until in outputs for pair in self._files(directory, until))
        if not self._counted or not self._counted.items() <= files.items():
            self._counted, self._left = {}, self._expected.copy()
        new = [path for path in files if path not in self._counted]
        try:
            found = multiset(record for path in new for record in collected_records(path, files[path]))
        except UnreadableInput:
            found = Counter({None: 1 + self._expected.total()})
        self._left.subtract(found)
        if any(self._left[record] < 0 for record in found):
            self._counted = {}
            return False
        self._counted = files
        return True

    def _files(self, directory: str, until: CheckpointId | None) -> Iterable[tuple[str, bytes]]:
        folder = SimulatedFileSystem._strip_protocol(directory)
        for name, data in self._disk.contents(folder).items():
            if is_collected(name) and (until is None or checkpoint_of(name) <= until):
                yield f"{folder}/{name}", data
