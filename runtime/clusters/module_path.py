"""Where modules are looked for: a TaskManager imports what was imported where its job was submitted.

Two folders may each have a module of the same name, so the order counts: that of the other process comes first here.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence

_OF_A_PYTHON = re.compile(r"python(3\.?\d+)(?=\W|$)")


def searched_folders() -> tuple[str, ...]:
    """Those of this process, in their order, for processes that have another working directory."""
    folders: list[str] = []
    for each in sys.path:
        if isinstance(each, str):  # Python skips others
            try:
                folders.append(os.path.abspath(each))
            except OSError:  # the working directory is gone, and modules in it too
                continue
    return tuple(dict.fromkeys(folders))


def search_first(folders: Sequence[str]) -> None:
    """Look for modules there, in this order, and then where this process did. What belongs to another version of Python
    comes last, as it does not run here.
    """
    wanted = [each for each in folders if not _is_foreign(each)]
    sys.path[:] = list(dict.fromkeys([*wanted, *sys.path, *folders]))


def _is_foreign(folder: str) -> bool:
    major, minor = sys.version_info[:2]
    return any(found not in (f"{major}.{minor}", f"{major}{minor}") for found in _OF_A_PYTHON.findall(folder))
