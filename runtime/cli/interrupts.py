"""Ctrl-C, SIGTERM and the end of the terminal, each as a KeyboardInterrupt in the main thread, remembered.

Remembered, because libraries turn the exception into errors of their own, and because Python raises it wherever the
main thread is: a finalizer or a weak reference's callback swallows it, and a lock that was just taken stays taken.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """Use it as a context manager on the main thread; `signal` is the first that came."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self._before: dict[signal.Signals, Any] = {}

    @property
    def exit_code(self) -> int:
        """As shells have it: 128 and the signal's number."""
        return 128 + (self.signal or signal.SIGINT)

    def arm(self) -> None:
        """Take the signals over; again after a library (PySpark) has done so. SIGTERM and SIGHUP stay ignored if they
        are, as `nohup` wants it.
        """
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN or number is signal.SIGINT:
                before = signal.signal(number, self._on_signal)
                self._before.setdefault(number, before)

    def __enter__(self) -> Self:
        self.arm()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if self.signal is None:
            self.signal = number
        raise KeyboardInterrupt


class HeldInterrupt:
    """Between `hold` and `release` Ctrl-C is raised by `check`, where nothing can swallow it; a second one at once.

    On another thread than the main one, and where SIGINT is ignored, it changes nothing.
    """

    def __init__(self) -> None:
        self._came = False
        self._before: Any = None

    def hold(self) -> None:
        if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
            self._before = signal.signal(signal.SIGINT, self._on_signal)

    def check(self) -> None:
        """Raises KeyboardInterrupt if one has come."""
        if self._came:
            raise KeyboardInterrupt

    def release(self) -> None:
        """From now on it is raised at once; `check` says whether one has come before."""
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            self._before = None

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        if self._came:
            raise KeyboardInterrupt
        self._came = True
