"""No server outlives the process of its tests: with a second Ctrl-C pytest leaves its fixtures where they are."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.prepared import PATIENCE_SECONDS

from . import SystemMissing
from .postgresql import PostgreSQL
from .redis import RedisServer
from .s3 import S3Server

pytestmark = pytest.mark.processes

SCRIPT = """
import sys
from tests.systems.{module} import {name}
server = {name}()
folder = getattr(server, "folder", getattr(server, "_folder", ""))
print(server._process.pid, folder, flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(
    shutil.which("setpriv") is None, reason="setpriv of util-linux asks for the signal of a parent's death"
)
@pytest.mark.parametrize("kind", [PostgreSQL, RedisServer, S3Server])
def test_a_server_ends_with_the_process_that_started_it(kind: type) -> None:
    script = SCRIPT.format(module=kind.__module__.rpartition(".")[2], name=kind.__name__)
    parent = subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout is not None
    assert parent.stderr is not None
    line = parent.stdout.readline()
    if not line:
        said = parent.communicate()[1]
        assert SystemMissing.__name__ in said, said
        pytest.skip(said.splitlines()[-1])
    number, _, folder = line.strip().partition(" ")
    server = psutil.Process(int(number))
    everything = [server, *server.children(recursive=True)]
    parent.kill()
    parent.communicate()
    _, left = psutil.wait_procs(everything, timeout=PATIENCE_SECONDS)
    for each in left:
        each.kill()
    if folder:
        shutil.rmtree(folder, ignore_errors=True)
    assert left == []
