"""A look at a folder or glob: which files lie there now, and what tells one version of a file from another.

No state: `FilesSeen` remembers earlier looks. Errors of the file system are raised, never taken for a
folder without files: whoever takes a file for gone may read it again.
"""

from __future__ import annotations

import glob
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any

from fsspec.implementations.local import LocalFileSystem

from .links import leads_nowhere, named_once
from .locations import located

_UNFINISHED = (".tmp", ".part", ".partial", ".filepart", ".crdownload", "._COPYING_")
"""What programs put behind the names of files that they are writing still."""

_MODIFIED = ("mtime", "LastModified", "last_modified", "modified", "updated", "created")
"""Where fsspec's file systems say when a file was modified."""


@dataclass(frozen=True, slots=True)
class FoundFile:
    """`version`: another text for other content, as far as the file system knows. `modified`: to sort by."""

    name: str
    version: str
    modified: float

    @property
    def key(self) -> int:
        return fingerprint_of(self.name)


def look(url: str) -> list[FoundFile]:
    """The files that a path, folder or glob names now, in no order; each once, though links may give it more names.
    Raises what the file system does.
    """
    fs, path = located(url)
    fs.invalidate_cache()
    files = {entry["name"]: entry for entry in _entries(fs, path) if entry["type"] == "file"}
    return [_found(files[name]) for name in named_once(fs, list(files))]


def version_now(fs: Any, name: str) -> str | None:
    """The version of one file; None if there is none."""
    try:
        fs.invalidate_cache()
        return _found(fs.info(name)).version
    except FileNotFoundError:
        return None


def version_of(size: Any, mark: Any) -> str:
    """`mark`: the tag that a store gives, or else the modification time in seconds."""
    return f"{size} bytes, {mark if isinstance(mark, str) else repr(mark)}"


def stamp_of(version: str) -> tuple[int, float]:
    """Size and modification time of a file on a disk; zeros for an object."""
    size, _, mark = version.partition(" bytes, ")
    return (int(size), float(mark)) if size.isdecimal() and _is_time(mark) else (0, 0.0)


def version_shown(version: str) -> str:
    """With the moment in words: on a disk a version is the size, and when the file was written, in seconds."""
    size, _, mark = version.partition(", ")
    if not _is_time(mark):
        return version
    return f"{size}, written at {datetime.fromtimestamp(float(mark), UTC):%Y-%m-%d %H:%M:%S.%f} UTC"


def time_advice(version: str) -> str:
    """How a file of this version gets its time again, after it was put back; empty for an object."""
    mark = version.partition(", ")[2]
    return f", with its time, too (`touch -d @{mark}`)" if _is_time(mark) else ""


def _is_time(mark: str) -> bool:
    """Whether it is a modification time, and no tag of a store."""
    return "." in mark and mark.replace(".", "", 1).isdecimal()


def fingerprint_of(text: str) -> int:
    """64 bits that stand for a name, also one that is not text, or a version; the same in every process."""
    return int.from_bytes(hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest(), "big")


def is_glob(path: str) -> bool:
    return any(sign in path for sign in "*?[")


def root_of(path: str) -> str:
    """The folder above the first part of a path that is a pattern; the path itself if none is."""
    plain: list[str] = []
    for part in path.split("/"):
        if is_glob(part):
            return "/".join(plain)
        plain.append(part)
    return path


def followed(fs: Any, entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """An entry of a folder; of a link that of the file or folder that it leads to, under the link's name. One that
    leads nowhere stays a link, which is neither. Raises what the file system does.
    """
    if not entry.get("islink"):
        return entry
    try:
        found: Mapping[str, Any] = fs.info(entry["name"])
    except OSError as error:
        if not leads_nowhere(error):
            raise
        return entry
    return found


def matching(fs: Any, pattern: str) -> list[Mapping[str, Any]]:
    """The entries that a glob of fsspec names. On a disk links to folders are followed on the way; `**` follows none,
    as it would go round where one leads up.
    """
    if not isinstance(fs, LocalFileSystem) or "**" in pattern:
        return [followed(fs, entry) for entry in fs.glob(pattern, detail=True).values()]
    found = []
    for name in glob.iglob(pattern, include_hidden=True):
        try:
            found.append(fs.info(name))
        except OSError as error:  # or a file that has gone
            if not leads_nowhere(error):
                raise
    return found


def _entries(fs: Any, path: str) -> Iterable[Mapping[str, Any]]:
    if not is_glob(path):
        entry = fs.info(path)
        return [entry] if entry["type"] == "file" else _shown(fs, path)
    root = root_of(path)
    entries: list[Mapping[str, Any]] = [{"name": root, "type": "directory"}]
    for part in path[len(root) :].strip("/").split("/"):
        inside = [each for folder in entries if folder["type"] == "directory" for each in _listed(fs, folder, root)]
        entries = [each for each in inside if fnmatchcase(_last(each), part)]
    return entries


def _listed(fs: Any, folder: Mapping[str, Any], root: str) -> list[Mapping[str, Any]]:
    """A folder below the root may have gone since it was listed."""
    try:
        return _shown(fs, folder["name"])
    except FileNotFoundError:
        if folder["name"] == root:
            raise
        return []


def _shown(fs: Any, folder: str) -> list[Mapping[str, Any]]:
    own = folder.rstrip("/")
    entries = [each for each in fs.ls(folder, detail=True) if each["name"].rstrip("/") != own]
    return [
        followed(fs, each)
        for each in entries
        if not _last(each).startswith((".", "_")) and not _last(each).endswith(_UNFINISHED)
    ]


def _last(entry: Mapping[str, Any]) -> str:
    name: str = entry["name"].rstrip("/").rpartition("/")[2]
    return name


def _found(entry: Mapping[str, Any]) -> FoundFile:
    modified = next((entry[name] for name in _MODIFIED if entry.get(name) is not None), 0)
    if isinstance(modified, datetime):
        modified = modified.timestamp()
    tag = entry.get("ETag") or entry.get("etag")
    version = version_of(entry.get("size"), tag or modified)
    return FoundFile(entry["name"], version, float(modified) if isinstance(modified, int | float) else 0.0)
