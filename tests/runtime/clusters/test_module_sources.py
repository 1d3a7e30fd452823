"""A job runs one version of its code: a TaskManager that comes later notices that a module's file has changed."""

from __future__ import annotations

import importlib
import os
import py_compile
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from understudy import JobFailed, LocalCluster
from understudy.actors.errors import CannotLoad
from understudy.actors.tasks.job_program import JobProgram
from understudy.actors.tasks.module_source import ModuleSource
from understudy.runtime.clusters import module_sources
from understudy.runtime.clusters.module_sources import WatchedImports, sources_of, with_sources

from ...meanwhile import at_each_collection
from .jobs import WAIT_S, Gate, Witness, environment, generated

OPERATORS = """
from understudy import Operator

class Version(Operator):
    def open(self):
        super().open()
        import late_of_test

    def process_batch(self, batch, out):
        for record in batch:
            out.collect({VERSION})
"""
HELPED = "from helper_of_test import VERSION\n" + OPERATORS.replace("{VERSION}", "VERSION")
MODULES = ("operators_of_test", "helper_of_test", "late_of_test")

Change = Callable[[Path], object]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A user's, with the module of an operator, one that this imports, and one that its calls import."""
    made = tmp_path / "code"
    made.mkdir()
    (made / "operators_of_test.py").write_text(HELPED)
    (made / "helper_of_test.py").write_text("VERSION = 1\n")
    (made / "late_of_test.py").write_text("")
    monkeypatch.syspath_prepend(str(made))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield made
    for name in MODULES:
        sys.modules.pop(name, None)


def run(folder: Path, tmp_path: Path, change: Change) -> list[int]:
    """What the job puts out whose only TaskManager is killed behind a change."""
    operators, _ = importlib.import_module("operators_of_test"), importlib.import_module("late_of_test")
    gate = Gate(tmp_path)
    env = environment(parallelism=1)
    generated(env, 10, None, gate, "numbers").process(operators.Version).collect(name="versions")
    with LocalCluster(task_managers=1) as cluster:
        job = cluster.submit(env)
        witness = Witness(job)
        witness.checkpoints(at_least=1)
        change(folder)
        witness.kill(witness.pids(at_least=1)[0])
        gate.open()
        job.wait(timeout=WAIT_S)
        return job.results("versions")


def written(name: str, text: str) -> Change:
    return lambda folder: (folder / f"{name}.py").write_text(text)


@pytest.mark.processes
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("operators_of_test", OPERATORS.replace("{VERSION}", "2")),
        ("operators_of_test", "x = ("),
        ("helper_of_test", "VERSION = 2\n"),
        ("late_of_test", "VERSION = 2\n"),
    ],
)
def test_a_module_that_changes_while_the_job_runs_ends_the_job(
    folder: Path, tmp_path: Path, name: str, text: str
) -> None:
    with pytest.raises(JobFailed, match="no restart can mend it") as caught:
        run(folder, tmp_path, written(name, text))
    said = str(caught.value)
    assert "CannotLoad" in said
    assert f"{folder}/{name}.py is not what it was when the job was submitted" in said
    assert "put it back as it was, or submit the job with the new code, from its last checkpoint or a savepoint" in said


@pytest.mark.processes
def test_a_file_that_was_written_again_and_is_the_same_is_the_same(folder: Path, tmp_path: Path) -> None:
    assert run(folder, tmp_path, written("operators_of_test", HELPED)) == [1] * 10


# -- what is compared


def imported(name: str) -> ModuleType:
    importlib.invalidate_caches()
    return importlib.import_module(name)


def sources(name: str = "operators_of_test") -> dict[str, ModuleSource]:
    found = sources_of([name])
    for module in MODULES:
        sys.modules.pop(module, None)
    return found


def test_modules_of_the_same_folder_count_and_no_others(folder: Path) -> None:
    imported("operators_of_test")
    assert {*sources()} & {*MODULES, "os", "pytest", "understudy"} == {"operators_of_test", "helper_of_test"}


def test_what_a_process_has_imported_before_is_not_looked_at(folder: Path) -> None:
    imported("operators_of_test")
    known = sources_of(["operators_of_test"])
    (folder / "operators_of_test.py").write_text("VERSION = 2")
    with WatchedImports() as imports:
        imports.watch(known)
        assert imported("operators_of_test").Version


def test_a_watch_ends(folder: Path) -> None:
    imported("operators_of_test")
    known, before = sources(), sys.meta_path[:]
    (folder / "helper_of_test.py").write_text("VERSION = 2")
    with WatchedImports() as imports:
        imports.watch(known)
        with pytest.raises(CannotLoad, match="helper_of_test"):
            imported("operators_of_test")
    assert sys.meta_path == before
    assert imported("helper_of_test").VERSION == 2


