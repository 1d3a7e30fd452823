"""Folders of this host that the settings name, made where they are missing."""

from __future__ import annotations

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
