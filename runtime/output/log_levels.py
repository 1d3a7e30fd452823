"""LogLevels: which levels of `logging` the user has enabled, so that TaskManagers make no record that is dropped."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LogLevels:
    """The levels of the root logger and of every named logger that has one of its own; `logging.disable`."""

    root: int = logging.WARNING
    named: tuple[tuple[str, int], ...] = ()
    disabled: int = 0

    @classmethod
    def of_this_process(cls) -> LogLevels:
        loggers = logging.root.manager.loggerDict.copy().items()  # other threads may make some
        named = [(name, each.level) for name, each in loggers if isinstance(each, logging.Logger) and each.level]
        return cls(logging.root.level, tuple(sorted(named)), logging.root.manager.disable)

    @contextlib.contextmanager
    def applied(self) -> Iterator[None]:
        """They hold in this process as long as the context lasts; what only a library here has set stays."""
        before = LogLevels.of_this_process()
        self._set()
        try:
            yield
        finally:
            here = dict(before.named)
            LogLevels(before.root, tuple((name, here.get(name, 0)) for name, _ in self.named), before.disabled)._set()

    def _set(self) -> None:
        logging.disable(self.disabled)
        logging.root.setLevel(self.root)
        for name, level in self.named:
            logging.getLogger(name).setLevel(level)
