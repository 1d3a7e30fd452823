"""Virtual environments of the peers: one each, in the cache folder, made when a peer is first wanted."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Environment:
    """What a peer needs from the package index. Peers of one name share it."""

    name: str
    requirements: tuple[str, ...]


def python_of(environment: Environment, cache: Path) -> Path:
    """The interpreter of the environment, with all requirements installed. Raises CalledProcessError."""
    folder = cache / "venvs" / environment.name
    python, done = folder / "bin" / "python", folder / ".installed"
    wanted = "\n".join(environment.requirements)
    if not done.exists() or done.read_text() != wanted:
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *environment.requirements], check=True)
        done.write_text(wanted)
    return python
