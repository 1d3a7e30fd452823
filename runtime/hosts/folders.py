"""Folders of this host that the settings name, made where they are missing."""

from __future__ import annotations

import os
import pwd
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
            f"{key}: {folder} cannot be used: {error.strerror} ({error.filename}){_belongs_to(folder)}"
        ) from error


def _belongs_to(folder: str | Path) -> str:
    """Whose it is, with what to do."""
    advice = "do this as that user, or name a folder of this one"
    try:
        owner = os.stat(folder).st_uid
    except OSError:
        return ": name a folder of this user"
    try:
        return f": it belongs to {pwd.getpwuid(owner).pw_name}: {advice}"
    except KeyError:
        return f": it belongs to user {owner}: {advice}"
