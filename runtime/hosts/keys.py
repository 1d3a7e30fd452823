"""The cluster's key file, as the settings name it: read by every process, and made once."""

from __future__ import annotations

import os
from pathlib import Path

from ..system import CurveKeys
from .errors import InvalidSettings, NoKeyFile
from .folders import made_folder
from .settings import SETTINGS, HostSettings, resolved
from .settings_sources import find_file, no_file

_KEY_FILE = SETTINGS["security.key-file"]


def load_keys(settings: HostSettings) -> CurveKeys:
    """Raises NoKeyFile, InsecureKeyFile, InvalidSettings."""
    try:
        return CurveKeys.load(settings.key_file)
    except FileNotFoundError as error:
        raise NoKeyFile(
            f"there is no key file {settings.key_file} (security.key-file){_without_a_file(settings)} make one with "
            "`understudy cluster key` on one host, and copy it to the others with `understudy cluster key --send`"
        ) from error
    except OSError as error:
        raise InvalidSettings(f"security.key-file: {settings.key_file} cannot be read: {error.strerror}") from error


def make_key(settings: HostSettings) -> bool:
    """A new key file, unless there is one; returns whether it was made. Raises InvalidSettings."""
    path = _place_of(settings)
    try:
        CurveKeys.generate().save(path)
    except FileExistsError:
        return False
    return True


def receive_key(settings: HostSettings, text: str) -> None:
    """Write a key that another host has sent, unless it is here already. Raises InvalidSettings for another key."""
    path = _place_of(settings)
    draft = path.with_name(f".{path.name}-{os.getpid()}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
        sent = CurveKeys.load(draft)
        try:
            os.link(draft, path)
        except FileExistsError:
            if CurveKeys.load(path) != sent:
                raise InvalidSettings(
                    f"{path} holds another cluster's key already: remove it there first, if that cluster is no more"
                ) from None
    finally:
        draft.unlink(missing_ok=True)


def _place_of(settings: HostSettings) -> Path:
    """Where it is, or can be made."""
    path = Path(settings.key_file)
    made_folder("security.key-file", path.parent, 0o700)
    if path.is_dir():
        raise InvalidSettings(f"security.key-file: {path} is a folder, and wanted is a file: name one in it")
    return path


def _without_a_file(settings: HostSettings) -> str:
    """Whether it is only the default, as no settings were found where a user may think that there are some."""
    default = resolved(_KEY_FILE, _KEY_FILE.default, Path.cwd())
    if settings.key_file != default or find_file(None, os.environ) is not None:
        return ":"
    return (
        f". There is {no_file()}, so this is the default: if your cluster has settings elsewhere, name them with "
        "--config. Else"
    )
