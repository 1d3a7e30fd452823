"""Term: whether a leader can be sure still, and who has to hear that it cannot. Common to all Leaderships.

A value of clocks and callbacks, with a thread that looks: no network here. `renew` says when the last word was sent
that was answered by "you lead"; from then on nobody else can win for `timeout_s`. The leader gives up after two thirds
of that. A process that was frozen, or whose machine was suspended, finds when it wakes that its time is over: before
each act it looks at the clock.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from ...messages import LeaderSessionId
from ...state.errors import LostLeadership

log = logging.getLogger(__name__)

SURE_FOR = 2 / 3
"""Of the time in which nobody else can win, so long after the last word a leader goes on without another one."""
LOOKS = 12
"""So often it makes sure in that time."""
_CLOCK = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))
"""Goes on while the machine is suspended: on Linux the first, on macOS the second."""


def elapsed_s() -> float:
    """Since some start, with the time in which the machine was suspended: others may lead by then."""
    return time.monotonic() if _CLOCK is None else time.clock_gettime(_CLOCK)


class Term:
    """`look` makes sure that this leader leads, and raises LostLeadership when it does not; whatever else it raises
    means that nobody knows. It is called on a thread of the term's own, and returns when the word was sent.
    """

    def __init__(
        self,
        session: LeaderSessionId,
        timeout_s: float,
        since_s: float,
        now_s: Callable[[], float],
        look: Callable[[], float],
    ) -> None:
        self.session = session
        self._timeout_s = timeout_s
        self._sure_until_s = since_s + timeout_s * SURE_FOR
        self._now_s = now_s
        self._look = look
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._why = ""
        self._unanswered = ""
        """Why the latest look had no answer; empty where it had one, or none was taken."""
        self._callbacks: list[Callable[[str], None]] = []
        self._thread = threading.Thread(target=self._watch, name="understudy-term", daemon=True)

    def begin(self) -> None:
        self._thread.start()

    @property
    def is_sure(self) -> bool:
        return not self._over.is_set() and self._now_s() < self._sure_until_s

    def check(self) -> None:
        """Raises LostLeadership when it is over, or would be if somebody looked."""
        if not self.is_sure:
            cause = f": {self._unanswered}" if self._unanswered else ""
            self.lose(f"it was not renewed for longer than {self._timeout_s * SURE_FOR:.1f} s{cause}")
            raise LostLeadership(self.session)

    def renew(self, sent_s: float) -> None:
        """A word that was sent then was answered: this leader leads."""
        with self._lock:
            self._sure_until_s = max(self._sure_until_s, sent_s + self._timeout_s * SURE_FOR)

    def lose(self, why: str) -> None:
        """It is lost."""
        with self._lock:
            if self._over.is_set():
                return
            self._why = why
            self._over.set()
            callbacks, self._callbacks = self._callbacks, []
        log.warning("leader session %s is over: %s", self.session, why)
        for callback in callbacks:
            callback(why)

    def end(self) -> bool:
        """It is given up, and nobody is notified; returns whether it was not over before."""
        with self._lock:
            was_open = not self._over.is_set()
            self._callbacks.clear()
            self._over.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()
        return was_open

    def on_lost(self, callback: Callable[[str], None]) -> None:
        with self._lock:
            if not self._over.is_set():
                self._callbacks.append(callback)
                return
        if self._why:
            callback(self._why)

    def pause(self, seconds: float) -> None:
        """Wait, unless it is over."""
        self._over.wait(seconds)

    def _watch(self) -> None:
        while not self._over.wait(self._timeout_s / LOOKS):
            try:
                self.check()
                self.renew(self._look())
                self._unanswered = ""
            except LostLeadership:
                self.lose("another leader session has begun, or may begin")
                return
            except Exception as error:  # noqa: BLE001 - whatever a client raises that gets no answer
                self._unanswered = str(error) or type(error).__name__
                log.info("leader session %s: nobody answers for now: %s", self.session, error)


class TermLeadership:
    """Base of Leaderships: what its Term answers."""

    _term: Term

    @property
    def session(self) -> LeaderSessionId:
        return self._term.session

    @property
    def is_sure(self) -> bool:
        return self._term.is_sure

    def on_lost(self, callback: Callable[[str], None]) -> None:
        self._term.on_lost(callback)
