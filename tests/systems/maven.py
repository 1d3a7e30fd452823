"""Jars of Maven Central, with all that they need, fetched once into a folder of the caller's."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from . import SystemMissing

_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>understudy</groupId><artifactId>fetched</artifactId><version>1</version><packaging>pom</packaging>
<dependencies>{dependencies}</dependencies></project>
"""


def fetch(system: str, artifacts: Sequence[str], folder: Path) -> Path:
    """`folder`, with the jars of these artifacts ("group:artifact:version"); fetched now unless it is there.

    Raises SystemMissing, for `system`, if Java or Maven is not installed or Maven cannot fetch them.
    """
    if folder.is_dir():
        return folder
    for program, package in (("java", "a Java runtime of version 17"), ("mvn", "Maven")):
        if shutil.which(program) is None:
            raise SystemMissing(system, f"{program} is not installed; it needs {package}")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        Path(scratch, "pom.xml").write_text(_POM.format(dependencies="".join(map(_dependency, artifacts))))
        command = ["mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={scratch}/libs"]
        fetched = subprocess.run(command, cwd=scratch, capture_output=True, text=True, timeout=600)
        if fetched.returncode != 0:
            raise SystemMissing(system, f"Maven could not fetch its jars: {fetched.stdout.strip()[:300]!r}")
        try:
            os.rename(Path(scratch, "libs"), folder)
        except OSError:  # another process was quicker
            assert folder.is_dir()
    return folder


def _dependency(artifact: str) -> str:
    group, name, version = artifact.split(":")
    parts = f"<groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version>"
    return f"<dependency>{parts}</dependency>"
