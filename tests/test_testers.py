"""Testers: forked after collection, they are as one run of pytest to whoever reads it, whatever becomes of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from .conftest import _to_try_again, pytest_sessionfinish

pytestmark = pytest.mark.processes

ROOT = Path(__file__).resolve().parent.parent
CONFTEST = f"""
import os, sys
import pytest
sys.path.insert(0, {str(ROOT)!r})
from tests import testers
from tests.shared_out import grouped

def pytest_runtestloop(session):
    items = [(place, item.path.name, False) for place, item in enumerate(session.items)]
    testers.run(session, [(2, list(grouped(items)))])
    return True

def say(text):
    os.write(int(os.environ["SAID"]), f"{{text}}\\n".encode())

@pytest.fixture(scope="session", autouse=True)
def shared():
    say(f"up in {{os.getpid()}}")
    yield
    say(f"down in {{os.getpid()}}")
"""
ALL_KINDS = """
import os, random, signal, sys, time, warnings
import pytest
from conftest import say

@pytest.fixture(scope="module")
def once():
    say("module")

def test_passes(once, tmp_path):
    say(f"folder {tmp_path.parent.name}")

def test_fails(once):
    print("this was printed")
    warnings.warn("be warned")
    one = 1
    assert one == 2

@pytest.mark.skip(reason="no need")
def test_skipped(): pass

@pytest.mark.xfail
def test_known(): assert False

@pytest.fixture
def broken():
    yield
    raise ValueError("it broke")

def test_broken_afterwards(broken): pass

def test_killed():
    os.kill(os.getpid(), signal.SIGKILL)

def test_exits(once):
    os._exit(7)

def test_goes_on(): pass
"""
WAITING = """
import signal
from conftest import say

def test_waits():
    try:
        say("waits")
        signal.pause()
    finally:
        say("interrupted")

def test_never():
    say("never")
