"""Whether the kernel has ended processes of this one's container, or of this machine, for want of memory.

It counts them (`oom_kill`): per control group in `memory.events` (v2) or `memory.oom_control` (v1), for the machine in
/proc/vmstat. Where none of these can be read, as on macOS, nothing is known.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

_COUNT = re.compile(r"^oom_kill (\d+)$", re.MULTILINE)
_TOGETHER_S = 10.0
_NO_LIMIT_BYTES = 1 << 60
"""Of v1: without a limit it says a number just below 2 ** 63."""


class _Counter(NamedTuple):
    file: Path
    whose: str
    limit: Path | None


class MemoryEvents:
    """Looks first when it is made. `root` is another one than / in tests, and the clock theirs, in seconds."""

    def __init__(self, root: Path = Path("/"), clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._counter = next((each for each in _counters(root) if _count(each.file) is not None), None)
        self._seen = 0 if self._counter is None else _count(self._counter.file) or 0
        self._left, self._said, self._until_s = 0, "", 0.0
        """Others that were killed at the same time are asked about next."""

    def kills(self) -> str | None:
        """What the kernel has ended for want of memory since the last time, in words, with whose memory it was and its
        limit; empty: nothing; None: that is not known. To be asked once for each process that was killed.
        """
        now = None if self._counter is None else _count(self._counter.file)
        if self._counter is None or now is None:
            return None
        seen, self._seen = self._seen, now
        if now <= seen:
            self._left -= 1
            return self._said if self._left >= 0 and self._clock() < self._until_s else ""
        self._left, self._until_s = now - seen - 1, self._clock() + _TOGETHER_S
        self._said = f"oom_kill of {self._counter.whose} went from {seen} to {now}{_limit(self._counter.limit)}"
        return self._said


def _counters(root: Path) -> Iterator[_Counter]:
    """The nearest first: the one of the process's own group, which a container may show as the mount's root. Only the
    last one has what others on this machine have lost.
    """
    mount = root / "sys/fs/cgroup"
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, kinds, group = (*line.split(":", 2), "", "")[:3]
        is_v2 = not kinds
        if not is_v2 and "memory" not in kinds.split(","):
            continue
        folder = mount if is_v2 else mount / "memory"
        events, limit = ("memory.events", "memory.max") if is_v2 else ("memory.oom_control", "memory.limit_in_bytes")
        for place in dict.fromkeys((folder / group.lstrip("/"), folder)):
            yield _Counter(place / events, f"its container ({place / events})", place / limit)
    yield _Counter(root / "proc/vmstat", "this machine (/proc/vmstat)", None)


def _count(file: Path) -> int | None:
    found = _COUNT.search(_text(file))
    return None if found is None else int(found[1])


def _limit(file: Path | None) -> str:
    said = "" if file is None else _text(file).strip()
    if not said.isdigit() or int(said) >= _NO_LIMIT_BYTES:
        return ""
    return f"; its limit is {int(said) >> 20} MiB"


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except (OSError, UnicodeError):
        return ""
