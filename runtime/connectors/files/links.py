"""Symbolic links in an input folder: which lead nowhere, and which to a file that is there under another name, too.

On a disk alone: the stores have none. Hard links are files of their own, as programs that copy folders make them.
"""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from fsspec.implementations.local import LocalFileSystem

log = logging.getLogger(__name__)

_LOGGED = 10_000
"""Names that are remembered: who watches a folder finds them with each look."""


def leads_nowhere(error: OSError) -> bool:
    """Whether a link was followed to nothing, or leads to itself; any other error says nothing of what is there."""
    return isinstance(error, FileNotFoundError) or error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


def named_once(fs: Any, names: Sequence[str]) -> list[str]:
    """Each file under one of these names, in their order: of those that lead to one file that without links, if there
    is one, or else the first by its letters. The others are logged, once in this process.
    """
    if not isinstance(fs, LocalFileSystem):
        return list(names)
    kept: dict[str, str] = {}
    for name, real in (named := list(_with_real_paths(names))):
        other = kept.setdefault(real, name)
        if (name != real, name) < (other != real, other):
            kept[real] = name
    for name, real in named:
        if kept[real] != name:
            _log(name, kept[real])
    return [name for name, real in named if kept[real] == name]


def _with_real_paths(names: Iterable[str]) -> Iterable[tuple[str, str]]:
    folders: dict[str, str] = {}
    for name in names:
        folder, _, last = name.rpartition("/")
        if folder not in folders:
            folders[folder] = os.path.realpath(folder or "/")
        path = os.path.join(folders[folder], last)
        yield name, os.path.realpath(path) if os.path.islink(path) else path


@lru_cache(_LOGGED)
def _log(name: str, kept: str) -> None:
    log.warning("%s leads to the same file as %s, and is left out: its records would come twice", name, kept)
