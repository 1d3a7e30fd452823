"""Programs: the code of submitted jobs, in the cluster's shared folder, signed with the cluster's key.

    <storage.dir>/programs/<job id>      magic, HMAC-SHA256, and the code (a sealed file: see CheckpointStorage)

The signature covers the job's id and all of the code. Nothing of a file is looked into before its signature was
checked; the bytes are unpickled only in the TaskManager's own process, after that. Whoever can write to the shared
folder, but has not the key, can delete a program and not change it, nor put one job's code in another one's place.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import msgpack

from ...messages import JobId, ProgramFile
from ...state import CheckpointStorage
from ...state.errors import CorruptState, MissingState
from ..high_availability.signatures import Signatures
from ..system import CurveKeys
from .errors import ProgramRefused

FOLDER = "programs"
_MAGIC = b"understudy program 1\n"
MAX_FILES_BYTES = 64 * 1024 * 1024
"""Of all the files that are shipped with one program: it is for code, not for data."""
_SKIPPED = ("__pycache__", ".git", ".venv")


@dataclass(frozen=True, slots=True)
class ShippedProgram:
    """The code of one job, as it travels."""

    program: bytes
    """A JobProgram, pickled."""
    warm_up: tuple[str, ...] = ()
    sys_path: tuple[str, ...] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Python files that the hosts do not have, by relative path; their folder is put on the path there."""


class Programs:
    """Those of one cluster. All of it blocks; any thread may call it."""

    def __init__(
        self, url: str, keys: CurveKeys, open_storage: Callable[[str], CheckpointStorage] = CheckpointStorage
    ) -> None:
        self._storage = open_storage(url)
        self._signatures = Signatures(keys.secret, "programs")

    def store(self, job_id: JobId, shipped: ShippedProgram) -> ProgramFile:
        """Raises OSError where the shared folder cannot be written."""
        body = msgpack.packb(
            {
                "program": shipped.program,
                "warm_up": list(shipped.warm_up),
                "sys_path": list(shipped.sys_path),
                "files": dict(shipped.files),
            }
        )
        path = f"{FOLDER}/{quote(job_id, safe='')}"
        self._storage.write_sealed(path, _MAGIC + self._signatures.signed(job_id, body))
        return ProgramFile(path)

    def load(self, job_id: JobId, stored: ProgramFile) -> ShippedProgram:
        """Raises ProgramRefused."""
        where = f"the code of job {job_id} ({stored.path} in {self._storage.url})"
        try:
            data = self._storage.read_sealed(stored.path)
        except MissingState as error:
            raise ProgramRefused(
                f"{where} is not there: is storage.dir the same folder on all hosts? See `understudy config`"
            ) from error
        except CorruptState as error:
            raise ProgramRefused(f"{where} is spoilt: {error}; submit the job again") from error
        if not data.startswith(_MAGIC):
            raise ProgramRefused(f"{where} is none: wanted a file that `understudy submit` wrote, of this version")
        body = self._signatures.checked(job_id, data.removeprefix(_MAGIC))
        if body is None:
            raise ProgramRefused(
                f"{where} is not signed with this cluster's key, and was not looked into: somebody else wrote it, or "
                "the hosts have different key files (security.key-file)"
            )
        said = msgpack.unpackb(body)
        return ShippedProgram(said["program"], tuple(said["warm_up"]), tuple(said["sys_path"]), said["files"])

    def delete(self, stored: ProgramFile) -> None:
        """One that is gone is fine."""
        self._storage.delete(stored.path)


def files_to_ship(paths: Iterable[str | os.PathLike[str]]) -> dict[str, bytes]:
    """The Python files and packages at these paths, by the names by which they are imported.

    A file comes under its own name, and a folder with all that it holds under the folder's. Raises FileNotFoundError,
    ValueError for two of one name and for more than 64 MB.
    """
    found: dict[str, bytes] = {}
    for each in [paths] if isinstance(paths, str | os.PathLike) else paths:
        path = Path(each).resolve()
        if not path.exists():
            raise FileNotFoundError(f"no file or folder {os.fspath(each)!r} to ship")
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            name = file.relative_to(path.parent).as_posix()
            if not file.is_file() or any(part in _SKIPPED for part in file.relative_to(path.parent).parts):
                continue
            if name in found:
                raise ValueError(f"two of the files to ship are called {name!r}")
            found[name] = file.read_bytes()
    total = sum(map(len, found.values()))
    if total > MAX_FILES_BYTES:
        raise ValueError(
            f"the files to ship have {total:,} bytes, and {MAX_FILES_BYTES:,} are allowed: put data where the hosts "
            "can read it, and ship code"
        )
    return found


def unpack(files: Mapping[str, bytes], folder: Path) -> None:
    """Write shipped files below a folder, which is made. Raises ProgramRefused for a name that leads out of it."""
    for name, content in files.items():
        target = folder / name
        if not target.resolve().is_relative_to(folder.resolve()):
            raise ProgramRefused(f"a shipped file is called {name!r}, which leads out of its folder")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
