"""The log files of a process that stands alone: what it logs and what it prints, put aside when they are full.

A disk that takes no more does not end the process: lines are left out until it takes them again. Somebody else may put
the files aside too, as logrotate does, by renaming or by cutting off: the next line begins a new file.
"""

from __future__ import annotations

import io
import logging
import logging.handlers
import os
import sys
from contextlib import suppress
from pathlib import Path

from ...state.full_disk import named
from ..output.origin_formatter import OriginFormatter
from ..system.remote.remoting import LOST
from .folders import made_folder
from .settings import HostSettings

LOG_FORMAT = "%(asctime)s.%(msecs)03d %(levelname)s %(name)s%(origin)s: %(message)s"


def log_to_file(settings: HostSettings, file: str, *, in_background: bool) -> None:
    """From now on all that is logged in this process is in `file`, which is put aside as `file.1`, `file.2`, ... when
    it is full. In the background all that is printed goes to a file beside it, with the ending `.out`, in the same way;
    in the foreground logs are on standard error too, for whoever has started the process.
    """
    made_folder("log.dir", Path(file).parent)
    handlers: list[logging.Handler] = [LogFile(settings, file)]
    if in_background:
        prints = LogFile(settings, str(Path(file).with_suffix(".out")))
        sys.stdout = sys.stderr = _PrintedLines(prints)
    else:
        handlers.append(logging.StreamHandler())
    if settings.log_level != "DEBUG":  # who is away is said once, and not at each try to connect
        logging.getLogger(LOST).setLevel(logging.WARNING)
    for handler in handlers:
        handler.setFormatter(OriginFormatter(LOG_FORMAT, datefmt="%Y-%m-%d %H:%M:%S"))
    logging.basicConfig(level=settings.log_level, handlers=handlers, force=True)


class LogFile(logging.handlers.RotatingFileHandler):
    """One that is opened again after each line that it did not take, and where its name is no longer that file's. The
    first such line is reported on what standard error was when this was made, and how many there were in the file
    itself, when it takes lines again.
    """

    def __init__(self, settings: HostSettings, file: str) -> None:
        super().__init__(
            file,
            maxBytes=settings.log_max_bytes,
            backupCount=max(1, settings.log_files - 1),
            encoding="utf-8",
            errors="backslashreplace",
            delay=True,
        )
        self._left_out = 0
        self._aside = sys.stderr

    def emit(self, record: logging.LogRecord) -> None:
        before = self._left_out
        if (stream := self.stream) is not None and not self._is_named(stream):
            self._drop_stream()
        super().emit(record)
        if before and self._left_out == before:
            self._left_out = 0
            text = f"{before:,} lines before this one, or a few more, are not in this file: it could not be written"
            known = {"name": __name__, "levelno": logging.WARNING, "levelname": "WARNING"}
            super().emit(logging.makeLogRecord({**known, "msg": text if self.terminator else f"{text}\n"}))

    def handleError(self, record: logging.LogRecord) -> None:
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            super().handleError(record)
            return
        self._left_out += 1
        with suppress(OSError, ValueError):
            if self._left_out == 1:
                why = named(error, self.baseFilename, is_local=True)
                text = f"{self.baseFilename} takes no lines, which are left out until it does: {why}"
                print(text, file=self._aside, flush=True)
        self._drop_stream()

    def _open(self) -> io.TextIOWrapper:
        os.makedirs(os.path.dirname(self.baseFilename), exist_ok=True)
        return super()._open()

    def _is_named(self, stream: io.TextIOWrapper) -> bool:
        """Whether the file that is written is the one of this name, as far as its folder lets that be seen."""
        try:
            named = os.stat(self.baseFilename)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:  # nor could another file be opened there, and this one takes lines
            return True
        return os.path.samestat(named, os.fstat(stream.fileno()))

    def _drop_stream(self) -> None:
        """The next line opens the file."""
        stream, self.stream = self.stream, None
        if stream is not None:
            with suppress(OSError):
                stream.close()


class _PrintedLines(io.TextIOBase):
    """A text stream into a file that rotates."""

    def __init__(self, handler: LogFile) -> None:
        handler.terminator = ""
        self._handler = handler

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if not isinstance(text, str):  # so click.echo finds out what it writes to
            raise TypeError(f"wanted a str, found a {type(text).__name__}")
        self._handler.handle(logging.makeLogRecord({"msg": text}))
        return len(text)
