"""Runs one side of a comparison as a process of its own, and measures it from outside: time, memory, processor, what it
says.

A side is a command. Its last line on standard output is a JSON object with at least `seconds`, the time it took
without its start-up, and `versions`. Memory and processor time are those of the process and of all that descend
from it.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
import psutil

ROOT = Path(__file__).resolve().parent.parent
TIMEOUT_S = 900.0
SAMPLE_S = 0.1
TREE_EVERY = 3
SHARED_EVERY = 10
"""Looking for new processes costs more than a sample, counting shared pages once (PSS) costs most: not each time."""

MB = 1024 * 1024

_ENVIRONMENT = {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}", "PYTHONDONTWRITEBYTECODE": ""}
"""What is measured is this checkout, whichever is installed. Modules are compiled once, as those of an installed
package are, and not by every process.
"""


class SideFailed(Exception):
    """A side ended with an error, said nothing, or took too long."""


@dataclass
class Usage:
    """What all processes together took. Memory is the most that they held: `rss` counts a page once per process, `pss`
    once. `cpu`: pairs of a moment and the processor seconds until then, of processes that have ended too.
    """

    rss: int = 0
    pss: int = 0
    cpu: list[tuple[float, float]] = field(default_factory=list)
    _samples: int = 0
    _tree: list[psutil.Process] = field(default_factory=list)
    _cpu_of: dict[tuple[int, float], float] = field(default_factory=dict)
    """By process id and start, as the system gives ids again."""

    def sample(self, root: psutil.Process) -> None:
        if self._samples % TREE_EVERY == 0:
            with contextlib.suppress(psutil.Error):
                self._tree = [root, *root.children(recursive=True)]
        self.rss = max(self.rss, sum(_rss(one) for one in self._tree))
        for one in self._tree:
            with contextlib.suppress(psutil.Error):
                taken = one.cpu_times()
                self._cpu_of[one.pid, one.create_time()] = taken.user + taken.system
        self.cpu.append((time.time(), sum(self._cpu_of.values())))
        if self._samples % SHARED_EVERY == SHARED_EVERY - 1:
            self.pss = max(self.pss, sum(_pss(one) for one in self._tree))
        self._samples += 1


@dataclass(frozen=True)
class Measured:
    """One run of one side. `said`: its JSON; `wall_s`: from its start to its end."""

    said: dict[str, Any]
    started_s: float
    wall_s: float
    peak_rss_mb: float
    peak_pss_mb: float
    cpu: Sequence[tuple[float, float]] = ()
    """As Usage has it."""

    @property
    def seconds(self) -> float:
        return float(self.said["seconds"])

    @property
    def cpu_s(self) -> float | None:
        """Processor seconds of all processes, from `began_s` to `ended_s` of a side that says these; else None."""
        if not self.cpu or "began_s" not in self.said:
            return None
        moments, seconds = zip(*self.cpu, strict=True)
        began, ended = np.interp([self.said["began_s"], self.said["ended_s"]], moments, seconds)
        return float(ended - began)


def measure(
    command: Sequence[str], *, environment: Mapping[str, str] | None = None, timeout_s: float = TIMEOUT_S
) -> Measured:
    """Run it to its end. Raises SideFailed."""
    usage = Usage()
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        started_s, begun = time.time(), time.monotonic()
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            env={**os.environ, **_ENVIRONMENT, **(environment or {})},
            start_new_session=True,
        )
        try:
            _watch(process, usage, begun + timeout_s)
        except BaseException:
            _end(process)
            raise
        wall_s = time.monotonic() - begun
        said = _last_json(output) if process.returncode == 0 else None
        if said is None:
            raise SideFailed(f"{' '.join(command)}: exit code {process.returncode}\n{_tail(output)}{_tail(errors)}")
    return Measured(said, started_s, wall_s, usage.rss / MB, usage.pss / MB, tuple(usage.cpu))


def cpu_pressure_s() -> float | None:
    """For how long, since the machine's start, some thread has waited for a processor; None where Linux does not say.

    Times of milliseconds mean little where this grows by a good part of a second each second.
    """
    try:
        some = Path("/proc/pressure/cpu").read_text().splitlines()[0]
        return int(some.rpartition("total=")[2]) / 1e6
    except (OSError, ValueError, IndexError):
        return None


def _watch(process: subprocess.Popen[bytes], usage: Usage, deadline: float) -> None:
    root = psutil.Process(process.pid)
    while process.poll() is None:
        if time.monotonic() > deadline:
            raise SideFailed(f"process {process.pid} did not end in time")
        usage.sample(root)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(SAMPLE_S)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End it and what it has started."""
    for one in _descendants(process.pid):
        with contextlib.suppress(psutil.Error):
            one.kill()
    process.wait()


def _descendants(pid: int) -> Iterator[psutil.Process]:
    with contextlib.suppress(psutil.Error):
        root = psutil.Process(pid)
        yield from [*root.children(recursive=True), root]


def _rss(process: psutil.Process) -> int:
    with contextlib.suppress(psutil.Error):
        return int(process.memory_info().rss)
    return 0


def _pss(process: psutil.Process) -> int:
    with contextlib.suppress(psutil.Error, AttributeError):
        return int(process.memory_full_info().pss)
    return 0


def _last_json(output: IO[str]) -> dict[str, Any] | None:
    output.seek(0)
    for line in reversed(output.read().splitlines()):
        if line.startswith("{"):
            said: dict[str, Any] = json.loads(line)
            return said
    return None


def _tail(text: IO[str], lines: int = 25) -> str:
    text.seek(0)
    return "".join(f"{line}\n" for line in text.read().splitlines()[-lines:])
