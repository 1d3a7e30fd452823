"""Folders of this host that the settings name, made where they are missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import InvalidSettings


def made_folder(key: str, folder: str | Path, mode: int = 0o777) -> Path:
    """The folder of this setting. Raises InvalidSettings where it cannot be made, as where a file lies."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True, mode=mode)
    except OSError as error:
        raise InvalidSettings(
            f"{key}: the folder {folder} cannot be made: {error.strerror or error}; name another one"
        ) from error
    return Path(folder)


@contextmanager
def usable(key: str, folder: str | Path) -> Iterator[None]:
    """While files of this setting's folder are opened: raises InvalidSettings where this user may not."""
    try:
        yield
    except PermissionError as error:
        raise InvalidSettings(
            f"{key}: {folder} cannot be used: {error.strerror} ({error.filename}): name a folder of this user"
        ) from error