"""


class Run:
    """A run of pytest with two testers."""

    def __init__(self, folder: Path, *options: str, **files: str) -> None:
        (folder / "pytest.ini").write_text("[pytest]\n")
        (folder / "conftest.py").write_text(CONFTEST)
        for name, text in files.items():
            (folder / f"test_{name}.py").write_text(text)
        self._said, theirs = os.pipe()
        self._lines = open(self._said)  # noqa: SIM115 - closed by `end`
        command = [sys.executable, "-m", "pytest", *options]
        env = {**os.environ, "SAID": str(theirs), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        self.process = subprocess.Popen(
            command, cwd=folder, env=env, pass_fds=[theirs], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        os.close(theirs)

    def hear(self, text: str, times: int) -> None:
        while times:
            line = self._lines.readline()
            assert line, f"it ended: {self.process.communicate()[0]}"
            times -= line == f"{text}\n"

    def end(self, timeout: float = 100) -> tuple[str, list[str]]:
        """What it printed, and what its tests said since."""
        out = self.process.communicate(timeout=timeout)[0]
        with self._lines:
            return out, self._lines.read().splitlines()


def test_all_that_a_test_can_end_in_is_told(tmp_path: Path) -> None:
    other = "def test_other(tmp_path):\n    __import__('conftest').say(f'folder {tmp_path.parent.name}')\n"
    run = Run(tmp_path, "--durations=1", "--junitxml=junit.xml", "-ra", kinds=ALL_KINDS, other=other)
    out, said = run.end()
    assert run.process.returncode == 1
    assert "3 failed, 4 passed, 1 skipped, 1 xfailed, 1 warning, 1 error" in out
    assert "assert 1 == 2" in out
    assert "this was printed" in out
    assert "UserWarning: be warned" in out
    assert "ValueError: it broke" in out
    assert "FAILED test_kinds.py::test_killed - the tester that ran it was killed by SIGKILL" in out
    assert "FAILED test_kinds.py::test_exits - the tester that ran it ended with exit code 7" in out
    assert "slowest 1 durations" in out
    assert (tmp_path / "junit.xml").read_text().count("<testcase") == 9
    assert {each for each in said if "folder" in each} == {"folder tester0", "folder tester1"}
    _set_up, torn_down = ([each for each in said if each.startswith(what)] for what in ("up in", "down in"))
    assert len(torn_down) == len(set(torn_down)) == len(_set_up) - 2  # those that were killed tear down nothing
    again = Run(tmp_path, "--last-failed").end()[0]
    assert "3 failed" in again
    assert "1 error" in again
    assert "passed" not in again.replace("1 passed", "", 1)  # the one with the error


def test_after_the_first_failure_no_test_begins(tmp_path: Path) -> None:
    fails = "def test_fails(): assert False\n"
    passes = "def test_{}():\n    __import__('conftest').say('ran')\n    __import__('time').sleep(0.1)\n"
    files = {"a": fails + "".join(passes.format(number) for number in range(500))}
    run = Run(tmp_path, "-x", **files)
    out, said = run.end()
    assert "stopping after 1 failures" in out
    assert said.count("ran") < 500
    torn_down = {each.replace("down", "up", 1) for each in said if each.startswith("down")}
    assert torn_down == {each for each in said if each.startswith("up")} != set()


def test_ctrl_c_interrupts_each_test_once(tmp_path: Path) -> None:
    run = Run(tmp_path, a=WAITING, b=WAITING)
    run.hear("waits", 2)
    run.process.send_signal(signal.SIGINT)
    out, said = run.end()
    assert run.process.returncode == 2
    (line,) = [each for each in out.splitlines() if each.startswith("interrupted: ")]
    assert set(line.removeprefix("interrupted: ").split(", ")) == {"test_a.py::test_waits", "test_b.py::test_waits"}
    assert said.count("interrupted") == 2
    assert len([each for each in said if each.startswith("down")]) == 2
    assert "never" not in said


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a process does not hear of its parent's end")
def test_testers_end_with_the_process_that_forked_them(tmp_path: Path) -> None:
    run = Run(tmp_path, a=WAITING, b=WAITING)
    run.hear("waits", 2)
    run.process.kill()
    said = run.end()[1]  # to the end of the pipe, which the last of them closes
    assert said.count("interrupted") == 2
    assert len([each for each in said if each.startswith("down")]) == 2
    assert "never" not in said


def test_threads_of_imported_modules_are_refused(tmp_path: Path) -> None:
    thread = "import threading\nthreading.Thread(target=threading.Event().wait, name='mine', daemon=True).start()\n"
    out = Run(tmp_path, a=f"{thread}\ndef test_it(): pass\n").end()[0]
    assert "a fork has no threads; some run already: MainThread, mine" in out


@pytest.mark.parametrize("names", [["b", "c"], ["b"]])
def test_a_second_try_is_of_what_failed(names: list[str]) -> None:
    items: list[Any] = [SimpleNamespace(nodeid=each) for each in "abc"]
    assert [each.nodeid for each in _to_try_again(items, _failed(dict.fromkeys(names, True)))] == names


def test_pytest_may_have_no_cache(tmp_path: Path) -> None:
    """As `-p no:cacheprovider` says."""
    run = Run(tmp_path, "-p", "no:cacheprovider", a="def test_a(): pass\n", b="def test_b(): pass\n")
    assert "2 passed" in run.end()[0]
    config: Any = SimpleNamespace(pluginmanager=SimpleNamespace(get_plugin=lambda name: None), option=SimpleNamespace())
    assert _to_try_again([], config) == []
    pytest_sessionfinish(SimpleNamespace(config=config))  # type: ignore[arg-type]


def test_what_computes_has_no_second_try() -> None:
    with pytest.raises(pytest.UsageError, match=r"for tests of processes alone, and these failed: a$"):
        _to_try_again([], _failed({"a": False, "b": True}))


def _failed(found: dict[str, bool]) -> Any:
    return SimpleNamespace(cache=SimpleNamespace(get=lambda name, default: found))
