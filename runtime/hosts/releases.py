"""Releases: which Python and which libraries a process runs, as far as state and records pass between processes."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib import metadata

LIBRARIES = ("understudy", "pyarrow", "numpy", "msgpack", "cloudpickle")


def own_releases() -> dict[str, str]:
    """Of this process, by name."""
    found = {"python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:  # run from its sources
            continue
    return found


def differences(theirs: Mapping[str, str], ours: Mapping[str, str]) -> str:
    """What both know and have in another release, in words; empty: nothing. Of Python only 3.x counts."""
    return ", ".join(
        f"{name} {release} (here {ours[name]})"
        for name, release in theirs.items()
        if name in ours and _counting(name, release) != _counting(name, ours[name])
    )


def _counting(name: str, release: str) -> str:
    return release.rpartition(".")[0] if name == "python" else release
