"""SlowCoroutines: names the operator and the line that hold the event loop of a TaskManager's coroutines.

While the loop is held, nothing else on it runs. So whoever looks asks the loop for an answer, and as long as there is
none, looks at what runs there: if that is the same coroutine for longer than the threshold, it does not wait, but
blocks. A loop that is slow because there is much to do is not meant: what runs there changes from look to look.

Calls that block for a shorter time, but again and again, are named once, where they are found at every second look.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from ...actors.context import Clock
from .blocked_looks import LOOKS, BlockedLooks, waits_in_a_system_call
from .running_code import RunningCode, step_frame
from .slow_places import SlowPlaces, operator_of, warn

log = logging.getLogger(__name__)

_MEANWHILE = (
    "all coroutines of this TaskManager wait meanwhile: use an async client there (asyncio.sleep for time.sleep), or "
    "`await asyncio.to_thread(...)`"
)


class SlowCoroutines:
    """The watch on one loop. Whoever has a thread calls `look` a few times within the threshold."""

    def __init__(
        self,
        slow_ms: float,
        clock: Clock,
        waits: Callable[[int], bool] = waits_in_a_system_call,
    ) -> None:
        self.slow_ms = slow_ms
        self._waits = waits
        self._blocked = BlockedLooks()
        self._native_id = 0
        self._clock = clock
        self._lock = threading.Lock()
        self._thread = 0
        self._call: Callable[..., Any] | None = None
        self._asked_ms: float | None = None
        """When the loop was asked, while it has not answered."""
        self._frame: FrameType | None = None
        """Of what ran there when it was looked at last, since it was asked."""
        self._since_ms = 0.0
        self._logged: tuple[str, RunningCode] | None = None
        self._places = SlowPlaces()

    # -- on the loop's thread

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._lock:
            self._thread, self._call = threading.get_ident(), loop.call_soon_threadsafe
            self._native_id = threading.get_native_id()

    def _answer(self) -> None:
        with self._lock:
            logged, self._logged, self._frame, self._asked_ms = self._logged, None, None, None
            if logged is not None:
                what, code = logged
                held_s = (self._clock.now_ms() - self._since_ms) / 1000
                warn(log, code, "%s held the event loop for %.1f s in all: %s", what, held_s, code)

    # -- on the watch's

    def look(self) -> None:
        """Ask, or see whether one coroutine has held the loop for long since."""
        with self._lock:
            if self._call is None:
                return
            self._look_for_short_calls()
            if self._logged is not None:
                return
            now_ms = self._clock.now_ms()
            if self._asked_ms is None:
                self._ask(self._call, now_ms)
                return
            top = sys._current_frames().get(self._thread)
            frame = step_frame(top)
            if frame is None or frame is not self._frame:
                self._since_ms = self._asked_ms if self._frame is None else now_ms
                self._frame = frame
            if frame is not None and now_ms - self._since_ms >= self.slow_ms:
                self._see(RunningCode.of(top), now_ms)

    def running(self) -> RunningCode | None:
        """The code of the coroutine that runs now; None: there is none."""
        top = sys._current_frames().get(self._thread)
        return None if step_frame(top) is None else RunningCode.of(top)

    def _look_for_short_calls(self) -> None:
        top = sys._current_frames().get(self._thread)
        if step_frame(top) is None or not self._waits(self._native_id):
            self._blocked.noted(None)
            return
        code = RunningCode.of(top)
        what = _named(code)
        if self._blocked.noted((what, code.path, code.line)):
            warn(
                log,
                code,
                "%s blocks the event loop, in half of the last %d looks: %s; %s",
                *(what, LOOKS, code, _MEANWHILE),
            )

    def _ask(self, call: Callable[..., Any], now_ms: float) -> None:
        try:
            call(self._answer)
        except RuntimeError:  # the loop is closed
            self._call = None
        else:
            self._asked_ms = now_ms

    def _see(self, code: RunningCode, now_ms: float) -> None:
        what = _named(code)
        before = self._places.noted(what, code, now_ms)
        if before is not None:
            self._logged = what, code
            held_s = (now_ms - self._since_ms) / 1000
            warn(log, code, "%s has held the event loop for %.1f s: %s; %s%s", what, held_s, code, _MEANWHILE, before)
        else:
            self._frame, self._asked_ms = None, now_ms


def _named(code: RunningCode) -> str:
    return operator_of(code) or f"a coroutine, in {code.method}"
