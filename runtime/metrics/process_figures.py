"""ProcessFigures: what the operating system says of this process, by name. Flink: Status.JVM."""

from __future__ import annotations

import gc
import os
import resource
import sys
import threading
import time


class ProcessFigures:
    """Called with each heartbeat: a few system calls."""

    def __init__(self) -> None:
        self._cpu_s = time.process_time()
        self._at_s = time.monotonic()

    def __call__(self) -> dict[str, float]:
        cpu_s, at_s = time.process_time(), time.monotonic()
        passed_s = at_s - self._at_s
        load = (cpu_s - self._cpu_s) / passed_s if passed_s > 0 else 0.0
        self._cpu_s, self._at_s = cpu_s, at_s
        return {
            "Status.Process.CPU.Load": load,
            "Status.Process.CPU.Time": cpu_s,
            "Status.Process.Memory.Used": float(_resident_bytes()),
            "Status.Process.Threads.Count": float(threading.active_count()),
            "Status.Process.GarbageCollector.Count": float(sum(each["collections"] for each in gc.get_stats())),
        }


def _resident_bytes() -> int:
    """What it has in memory now; where that is not known, the most that it has had."""
    try:
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024
