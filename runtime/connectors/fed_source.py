"""FedSource: a source with a thread of its own, which waits for what comes from outside. Base of those that do.

    poll (task's thread) <- queue of at most `most_ahead` pieces <- listen (the source's thread)

The thread brings pieces; `take` makes a batch of one, on the task's thread, and moves the offset: so a checkpoint
covers what was emitted, and what waits in the queue is fetched again by a successor. When `listen` raises what may
pass, it is called again after a pause, longer each time, for `retry_ms` from the first failure on; that is logged once,
and once more when it works again. Before any of this, at submit, a wrong address is said at once: `look`.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable
from typing import Any, Literal

from ...actors.async_calls.retry_after import retry_after_ms
from ...actors.errors import OutsideUnavailable
from ...actors.flow.elements import Batch
from ...actors.operators.patience import RETRY_MS
from ...actors.operators.source import END, FromSplit, Source, SourceState
from .reaching import in_the_way, why_unreachable

log = logging.getLogger("understudy.source")

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 5.0
_JOIN_S = 5.0


class Feed:
    """Between the two threads. All methods are for the source's own thread, unless they say otherwise."""

    def __init__(self, who: str, place: str, wake: Any, most_ahead: int) -> None:
        """`place`: what it reads, without secrets."""
        self.who, self.place = who, place
        self.pieces: queue.Queue[Any] = queue.Queue(most_ahead)
        """For the task's thread, too."""
        self.closed = threading.Event()
        """Set by the task's thread."""
        self.over: BaseException | Literal[True] | None = None
        """Why nothing comes behind what is in the queue; True: it is the end."""
        self._wake = wake
        self._failing_since: float | None = None
        self._failures = 0

    def put(self, piece: Any) -> None:
        """Wait for room, and hand it over. Raises FeedClosed."""
        while not self.closed.is_set():
            try:
                self.pieces.put(piece, timeout=0.2)
            except queue.Full:
                continue
            self._wake()
            return
        raise FeedClosed

    def wait(self, seconds: float) -> None:
        """Raises FeedClosed, at once when it is closed meanwhile."""
        if self.closed.wait(seconds):
            raise FeedClosed

    def works(self) -> None:
        """The outside has answered."""
        if self._failing_since is not None:
            away_s = time.monotonic() - self._failing_since
            log.warning("%s: it works again, after %.1f s and %d failures", self.who, away_s, self._failures)
        self._failing_since, self._failures = None, 0

    def failed(self, error: Exception, retry_ms: float) -> None:
        """Wait until the next try. Raises OutsideUnavailable when it is enough, and FeedClosed."""
        now = time.monotonic()
        self._failures += 1
        if self._failing_since is None:
            self._failing_since = now
            why = why_unreachable(error, self.place)
            log.warning("%s: %s. It tries again for %.0f s", self.who, why, retry_ms / 1000)
        tried_ms = (now - self._failing_since) * 1000
        if tried_ms >= retry_ms:
            why = why_unreachable(error, self.place)
            raise OutsideUnavailable(self.who, "reading", self._failures, tried_ms, error, why) from error
        pause_s = min(FIRST_PAUSE_S * 2.0 ** (self._failures - 1), LONGEST_PAUSE_S)
        self.wait(max(pause_s, (retry_after_ms(error, int(time.time() * 1000)) or 0.0) / 1000))

    def end(self, why: BaseException | Literal[True]) -> None:
        self.over = why
        self._wake()


class FeedClosed(Exception):
    """The task has ended; caught where the thread begins."""


class FedSource(Source):
    """A subclass defines `listen`, `may_pass`, `take`, `offset` and `seek`."""

    retry_ms: float = RETRY_MS
    most_ahead: int = 8

    _feed: Feed | None = None
    _thread: threading.Thread | None = None

    def listen(self, feed: Feed) -> None:
        """Bring pieces until the end, if there is one. Runs on the source's thread, and touches nothing that other
        methods change. Called again when it has raised; `feed.works()` says that the outside has answered.
        """
        raise NotImplementedError(f"{type(self).__name__}.listen is not defined")  # abstract

    def may_pass(self, error: Exception) -> bool:
        """Whether to listen again after this error."""
        raise NotImplementedError(f"{type(self).__name__}.may_pass is not defined")  # abstract

    def place(self) -> str:
        """What it reads, for texts: without secrets."""
        return repr(self)

    def look(self) -> Callable[[], Any] | None:
        """What asks the outside, at submit, for what changes nothing there, and raises what stands in the way of
        reading. It is called on another thread, and may be left behind there; what takes a while here, as an import,
        comes before.
        """
        return None

    def check_at_submit(self, on_this_machine: bool) -> None:
        """Raises an error that never passes. One that may pass is logged: the job waits for it."""
        if (look := self.look()) is None:
            return
        try:
            why = in_the_way(look, self.may_pass, self.place())
        except Exception as error:
            if on_this_machine:
                raise
            why = str(error)
        if why:
            log.warning("%r: %s. The job starts, and tries for %.0f s", self, why, self.retry_ms / 1000)

    def take(self, piece: Any) -> Batch | FromSplit | None:
        """The records of a piece, and the offset behind them; None if it has none."""
        raise NotImplementedError(f"{type(self).__name__}.take is not defined")  # abstract

    def poll(self) -> Batch | FromSplit | Literal[SourceState.END] | None:
        feed = self._feed or self._begin()
        over = feed.over  # asked before the queue is emptied: nothing comes behind it
        while True:
            try:
                piece = feed.pieces.get_nowait()
            except queue.Empty:
                break
            if (taken := self.take(piece)) is not None:
                return taken
        if isinstance(over, BaseException):
            raise over
        return None if over is None else END

    def close(self) -> None:
        if self._feed is not None and self._thread is not None:
            self._feed.closed.set()
            self.interrupt()
            self._thread.join(_JOIN_S)

    def interrupt(self) -> None:
        """On the task's thread: end what `listen` waits for, if it would wait for long."""

    def _begin(self) -> Feed:
        feed = self._feed = Feed(f"source {self.context.name!r}", self.place(), self.context.wake, self.most_ahead)
        self._thread = threading.Thread(target=self._run, args=(feed,), daemon=True, name=f"feed-{self.context.name}")
        self._thread.start()
        return feed

    def _run(self, feed: Feed) -> None:
        try:
            while True:
                try:
                    self.listen(feed)
                except FeedClosed:
                    raise
                except Exception as error:
                    if not self.may_pass(error) and not feed.closed.is_set():
                        raise
                    feed.failed(error, self.retry_ms)
                else:
                    feed.end(True)
                    return
        except FeedClosed:
            return
        except Exception as error:  # noqa: BLE001 - raised again on the task's thread
            feed.end(error)
