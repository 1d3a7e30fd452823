"""Locations: local paths and fsspec URLs, as sources and sinks are given them, and what is wrong with one."""

from __future__ import annotations

import os
import posixpath
import re
from pathlib import Path
from typing import Any

from fsspec.implementations.local import LocalFileSystem

from ....state.file_locations import NoFileSystem, file_system_at, protocol_of
from ..errors import UnknownFileSystem

_OBJECT_STORES = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "oss", "oci", "r2", "tos"})
"""Protocols of stores that show a file when it is whole."""
_SAME = {"s3a": "s3", "gcs": "gs", "abfss": "abfs"}
"""Two names of one protocol."""
_GLOB = re.compile(r"[*?\[]")


def is_object_store(url: str) -> bool:
    """Whether files come whole there, and folders are but the beginnings of names."""
    return protocol_of(url) in _OBJECT_STORES


def one_url(url: str) -> str:
    """The same for all ways to write a place, as far as that is known without opening it; links of a local path are
    followed.
    """
    protocol, path = protocol_of(url), url.partition("://")[2] or url
    if protocol in ("file", "local"):
        return f"file://{os.path.realpath(path)}"
    return f"{_SAME.get(protocol, protocol)}://{posixpath.normpath(path).rstrip('/')}"


def located(url: str) -> tuple[Any, str]:
    """The file system and the path in it. Raises UnknownFileSystem, saying which package is missing if one is."""
    try:
        return file_system_at(url)
    except NoFileSystem as error:
        raise UnknownFileSystem(f"{url}: {error}") from error


def barred_folder(fs: Any, path: str) -> str:
    """The first local folder on the way to a file, a folder or what a glob matches that this user may not look into;
    empty if there is none.
    """
    if not isinstance(fs, LocalFileSystem):
        return ""
    fixed = Path(_GLOB.split(path, maxsplit=1)[0] + "x") if _GLOB.search(path) else Path(path, "x")
    listed, *above = (str(each) for each in fixed.parents)
    wanted = [*((each, os.X_OK) for each in reversed(above)), (listed, os.R_OK | os.X_OK)]
    return next((each for each, mode in wanted if os.path.isdir(each) and not os.access(each, mode)), "")
