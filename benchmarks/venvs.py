"""Virtual environments of the peers: one each, in the cache folder, made when a peer is first wanted. Jars that a peer
wants beside its packages lie in a folder of its environment.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.systems import maven

from .peers.java_side import JARS


@dataclass(frozen=True)
class Environment:
    """What a peer needs from the package index, and from Maven Central. Peers of one name share it."""

    name: str
    requirements: tuple[str, ...]
    artifacts: tuple[str, ...] = ()


def python_of(environment: Environment, cache: Path) -> Path:
    """The interpreter of the environment, with all requirements installed. Raises CalledProcessError, SystemMissing."""
    folder = cache / "venvs" / environment.name
    python, done = folder / "bin" / "python", folder / ".installed"
    wanted = "\n".join(environment.requirements + environment.artifacts)
    if not done.exists() or done.read_text() != wanted:
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *environment.requirements], check=True)
        if environment.artifacts:
            shutil.rmtree(folder / JARS, ignore_errors=True)
            maven.fetch(environment.name, environment.artifacts, folder / JARS)
        done.write_text(wanted)
    return python
