"""aiozmq is imported on Pythons that lack what only its event loop policy needs."""

from __future__ import annotations

import subprocess
import sys

IMPORTED_WITHOUT = """
import asyncio
import asyncio.unix_events
import warnings

warnings.simplefilter("error")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # they are old, says Python 3.14
    for module, name in ((asyncio.unix_events, "SafeChildWatcher"), (asyncio, "AbstractEventLoopPolicy")):
        if name in vars(module):
            delattr(module, name)

from understudy.runtime.system.remote import aiozmq_names

assert "SafeChildWatcher" not in vars(asyncio.unix_events), "only while aiozmq is imported"
assert "AbstractEventLoopPolicy" not in vars(asyncio), "only while aiozmq is imported"
print(aiozmq_names.ZmqProtocol.__module__)
"""


def test_names_that_python_has_removed_are_there_while_aiozmq_is_imported() -> None:
    ran = subprocess.run([sys.executable, "-c", IMPORTED_WITHOUT], capture_output=True, text=True, timeout=60)
    assert (ran.stdout, ran.stderr) == ("aiozmq.interface\n", "")


def test_names_that_python_has_stay() -> None:
    program = "import asyncio.unix_events as u, understudy.runtime.system.remote.aiozmq_names; print(hasattr(u, {!r}))"
    ran = subprocess.run(
        [sys.executable, "-c", program.format("SafeChildWatcher")], capture_output=True, text=True, timeout=60
    )
    assert ran.stdout == f"{sys.version_info < (3, 14)}\n"
