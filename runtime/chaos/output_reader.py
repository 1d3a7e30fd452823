"""OutputReader: reads a job's output folder during the whole run, as any other program might, and sees that it never
shows a record that is not to be, or one twice.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Self

from ..oracles import Violation, nothing_extra
from .workload import Counted, counted, read_file

LOOK_EVERY_S = 0.05


def visible_files(folder: Path) -> list[Path]:
    """What other programs see: neither hidden files nor folders."""
    try:
        return sorted(path for path in folder.iterdir() if not path.name.startswith((".", "_")))
    except FileNotFoundError:
        return []


class OutputReader(threading.Thread):
    """Looks again and again, at each file once: what is committed does not change. Use it as a context manager."""

    def __init__(self, folder: Path) -> None:
        super().__init__(name="chaos-reader", daemon=True)
        self.violations: list[Violation] = []
        self.looks = 0
        self.taken_back = 0
        """Files that were there and are no more."""
        self.next_index = 0
        """One more than the highest index seen."""
        self._folder = folder
        self._files: dict[Path, list[Counted]] = {}
        self._seen: Counter[Counted] = Counter()
        self._over = threading.Event()

    def run(self) -> None:
        while not self._over.wait(LOOK_EVERY_S):
            try:
                self._look()
            except Exception as error:  # noqa: BLE001 - whatever a reader meets is what this is about
                self.violations.append(Violation("readable", repr(error)))
            self.looks += 1

    def await_look(self) -> None:
        """Until it has seen what is visible now: the first look from now on may have begun before."""
        before = self.looks
        while self.looks < before + 2:
            time.sleep(LOOK_EVERY_S / 5)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()

    def _look(self) -> None:
        found = visible_files(self._folder)
        for path in self._files.keys() - set(found):
            self._seen.subtract(self._files.pop(path))
            self.taken_back += 1
        for path in found:
            if path not in self._files:
                with contextlib.suppress(FileNotFoundError):  # taken back since it was listed
                    self._add(path, read_file(path))

    def _add(self, path: Path, records: list[Counted]) -> None:
        """Judge the new file's records together with those like them that were there before."""
        seen_before = [record for record in records for _ in range(self._seen[record])]
        violation = nothing_extra([*seen_before, *records], {counted(record.index) for record in records})
        if violation is not None:
            self.violations.append(Violation(violation.oracle, f"{path.name}: {violation.problem}"))
        self._files[path] = records
        self._seen.update(records)
        self.next_index = max(self.next_index, *(record.index + 1 for record in records))
