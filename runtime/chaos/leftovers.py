"""What a run must not leave behind: processes, hidden files, checkpoint files, temporary folders.

All processes of a run carry a mark in their environment, so they are known whoever their parent is by now, and nobody
else's process is ever signalled.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

from ..connectors.files.folder_owner import FOLDER as OWNER

MARK = "UNDERSTUDY_CHAOS_RUN"


class Marked:
    """The environment of one run: a mark, and a folder for temporary files. Use it as a context manager, once."""

    def __init__(self, temporary: Path) -> None:
        self.temporary = temporary
        self.mark = uuid4().hex

    def is_ours(self, pid: int) -> bool:
        """Whether this process lives and was started by this run."""
        import psutil

        try:
            process = psutil.Process(pid)
            return bool(process.status() != psutil.STATUS_ZOMBIE and process.environ().get(MARK) == self.mark)
        except psutil.Error:
            return False

    def processes(self) -> list[str]:
        """All living processes of this run, but for this one."""
        import psutil

        found = [process for process in psutil.process_iter() if process.pid != os.getpid()]
        return [_described(process) for process in found if self.is_ours(process.pid)]

    def wait_for_processes(self, within_s: float) -> list[str]:
        """Wait until none is left; returns those that are."""
        deadline = time.monotonic() + within_s
        while (left := self.processes()) and time.monotonic() < deadline:
            time.sleep(0.05)
        return left


@contextlib.contextmanager
def marked(temporary: Path) -> Iterator[Marked]:
    """For as long as this lasts, what is started carries the mark, and temporary files go to the folder."""
    one = Marked(temporary)
    before = (os.environ.get(MARK), os.environ.get("TMPDIR"), tempfile.tempdir)
    os.environ[MARK], os.environ["TMPDIR"], tempfile.tempdir = one.mark, str(temporary), str(temporary)
    try:
        yield one
    finally:
        _restore(MARK, before[0])
        _restore("TMPDIR", before[1])
        tempfile.tempdir = before[2]


def hidden_files(output: Path) -> list[str]:
    """Everything in the output folder, at any depth, that is no committed file. Whose the folder is stays there."""
    found = (name for name in everything_below(output) if name.startswith((".", "_")) or "/" in name)
    return [name for name in found if not name.startswith(f"{OWNER}/")]


def everything_below(folder: Path) -> list[str]:
    """Files, and folders with nothing in them, relative to the folder."""
    return sorted(
        str((Path(root) / name).relative_to(folder))
        for root, folders, files in os.walk(folder)
        for name in (*files, *(each for each in folders if not any((Path(root) / each).iterdir())))
    )


def _described(process: object) -> str:
    import psutil

    assert isinstance(process, psutil.Process)
    with contextlib.suppress(psutil.Error):
        return f"process {process.pid} ({process.status()}): {' '.join(process.cmdline())[:100]}"
    return f"process {process.pid}"


def _restore(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value
