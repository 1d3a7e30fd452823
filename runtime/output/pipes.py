"""OutputPipes: what child processes write to their standard output and standard error, copied to the user's.

Each process has two pipes of its own, so a line is never cut by another process's, and what a process wrote before it
was killed is still there. One thread reads them all and hands on whole lines; the beginning of a line only when its end
does not come soon. A user's stream that blocks makes that thread wait, the pipes fill, and the processes wait too:
nothing is dropped.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import selectors
import threading
from collections.abc import Iterator

from .user_streams import StreamName, UserStreams

PARTIAL_LINE_SECONDS = 0.2
"""So long the end of a line is waited for: a progress bar has none."""

CLOSE_READS = 32
"""So often at most `close` takes all that the pipes hold: a process that outlives its TaskManager may go on writing."""

_READ_BYTES = 1 << 20
"""More than a pipe holds, so that one read takes all that was written before."""


class LastLine:
    """What a process has written last to its standard error, as far as it was read; of a traceback it is the error."""

    def __init__(self) -> None:
        self.text = ""

    def written(self, text: str) -> None:
        self.text = next((line for line in reversed(text.splitlines()) if line.strip()), self.text)


class OutputPipes:
    """Pipes and the thread that reads them, from its making until `close`. Any thread may call its methods."""

    def __init__(self, streams: UserStreams | None = None) -> None:
        self._streams = streams or UserStreams()
        self._lock = threading.Lock()
        self._new: list[_Pipe] = []
        self._drains: list[threading.Event] = []
        self._is_closing = False
        self._pipes: set[_Pipe] = set()
        self._selector = selectors.DefaultSelector()
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._run, name="understudy-output", daemon=True)
        self._thread.start()

    @contextlib.contextmanager
    def for_process(self, last: LastLine | None = None) -> Iterator[tuple[int, int]]:
        """The writing ends of two new pipes, for a process's standard output and standard error.

        `last` gets what it writes to the latter.

        They are this process's as long as the context lasts; the other process has its own copies by then.
        """
        writing: list[int] = []
        try:
            streams: tuple[StreamName, ...] = ("stdout", "stderr")
            for stream in streams:
                reading, its = os.pipe()
                writing.append(its)
                if not self._order(new=_Pipe(reading, stream, last if stream == "stderr" else None)):
                    os.close(reading)
            yield writing[0], writing[1]
        finally:
            for fd in writing:
                os.close(fd)

    def drain(self, timeout: float) -> bool:
        """Wait until all that has been written by now is with the user; False when it is not after `timeout` seconds,
        as when the user's stream blocks.
        """
        drained = threading.Event()
        return not self._order(drain=drained) or drained.wait(timeout)

    def close(self) -> None:
        """The processes have ended: copy what is left, as fast as the user's streams take it, and give all back."""
        self._is_closing = True
        self._order()
        self._thread.join()

    # -- the reader's thread

    def _run(self) -> None:
        try:
            while not self._is_closing:
                self._copy()
            for _ in range(CLOSE_READS):
                if not self._copy():
                    break
        finally:
            self._end()

    def _copy(self) -> bool:
        """One round: take what is there, or wait for something. Whether there was anything."""
        with self._lock:
            new, self._new = self._new, []
            drains, self._drains = self._drains, []
        for pipe in new:
            self._pipes.add(pipe)
            self._selector.register(pipe.fd, selectors.EVENT_READ, pipe)
        partial = [pipe for pipe in self._pipes if pipe.tail]
        at_once = drains or self._is_closing
        ready = self._selector.select(0 if at_once else PARTIAL_LINE_SECONDS if partial else None)
        for key, _ in ready:
            if key.data is None:
                os.read(self._woken, 4096)
            else:
                self._take(key.data)
        for pipe in self._pipes if drains else [] if ready else partial:
            self._hand_on(pipe, pipe.partial_line())
        for drained in drains:
            drained.set()
        return bool(new or ready)

    def _end(self) -> None:
        with self._lock:
            self._wake, wake = -1, self._wake
            left = [*self._pipes, *self._new]
        for pipe in left:
            self._hand_on(pipe, pipe.last_line())
            os.close(pipe.fd)
        self._selector.close()
        for fd in (self._woken, wake):
            os.close(fd)
        for drained in self._drains:
            drained.set()

    def _take(self, pipe: _Pipe) -> None:
        data = os.read(pipe.fd, _READ_BYTES)
        if data:
            self._hand_on(pipe, pipe.lines(data))
        else:
            self._forget(pipe)

    def _forget(self, pipe: _Pipe) -> None:
        """Its processes have ended."""
        self._hand_on(pipe, pipe.last_line())
        self._selector.unregister(pipe.fd)
        os.close(pipe.fd)
        self._pipes.discard(pipe)

    def _hand_on(self, pipe: _Pipe, text: str) -> None:
        if text:
            if pipe.last is not None:
                pipe.last.written(text)
            self._streams.write(pipe.stream, text)

    # -- from any thread

    def _order(self, new: _Pipe | None = None, drain: threading.Event | None = None) -> bool:
        """Tell the reader; False when it has ended."""
        with self._lock:
            if self._wake < 0:
                return False
            self._new += [new] if new else []
            self._drains += [drain] if drain else []
            with contextlib.suppress(BlockingIOError):  # it has been woken, and will look
                os.write(self._wake, b"\0")
            return True


class _Pipe:
    """The reading end of one, and the line in it that has no end yet."""

    def __init__(self, fd: int, stream: StreamName, last: LastLine | None = None) -> None:
        self.fd = fd
        self.stream = stream
        self.last = last
        self.tail = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")

    def lines(self, data: bytes) -> str:
        """The whole lines that there are with this."""
        text, newline, self.tail = (self.tail + self._decoder.decode(data)).rpartition("\n")
        if len(self.tail) > _READ_BYTES:  # no line that anybody waits for
            return text + newline + self.partial_line()
        return text + newline

    def partial_line(self) -> str:
        """The beginning of the line that has no end yet."""
        text, self.tail = self.tail, ""
        return text

    def last_line(self) -> str:
        """What is left, with an end, so that another process's line does not continue it."""
        text = self.partial_line() + self._decoder.decode(b"", final=True)
        return f"{text}\n" if text else ""
