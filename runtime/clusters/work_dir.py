"""The folder in which a process keeps what goes with it: `understudy-*`, in the temporary folder, mode 0700."""

from __future__ import annotations

import tempfile

from ...state.errors import UnwritableFolder

WORK_DIR_PREFIX = "understudy-"


def made_work_dir() -> str:
    """A new one; whoever made it removes it. Raises UnwritableFolder."""
    try:
        return tempfile.mkdtemp(prefix=WORK_DIR_PREFIX)
    except OSError as error:
        raise UnwritableFolder(
            error.errno,
            f"no temporary folder can be written: {error.strerror}; set TMPDIR to a folder that this user can write "
            "to (in a container with a read-only file system: an emptyDir or tmpfs)",
        ) from error


def where_work_dirs_are() -> str | None:
    """The temporary folder; None where none can be written: no process that had one is here then."""
    try:
        return tempfile.gettempdir()
    except OSError:
        return None
