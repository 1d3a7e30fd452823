"""Servers that end with the process that has started them, also when that is killed, as by a second Ctrl-C."""

from __future__ import annotations

import shutil
import threading


def with_parent(signal: str = "KILL") -> list[str]:
    """What to put before a command, so that it gets this signal when this process dies, where Linux's `setpriv` is
    there. The signal comes with the end of the thread that has started it, so only the main thread may ask for it.
    """
    is_main = threading.current_thread() is threading.main_thread()
    return ["setpriv", "--pdeathsig", signal, "--"] if is_main and shutil.which("setpriv") else []
