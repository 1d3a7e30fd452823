"""File locations: what is a URL that fsspec opens, and what is a path of this machine.

A text without `://` is a path as it stands. fsspec alone would cut `/data/orders::eu` at the `::`, and read and write
`/data/orders`: it chains file systems so, as in `simplecache::s3://bucket/file`.
"""

from __future__ import annotations

import os
import re
from posixpath import isabs
from typing import Any, TypeAlias

from fsspec import AbstractFileSystem, available_protocols, filesystem, url_to_fs
from fsspec.registry import known_implementations
from fsspec.utils import get_protocol

AnyPath: TypeAlias = str | os.PathLike[str]
"""As users write a path; URLs as a text alone."""

_CUT_URL = re.compile("([a-z][a-z0-9+.-]*):/(?!/)")


def is_url(location: str) -> bool:
    """Whether it is no path of this machine."""
    return "://" in location


def unwrapped(location: object) -> object:
    """A path of pathlib as its text, all else as it is. Raises TypeError for one that was made of a URL, and ValueError
    for a text that no file system takes.
    """
    written = os.fspath(location) if isinstance(location, os.PathLike) else location
    if isinstance(written, str) and "\0" in written:
        raise ValueError(f"wanted a path or URL, found {location!r:.80}: it holds U+0000, the character NUL")
    if not isinstance(location, os.PathLike):
        return location
    cut = _CUT_URL.match(written) if isinstance(written, str) else None
    if cut and cut[1] in available_protocols():
        raise TypeError(
            f"wanted a path or URL, found {location!r:.80}: pathlib makes one slash of two: write it as a text"
        )
    return written


def absolute(location: object) -> str:
    """A path as all processes of this machine find it, wherever they work, and `~` as a folder; a URL as it is. Raises
    TypeError for what is no AnyPath, and ValueError as `unwrapped`.
    """
    location = unwrapped(location)
    if not isinstance(location, str):
        raise TypeError(f"wanted a path or URL, found {location!r:.80}")
    return location if is_url(location) else os.path.abspath(os.path.expanduser(location))


def protocol_of(location: str) -> str:
    """As fsspec names it: "s3", or "file" for a path."""
    protocol: str = get_protocol(location) if is_url(location) else "file"
    return protocol


class NoFileSystem(ValueError):
    """A URL of a protocol that nobody knows, or whose package is missing; says what to write or install."""


def file_system_at(location: str) -> tuple[AbstractFileSystem, str]:
    """The file system, and the path in it. Raises NoFileSystem, and OSError where it connects at once."""
    if not is_url(location):
        local: Any = filesystem("file")
        return local, local._strip_protocol(location)
    first, *others = location.split("::")
    for link in others:
        if not isabs(link) and link.partition("://")[0] not in available_protocols():
            raise NoFileSystem(
                f"'::' chains file systems in a URL, as in simplecache::s3://bucket/file, and there is none {link!r}: "
                f"give the place after {first} another name"
            )
    try:
        found: tuple[AbstractFileSystem, str] = url_to_fs(location)
    except (ImportError, ValueError) as error:
        raise NoFileSystem(_why_unopened(location, error)) from error
    return found


def _why_unopened(location: str, error: ImportError | ValueError) -> str:
    known = known_implementations.get(protocol := protocol_of(location))
    if known is None:
        return f"fsspec knows no protocol {protocol!r}: write a local path, or a URL such as s3://bucket/folder"
    if not isinstance(error, ImportError):
        return str(error)
    package = known["class"].partition(".")[0]
    how = 'pip install "understudy[s3]"' if package == "s3fs" else error
    return f"{protocol}:// needs the package {package}, which is not there: {how}"
