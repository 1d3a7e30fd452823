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
    """Takes its first count when made. Tests pass a `root` other than / and a clock of their own, in seconds."""

    def __init__(self, root: Path = Path("/"), clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._counter = next((each for each in _counters(root) if _count(each.file) is not None), None)
        self._seen = 0 if self._counter is None else _count(self._counter.file) or 0
        self._looked_s = self._since_s = clock()
        self._from = self._seen
        """The count, and when it was taken, before the first of the kills that are left."""
        self._left, self._said, self._until_s = 0, "", 0.0
        """Kills of the last count that nobody has asked about, what to say of them, and until when."""

    def kills(self) -> str | None:
        """What the kernel has ended for want of memory since the last time, in words, with whose memory it was, its
        limit, and how long ago the last time was; empty: nothing; None: that is not known. To be asked once for each
        process that was killed. It may have been another process of the same container or machine.
        """
        now = None if self._counter is None else _count(self._counter.file)
        if self._counter is None or now is None:
            return None
        now_s = self._clock()
        seen, self._seen = self._seen, now
        looked_s, self._looked_s = self._looked_s, now_s
        if now_s >= self._until_s:
            self._left = 0
        if now > seen:
            if not self._left:
                self._from, self._since_s = seen, looked_s
            self._left, self._until_s = self._left + now - seen, now_s + _TOGETHER_S
            span, limit = _span(now_s - self._since_s), _limit(self._counter.limit)
            self._said = f"oom_kill of {self._counter.whose} went from {self._from} to {now} in the last {span}{limit}"
        if not self._left:
            return ""
        self._left -= 1
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


def _span(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"


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