def test_the_same_text_in_another_folder_is_the_same_and_another_one_is_refused(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    imported("operators_of_test")
    known, there = sources(), tmp_path / "there"
    folder.rename(there)
    monkeypatch.setattr(sys, "path", [str(there), *sys.path])
    (there / "helper_of_test.py").write_text("VERSION = 'of this host'")
    with WatchedImports() as imports:
        imports.watch(known)
        assert imported("operators_of_test").VERSION == "of this host", "helpers may differ from host to host"
        del sys.modules["operators_of_test"]
        (there / "operators_of_test.py").write_text("VERSION = 2")
        with pytest.raises(CannotLoad) as caught:
            imported("operators_of_test")
    said = str(caught.value)
    assert f"the driver imported 'operators_of_test' from {folder}/operators_of_test.py" in said
    assert f"this TaskManager from {there}/operators_of_test.py" in said


def test_a_host_with_compiled_files_alone_is_not_compared_with_the_source(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    imported("helper_of_test")
    known, there = sources("helper_of_test"), tmp_path / "there"
    there.mkdir()
    py_compile.compile(str(folder / "helper_of_test.py"), cfile=str(there / "helper_of_test.pyc"))
    monkeypatch.setattr(sys, "path", [str(there), *sys.path])
    with WatchedImports() as imports:
        imports.watch(known)
        module = imported("helper_of_test")
    assert (module.VERSION, module.__file__) == (1, str(there / "helper_of_test.pyc"))


def test_modules_of_a_zip_file_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tmp_path / "code.zip"

    def write(version: int) -> None:
        with zipfile.ZipFile(archive, "w") as file:
            file.writestr("operators_of_test.py", f"VERSION = {version}\n")

    write(1)
    monkeypatch.syspath_prepend(str(archive))
    imported("operators_of_test")
    known = sources()
    with WatchedImports() as imports:
        imports.watch(known)
        assert imported("operators_of_test").VERSION == 1
    del sys.modules["operators_of_test"]
    write(2)
    with WatchedImports() as imports:
        imports.watch(known)
        with pytest.raises(CannotLoad, match=r"code\.zip"):
            imported("operators_of_test")


def test_a_worker_that_keeps_a_module_of_an_earlier_job_refuses_the_next_version_of_it(folder: Path) -> None:
    imported("operators_of_test")
    first = sources()
    with WatchedImports() as imports:
        imports.watch(first)
        kept = imported("operators_of_test")
    (folder / "operators_of_test.py").write_text("VERSION = 2")
    del sys.modules["operators_of_test"]
    imported("operators_of_test")
    second = sources()
    sys.modules["operators_of_test"] = kept
    with WatchedImports() as imports:
        imports.watch(first)
    with WatchedImports() as imports, pytest.raises(CannotLoad, match="an earlier job"):
        imports.watch(second)


def test_installed_packages_count_where_they_lie_at_the_same_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed, elsewhere = tmp_path / "site-packages", tmp_path / "host" / "site-packages"
    for place, version in ((installed, 1), (elsewhere, 2)):
        place.mkdir(parents=True)
        (place / "operators_of_test.py").write_text(f"VERSION = {version}")
    monkeypatch.setattr(sys, "path", [str(installed), *sys.path])
    imported("operators_of_test")
    known = sources()
    with WatchedImports() as imports:
        imports.watch(known)
        sys.path[0] = str(elsewhere)
        assert imported("operators_of_test").VERSION == 2
        del sys.modules["operators_of_test"]
        sys.path[0] = str(installed)
        (installed / "operators_of_test.py").write_text("VERSION = 3")
        with pytest.raises(CannotLoad, match="site-packages"):
            imported("operators_of_test")


def test_all_of_an_installed_package_counts_that_uses_this_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site-packages" / "package_of_test"
    package.mkdir(parents=True)
    for name, text in (("__init__", ""), ("rates", ""), ("plain", "from . import rates\n\nclass Plain: ...")):
        (package / f"{name}.py").write_text(text)
    (package / "job.py").write_text("from understudy import Operator\nfrom . import rates")
    monkeypatch.setattr(sys, "path", [str(package.parent), *sys.path])
    for name in ("plain", "job"):
        imported(f"package_of_test.{name}")
    try:
        assert {*sources_of(["package_of_test.plain"])} == {"package_of_test.plain"}
        known = {"package_of_test", *(f"package_of_test.{name}" for name in ("job", "plain", "rates"))}
        assert {*sources_of(["package_of_test.job"])} == known
    finally:
        for name in [each for each in sys.modules if each.partition(".")[0] == "package_of_test"]:
            del sys.modules[name]


def test_no_module_of_python_or_of_this_library_counts() -> None:
    assert sources_of(["os", "understudy.runtime.connectors", "json.decoder", "builtins", "no_such_module"]) == {}
    assert os.path.isfile(os.__file__)


def test_other_threads_may_import_while_modules_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was "dictionary changed size during iteration", now and then, at submit."""
    with at_each_collection(lambda name: monkeypatch.setitem(sys.modules, name, ModuleType(name))):
        found = sources_of([__name__])
    assert {*found} == {*sources_of([__name__])}
    assert __name__ in found


# -- what was not imported again


def warnings_of_submit(caplog: pytest.LogCaptureFixture) -> list[str]:
    caplog.clear()
    with_sources(JobProgram({}, {}, b"", (), 1, modules={"operators_of_test": "test"}))
    return [record.getMessage() for record in caplog.records]


FUNCTIONS = """
class Rate:
    @property
    def percent(self): return 1 * {n}

    def of(self, n): return (lambda: n * {n})()
"""


def test_a_module_that_has_changed_since_the_last_submit_and_was_not_imported_again(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file, text = folder / "helper_of_test.py", "VERSION = 1\ndef of(n): return n + {n}\n" + FUNCTIONS
    change = lambda n: file.write_text(text.replace("{n}", str(n)))  # noqa: E731
    change(1)
    imported("operators_of_test")
    assert warnings_of_submit(caplog) == []
    change(2)
    (said,) = warnings_of_submit(caplog)
    assert said.startswith(f"{file} has changed since an earlier submit, and this process still has module 'helper_of")
    assert len(warnings_of_submit(caplog)) == 1, "it is still so"
    change(1)
    assert warnings_of_submit(caplog) == [], "it is what was imported"
    change(3)
    importlib.reload(sys.modules["helper_of_test"])
    assert warnings_of_submit(caplog) == []
    change(4)
    assert len(warnings_of_submit(caplog)) == 1
    del sys.modules["helper_of_test"]
    imported("helper_of_test")
    assert warnings_of_submit(caplog) == []


def test_a_module_that_does_the_same_is_not_warned_of(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """As one with another comment, or one that a notebook's autoreload has patched in place."""
    file = folder / "helper_of_test.py"
    file.write_text("VERSION = 1\ndef of(n): return n + 1\n")
    imported("operators_of_test")
    assert warnings_of_submit(caplog) == []
    file.write_text("# A comment.\nVERSION = 1\ndef of(n):\n    return n + 1\n")
    assert warnings_of_submit(caplog) == []
    changed = "VERSION = 1\ndef of(n): return n + 2\ndef new(): pass\n"
    file.write_text(changed)
    assert len(warnings_of_submit(caplog)) == 1
    exec(changed, vars(sys.modules["helper_of_test"]))
    assert warnings_of_submit(caplog) == []


# -- a file is read once


def digest_of_helper() -> str:
    return sources_of(["operators_of_test"])["helper_of_test"].digest


def test_a_file_that_changes_soon_after_and_keeps_size_and_time_is_another_one(folder: Path) -> None:
    """Sooner than the clock of its file system goes on."""
    imported("operators_of_test")
    file = folder / "helper_of_test.py"
    seen = []
    for number in range(100, 300):
        file.write_text(f"VERSION = {number}\n")
        os.utime(file, (1_700_000_000, 1_700_000_000))
        seen.append(digest_of_helper())
    assert len({*seen}) == len(seen)


def reads_of(name: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Grows with each time that the module's file is read."""
    spec = sys.modules[name].__spec__
    assert spec is not None
    loader: Any = spec.loader
    found, get_data = [], loader.get_data

    def counted(path: str) -> Any:
        if path == spec.origin:
            found.append(path)
        return get_data(path)

    monkeypatch.setattr(loader, "get_data", counted, raising=False)
    return found


def test_a_file_that_is_young_is_read_each_time(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    imported("operators_of_test")
    read = reads_of("helper_of_test", monkeypatch)
    monkeypatch.setattr(module_sources, "_SURELY_OLD_NS", 3_600_000_000_000)
    assert digest_of_helper() == digest_of_helper()
    assert len(read) == 2


def test_a_file_that_is_old_is_read_once_and_again_when_it_has_changed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where size and time of the change are kept."""
    imported("operators_of_test")
    read = reads_of("helper_of_test", monkeypatch)
    monkeypatch.setattr(module_sources, "_SURELY_OLD_NS", -1_000_000_000)
    first = digest_of_helper()
    assert digest_of_helper() == first
    assert len(read) == 1
    file = folder / "helper_of_test.py"
    before = file.stat()
    time.sleep(0.05)  # longer than a step of the file system's clock
    file.write_text("VERSION = 2\n")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    second = digest_of_helper()
    assert second != first
    assert digest_of_helper() == second
    assert len(read) == 2
