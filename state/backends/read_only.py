"""ReadOnlySwitch: whether state takes changes now. It takes none while a question is answered."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class ReadOnlySwitch:
    """Whoever changes state asks `is_read_only` before, and raises ReadOnlyState."""

    def __init__(self) -> None:
        self.is_read_only = False

    @contextmanager
    def read_only(self) -> Iterator[None]:
        """While a question is answered: every change raises ReadOnlyState."""
        before, self.is_read_only = self.is_read_only, True
        try:
            yield
        finally:
            self.is_read_only = before
