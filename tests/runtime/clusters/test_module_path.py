"""TaskManagers import what the driver has imported, also where two folders have a module of the same name."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from understudy.runtime.clusters.module_path import search_first, searched_folders

from .jobs import WAIT_S

MODELS = """
from dataclasses import dataclass


@dataclass
class Order:
    cents: int


def doubled(order):
    return order.cents * 2
"""
SCRIPT = """
from models import doubled, Order
from understudy import LocalCluster, StreamEnvironment

if __name__ == "__main__":
    env = StreamEnvironment()
    env.from_collection([Order(1), Order(2)]).map(doubled).collect(name="doubled")
    with LocalCluster(task_managers=1) as cluster:
        job = cluster.submit(env)
        job.wait(timeout=100)
        print(sorted(job.results("doubled")))
"""
EDITED = SCRIPT.replace(
    "    with LocalCluster",
    "    open('app/models.py', 'w').write('')  # as an editor does, while the driver runs\n    with LocalCluster",
)


@pytest.fixture
def own_path() -> Iterator[None]:
    before = sys.path[:]
    yield
    sys.path[:] = before


def run(folder: Path, script: str = SCRIPT, models: str | None = "") -> subprocess.CompletedProcess[str]:
    """`python app/main.py` in a folder that has a module `models`, too: `models`; None: it has none."""
    app = folder / "app"
    app.mkdir()
    (app / "main.py").write_text(script)
    (app / "models.py").write_text(MODELS)
    if models is not None:
        (folder / "models.py").write_text(models)
    return subprocess.run([sys.executable, "app/main.py"], cwd=folder, capture_output=True, text=True, timeout=WAIT_S)


@pytest.mark.processes
def test_a_module_of_the_working_directory_does_not_take_the_place_of_the_drivers(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert done.stdout.splitlines() == ["[2, 4]"], done.stderr


@pytest.mark.processes
def test_a_module_of_the_working_directory_does_not_take_the_place_of_pythons_own(tmp_path: Path) -> None:
    (tmp_path / "queue.py").write_text("raise RuntimeError('not meant')")
    done = run(tmp_path)
    assert done.stdout.splitlines() == ["[2, 4]"], done.stderr


@pytest.mark.processes
def test_a_module_that_has_changed_meanwhile_ends_the_job_at_once_and_is_named(tmp_path: Path) -> None:
    done = run(tmp_path, EDITED, None)
    said = done.stderr
    assert done.returncode == 1
    assert "restarting" not in said
    assert "CannotLoad: this TaskManager cannot load the job's code: Can't get attribute" in said
    assert f"the driver imported 'models' from the same file, {tmp_path}/app/models.py" in said
    assert "submit the job again" in said


@pytest.mark.usefixtures("own_path")
def test_folders_of_the_other_process_come_first_in_its_order() -> None:
    sys.path[:] = ["/here", "/both", "/late"]
    search_first(["/both", "/there", "/here"])
    assert sys.path == ["/both", "/there", "/here", "/late"]


@pytest.mark.usefixtures("own_path")
def test_folders_of_another_version_of_python_come_last() -> None:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    own = f"/usr/lib/python{version}"
    sys.path[:] = [own, "/late"]
    search_first(["/app", "/usr/lib/python3.2", "/usr/lib/python32.zip", f"/venv/lib/python{version}/site-packages"])
    assert sys.path == [
        "/app",
        f"/venv/lib/python{version}/site-packages",
        own,
        "/late",
        "/usr/lib/python3.2",
        "/usr/lib/python32.zip",
    ]


@pytest.mark.usefixtures("own_path")
def test_the_working_directory_is_said_by_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    sys.path[:] = ["", "beside", "/there", ""]
    assert searched_folders() == (os.getcwd(), os.path.join(os.getcwd(), "beside"), "/there")
