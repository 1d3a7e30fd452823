"""Compiles the Java of peers/java against Flink's own jars, once per version and source, and runs it.

The jars are those of Flink's wheel and those that its virtual environment has beside it (benchmarks/venvs.py).
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

SOURCES = Path(__file__).resolve().parent / "java"
SERVICES = Path("META-INF", "services", "org.apache.flink.table.factories.Factory")
JARS = "jars"
"""The folder in a virtual environment, for what Flink's wheel lacks."""
OPTIONS = ("-Xmx1g", "-XX:+UseParallelGC")
"""The heap is less than the 3.3 GB that Flink's default configuration gives to a JobManager and a TaskManager. On two
cores this collector made keyed-aggregate up to twice as fast as the JVM's own choice.
"""


def jar(flink_home: Path, cache: Path) -> Path:
    """The compiled classes as a jar in the cache."""
    sources = sorted(SOURCES.glob("*.java"))
    state = hashlib.sha256(b"".join(path.read_bytes() for path in [*sources, SOURCES / SERVICES]))
    state.update(str(sorted(path.name for folder in _libraries(flink_home) for path in folder.iterdir())).encode())
    made = cache / "java" / f"benchmarks-{state.hexdigest()[:12]}.jar"
    if not made.exists():
        classes = made.with_suffix(".classes")
        shutil.rmtree(classes, ignore_errors=True)
        classes.mkdir(parents=True)
        command = ["javac", "-nowarn", "-d", str(classes), "-cp", _class_path(flink_home), *map(str, sources)]
        subprocess.run(command, check=True)
        part = made.with_suffix(".part")
        with zipfile.ZipFile(part, "w") as archive:
            for path in sorted(classes.rglob("*.class")):
                archive.write(path, path.relative_to(classes))
            archive.write(SOURCES / SERVICES, SERVICES)
        part.rename(made)
        shutil.rmtree(classes)
    return made


def run(main_class: str, arguments: list[str], flink_home: Path, cache: Path) -> None:
    """Run it in a Java process of its own, with the options that Flink's scripts give. Raises CalledProcessError."""
    opened = re.findall(r"--add-(?:opens|exports)=\S+", (flink_home / "conf" / "config.yaml").read_text())
    classpath = f"{jar(flink_home, cache)}:{_class_path(flink_home)}"
    subprocess.run(["java", *opened, *OPTIONS, "-cp", classpath, f"benchmarks.{main_class}", *arguments], check=True)


def _class_path(flink_home: Path) -> str:
    return ":".join(f"{folder}/*" for folder in _libraries(flink_home))


def _libraries(flink_home: Path) -> list[Path]:
    return [flink_home / "lib", Path(sys.prefix, JARS)]
