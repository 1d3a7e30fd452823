"""Sources with a thread of their own: one that is right, and some with one mistake each."""

from __future__ import annotations

import queue
import threading
from collections import deque
from typing import Any

from understudy import END, Source

from . import kept_log


class Threaded(Source):
    """A thread fetches two numbers at a time, and hands them over by a queue that has room for two pairs."""

    def __init__(self, log: str) -> None:
        self.log = log

    def open(self) -> None:
        self.client = kept_log.connect(self.log)
        self.queue: queue.Queue[Any] = queue.Queue(2)
        self.closed = threading.Event()
        self.next = 0
        self.of_checkpoints: dict[int, int] = {}
        self.thread: threading.Thread | None = None
        self.error: Exception | None = None

    def close(self) -> None:
        self.closed.set()
        if self.thread is not None:
            self.thread.join()

    def poll(self) -> Any:
        if self.thread is None:
            self.thread = threading.Thread(target=self.run, args=(self.next,), daemon=True)
            self.thread.start()
        if self.error is not None:
            raise self.error
        try:
            piece = self.queue.get_nowait()
        except queue.Empty:
            return None
        return self.take(piece)

    def take(self, piece: Any) -> Any:
        if piece is END:
            return END
        records, self.next = piece
        return records

    def offset(self) -> int:
        return self.next

    def seek(self, offset: int) -> None:
        self.next = offset

    def on_checkpoint(self, checkpoint_id: Any) -> None:
        self.of_checkpoints[checkpoint_id] = self.next

    def on_checkpoint_complete(self, checkpoint_id: Any) -> None:
        self.client.acknowledge(self.of_checkpoints.pop(checkpoint_id, 0))

    # -- the thread

    def run(self, first: int) -> None:
        try:
            self.read(first)
        except ConnectionError as error:
            self.error = error
            self.context.wake()

    def read(self, first: int) -> None:
        while not self.closed.is_set():
            found = self.client.fetch(first, 2)
            if not found:
                self.put(END)
                return
            first += len(found)
            self.put((found, first))

    def put(self, piece: Any) -> None:
        while not self.closed.is_set():
            try:
                self.queue.put(piece, timeout=0.05)
            except queue.Full:
                continue
            self.context.wake()
            return


class UnderALock(Threaded):
    """Hands over by a list under a lock, of which nobody can see from outside that it is held."""

    def open(self) -> None:
        super().open()
        self.lock = threading.Lock()
        self.pieces: list[Any] = []

    def poll(self) -> Any:
        super().poll()
        with self.lock:
            piece = self.pieces.pop(0) if self.pieces else None
        return None if piece is None else self.take(piece)

    def put(self, piece: Any) -> None:
        with self.lock:
            self.pieces.append(piece)
        self.context.wake()


class OffsetAtFetch(Threaded):
    """Moves the offset when something is fetched, and not when it is emitted."""

    def read(self, first: int) -> None:
        while not self.closed.is_set():
            found = self.client.fetch(first, 2)
            if not found:
                self.put(END)
                return
            self.next = first = first + len(found)
            self.put((found, first))


class LosesWhenFull(Threaded):
    def put(self, piece: Any) -> None:
        try:
            self.queue.put_nowait(piece)
        except queue.Full:
            if piece is END:
                super().put(piece)
        self.context.wake()


class ForgetsTheOldest(Threaded):
    """Its queue lets go of what is oldest when it is full."""

    def open(self) -> None:
        super().open()
        self.pieces: deque[Any] = deque(maxlen=2)

    def poll(self) -> Any:
        super().poll()
        return self.take(self.pieces.popleft()) if self.pieces else None

    def put(self, piece: Any) -> None:
        self.pieces.append(piece)
        self.context.wake()


class ClosesAhead(Threaded):
    """When it is closed it acknowledges all that was fetched, and what waits in the queue is gone."""

    def close(self) -> None:
        super().close()
        if self.thread is not None:
            ahead = [upto for _, upto in filter(lambda each: each is not END, self.queue.queue)]
            self.client.acknowledge(max([self.next, *ahead]))


class AcknowledgesTooMuch(Threaded):
    """Not what the checkpoint covers, but what has been emitted by the time that it is complete."""

    def on_checkpoint_complete(self, checkpoint_id: Any) -> None:
        self.client.acknowledge(self.reached if self.thread is not None else 0)

    reached = 0

    def put(self, piece: Any) -> None:
        super().put(piece)
        if piece is not END:
            self.reached = piece[1]


class AcknowledgesAtFetch(Threaded):
    def read(self, first: int) -> None:
        while not self.closed.is_set():
            found = self.client.fetch(first, 2)
            if not found:
                self.put(END)
                return
            first += len(found)
            self.client.acknowledge(first)
            self.put((found, first))


class AsksTooLate(Threaded):
    """Whether it is over it asks when it has found nothing: a piece may have come in between."""

    is_over = False

    def poll(self) -> Any:
        polled = super().poll()
        if polled is None and self.is_over:
            return END
        return polled

    def put(self, piece: Any) -> None:
        if piece is END:
            self.is_over = True
            self.context.wake()
        else:
            super().put(piece)


class TriesFromTheStart(Threaded):
    """When a call fails it begins where the job began, and not where it was."""

    def run(self, first: int) -> None:
        while True:
            try:
                return self.read(first)
            except ConnectionError:
                continue


class NeverEnds(Threaded):
    """Its thread outlives it."""

    def close(self) -> None: ...

    def put(self, piece: Any) -> None:
        super().put(piece)
        if piece is END:
            self.closed.wait()
