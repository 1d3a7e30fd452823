"""README's first job on the other versions of Python that setup.cfg names, as far as they are found: on the path as
`python3.N`, or installed by pyenv.

Run by `make wheel` for the wheel just built. It and the core's dependencies go into an empty environment, from the
index; what the job prints is compared with what README says. On the newest of them the tests run, too, of what differs
from Python to Python: code, annotations, and how types are called.
"""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

TESTS = (
    "actors/tasks/test_shipped_annotations.py",
    "actors/tasks/test_shipping.py",
    "messages/test_code_steps.py",
    "messages/test_own_annotations.py",
    "runtime/api/test_captured_changes.py",
    "runtime/api/test_late_variables.py",
    "runtime/api/test_older_definitions.py",
    "runtime/api/test_uncalled_methods.py",
    "state/kinds/test_named_types.py",
    "state/kinds/test_type_texts.py",
)
"""They need pytest, and nothing else beside the core."""


def found() -> list[Path]:
    """An interpreter for each version but this process's."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    named = re.findall(r":: Python :: (3\.\d+)$", setup["metadata"]["classifiers"], re.MULTILINE)
    others = (version for version in named if version != "{}.{}".format(*sys.version_info[:2]))
    return [python for version in others if (python := _interpreter(version)) is not None]


def _interpreter(version: str) -> Path | None:
    on_path = [Path(each)] if (each := shutil.which(f"python{version}")) else []
    pyenvs = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python3"))
    return next((python for python in (*on_path, *pyenvs) if _runs(python)), None)


def _runs(python: Path) -> bool:
    """What pyenv puts on the path may not."""
    return subprocess.run([python, "-c", ""], capture_output=True).returncode == 0


def run_first_job(python: Path, wheel: Path, folder: Path) -> Path:
    """The environment's interpreter. Raises CalledProcessError, or SystemExit for another output than README's."""
    environment = folder / python.parent.parent.name
    uv = [sys.executable, "-m", "uv", "--quiet"]
    subprocess.run([*uv, "venv", "--python", str(python), str(environment)], check=True)
    own = environment / "bin" / "python"
    subprocess.run([*uv, "pip", "install", "--python", str(own), str(wheel)], check=True)
    program, printed = re.findall(r"```(?:python)?\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[:2]
    (folder / "first_job.py").write_text(program)
    output = subprocess.check_output([own, "first_job.py"], cwd=folder, text=True, timeout=120)
    if output != printed:
        raise SystemExit(f"{python} printed {output!r}, and README says {printed!r}")
    print(f"README's first job runs on {python}")
    return own


def run_tests(own: Path) -> None:
    """In an environment that `run_first_job` has made. Raises CalledProcessError."""
    subprocess.run(
        [sys.executable, "-m", "uv", "--quiet", "pip", "install", "--python", str(own), "pytest"], check=True
    )
    options = ["-q", "--noconftest", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestConfigWarning"]
    subprocess.run([own, "-m", "pytest", *options, *(f"tests/{each}" for each in TESTS)], cwd=ROOT, check=True)
