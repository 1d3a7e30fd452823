"""What is forked from the prepared process is as a new interpreter would be, and how it ends is known."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from .prepared import Prepared, StillRuns

pytestmark = pytest.mark.processes

PROGRAM = """
import json, os, random, signal, sys, tempfile
print(json.dumps({
    "arguments": sys.argv[1:],
    "folder": os.getcwd(),
    "path": sys.path[0],
    "name": __name__,
    "mark": os.environ.get("MARK"),
    "temporary": tempfile.gettempdir(),
    "session": os.getsid(0) == os.getpid(),
    "interrupts": signal.getsignal(signal.SIGINT) is signal.default_int_handler,
    "descriptors": sorted(int(each) for each in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{each}")
                          and os.readlink(f"/proc/self/fd/{each}").startswith("socket:")),
    "input": sys.stdin.read(),
    "random": random.random(),
}))
print("said", file=sys.stderr)
sys.exit(3)
"""


def test_a_script_has_what_it_was_given(prepared: Prepared, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(PROGRAM)
    env = {**os.environ, "MARK": "mine", "TMPDIR": str(tmp_path)}
    found = []
    for _ in range(2):
        script = prepared.start(("script.py", "an argument"), tmp_path, env, "script")
        out, err = script.communicate(timeout=60)
        assert (script.returncode, err) == (3, "said\n")
        found.append(json.loads(out))
    randoms = {each.pop("random") for each in found}
    assert len(randoms) == 2
    assert found[0] == {
        "arguments": ["an argument"],
        "folder": str(tmp_path),
        "path": str(tmp_path),
        "name": "__main__",
        "mark": "mine",
        "temporary": str(tmp_path),
        "session": True,
        "interrupts": True,
        "descriptors": [],
        "input": "",
    }


def test_the_signal_that_ended_it_is_known(prepared: Prepared, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("print('up', flush=True)\nwhile True: pass\n")
    script = prepared.start(("script.py",), tmp_path, dict(os.environ), "script")
    assert script.stdout.readline() == "up\n"
    assert script.poll() is None
    script.send_signal(signal.SIGKILL)
    assert script.wait(60) == -signal.SIGKILL


def test_what_takes_too_long_is_ended(prepared: Prepared, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("print(__import__('os').getpid(), flush=True)\nwhile True: pass\n")
    with pytest.raises(subprocess.TimeoutExpired):
        prepared.run("script.py", folder=tmp_path, timeout=0.2)


def test_one_that_does_not_end_says_where_it_is(prepared: Prepared, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        "import time\ndef waits():\n    print('said', flush=True)\n    time.sleep(1_000)\nwaits()\n"
    )
    script = prepared.start(("script.py",), tmp_path, dict(os.environ), "script")
    assert script.stdout.readline() == "said\n"
    with pytest.raises(StillRuns, match=r"timed out after 0\.1 seconds(.|\n)*in waits"):
        script.communicate(timeout=0.1)
    os.killpg(script.pid, signal.SIGKILL)
    assert script.wait(60) == -signal.SIGKILL
