"""This process, as others see it who ask whether it still runs: for the names that its jobs own.

A process is known by its id and by when it was started, on a machine that is known by its name, its start, and the
namespace of process ids: two containers, or two machines of one name, cannot look at each other's processes. Where
there is no /proc, an id alone has to do.
"""

from __future__ import annotations

import os
import socket
import sys
import uuid
from pathlib import Path

from ...state.checkpoints.job_runs import RunOwner

_PROC = Path("/proc")
_START_TIME = 19
"""The place of `starttime` in /proc/<pid>/stat, counted behind the name, which may hold anything: proc(5)."""


def this_process() -> RunOwner:
    """It, as it can be written down."""
    program = Path(sys.argv[0] if sys.argv else "").name or "python"
    return RunOwner(socket.gethostname(), os.getpid(), program, _machine(), _started(os.getpid()) or "")


def is_gone(owner: RunOwner) -> bool:
    """Whether this process has been on this machine, and is no more; False when that cannot be seen from here."""
    if owner.machine != _machine():
        return False
    if owner.started:
        return _started(owner.pid) != owner.started
    try:
        os.kill(owner.pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    return False


def _machine() -> str:
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{socket.gethostname()} {boot} {os.readlink(_PROC / 'self/ns/pid')}"
    except OSError:
        return f"{socket.gethostname()} {uuid.getnode():x}"


def _started(pid: int) -> str | None:
    """None when there is no such process, one that has ended but was not waited for, or no /proc."""
    try:
        fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[_START_TIME]
