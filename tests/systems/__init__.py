"""Real systems for tests and benchmarks: a module each (`kafka.py`, `postgresql.py`, …), whose server runs on a free
loopback port with its files in a temporary folder.

Here is the rule about a system that is missing. What starts one raises SystemMissing with the reason in one line; a
fixture passes it through `given`: without the system its tests are skipped, and the summary says which system and why.
Where all systems have to be there (UNDERSTUDY_ALL_SYSTEMS=1, as in CI), such a skip is a failure. Benchmarks leave
SystemMissing to end them. No server is at home here, only the rule.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

import pytest

T = TypeVar("T")

ALL_SYSTEMS = "UNDERSTUDY_ALL_SYSTEMS"

QUICK_JAVA = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:-BytecodeVerificationRemote",
)
"""Options of a JVM that lives for some seconds: it is not worth its optimizing compiler, nor threads to collect garbage
with, nor proofs that the code of released jars is sound. It takes less than half of the processor's time.
"""


class SystemMissing(Exception):
    """This machine cannot run the system."""

    def __init__(self, system: str, why: str) -> None:
        super().__init__(f"{system} cannot be started: {why}")


def given(start: Callable[[], T]) -> T:
    """What `start` returns. If it raises SystemMissing, the test that asks for it is skipped, or fails."""
    try:
        return start()
    except SystemMissing as missing:
        reason = str(missing)
    if os.environ.get(ALL_SYSTEMS, "") not in ("", "0"):
        pytest.fail(f"{reason} ({ALL_SYSTEMS} is set, so that it may not be skipped)", pytrace=False)
    pytest.skip(f"{reason} ({ALL_SYSTEMS}=1 makes this a failure)")
