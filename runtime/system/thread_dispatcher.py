"""ThreadDispatcher: one thread per actor, for handlers that block."""

from __future__ import annotations

import asyncio
import threading
import time

from .dispatcher import Driven, drive


class ThreadSeat:
    """An actor's thread, and the event that wakes it."""

    runs_coroutines = False

    def __init__(self, cell: Driven) -> None:
        self.cell = cell
        self.thread = threading.Thread(target=self._run, name=f"actor {cell.name}", daemon=True)
        self._event = threading.Event()

    def signal(self) -> None:
        self._event.set()

    def _run(self) -> None:
        cell = self.cell
        try:
            drive(cell.start())
            while not cell.is_terminated:
                self._event.clear()
                while cell.handle_at_once():
                    pass
                if not cell.is_terminated:
                    self._event.wait()
        finally:
            cell.abandon("its thread ended")


class ThreadDispatcher:
    """Owns the actors' threads."""

    def __init__(self) -> None:
        self._seats: list[ThreadSeat] = []
        self._lock = threading.Lock()

    def attach(self, cell: Driven, argument: str) -> ThreadSeat:
        return ThreadSeat(cell)

    def launch(self, seat: ThreadSeat) -> None:
        with self._lock:
            self._seats = [known for known in self._seats if known.thread.is_alive()]
            self._seats.append(seat)
            seat.thread.start()

    async def close(self, timeout_ms: float) -> list[str]:
        with self._lock:
            threads = {seat.thread: seat.cell.name for seat in self._seats}
        return await join_threads(threads, timeout_ms)


async def join_threads(threads: dict[threading.Thread, str], timeout_ms: float) -> list[str]:
    """Wait for threads that have the order to end; the names of those that did not."""
    deadline = time.monotonic() + timeout_ms / 1000
    while alive := [thread for thread in threads if thread.is_alive()]:
        if time.monotonic() >= deadline:
            break
        await asyncio.sleep(0.002)
    return [threads[thread] for thread in alive]
