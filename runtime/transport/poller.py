"""Poller: one thread that owns every socket of a data plane.

Other threads hand it work with `submit`, which never blocks. While the thread is awake that is an append to a deque;
only when it sleeps does it cost a system call, once, to wake it.
"""

from __future__ import annotations

import logging
import socket
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import Any

import zmq

_log = logging.getLogger(__name__)

Work = Callable[[], object]


class Poller:
    """Runs submitted work in order, and handlers of sockets that have something to read.

    `tick` is called at least every `tick_ms`; `finish` is called last, on the thread, with the reason for the end.
    """

    def __init__(self, name: str, tick: Work, tick_ms: int, finish: Callable[[str], None]) -> None:
        self._tick = tick
        self._tick_ms = tick_ms
        self._finish = finish
        self._work: deque[Work] = deque()
        self._reader, self._writer = socket.socketpair()
        self._writer.setblocking(False)
        self._awake = True
        self._running = True
        self._handlers: dict[Any, Work] = {}
        self._sockets = zmq.Poller()
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self.register(self._reader, self._drain_wake_ups)

    def start(self) -> None:
        self._thread.start()

    def submit(self, work: Work) -> None:
        """Have `work` done on the thread; dropped when the poller has ended. It must not raise."""
        self._work.append(work)
        if not self._awake:
            self._awake = True
            with suppress(OSError):  # it has ended
                self._writer.send(b"\0")

    def stop(self) -> None:
        """End the thread after the work submitted before, and wait for it."""
        self.submit(self._end)
        self._thread.join()

    def discard(self) -> None:
        """Free what a poller holds that will not run, or not again."""
        self._reader.close()
        self._writer.close()

    def register(self, source: Any, handler: Work) -> None:
        """Call `handler` whenever `source`, a ZeroMQ socket or one of the system's, can be read. On the thread only."""
        self._handlers[source if isinstance(source, zmq.Socket) else source.fileno()] = handler
        self._sockets.register(source, zmq.POLLIN)

    def unregister(self, source: Any) -> None:
        del self._handlers[source]
        self._sockets.unregister(source)

    def _run(self) -> None:
        reason = "the data plane was closed"
        try:
            while self._running:
                self._turn()
        except Exception as error:  # noqa: BLE001 (supervision: every channel breaks, with this reason)
            _log.exception("the data plane's poller failed")
            reason = f"the data plane failed: {error!r}"
        finally:
            self._finish(reason)
            self.discard()

    def _turn(self) -> None:
        self._awake = False  # first: work that comes while the deque is emptied sends a wake-up
        while self._work:
            self._work.popleft()()
        ready = self._sockets.poll(self._tick_ms) if self._running else []
        self._awake = True
        for source, _ in ready:
            handler = self._handlers.get(source)
            if handler is not None:  # else an earlier handler of this turn closed it
                handler()
        self._tick()

    def _drain_wake_ups(self) -> None:
        self._reader.recv(4096)

    def _end(self) -> None:
        self._running = False
