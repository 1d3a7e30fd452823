"""Patience where no descriptor is left to open a file with: connections may take all of them for a moment, and give
them back.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Callable
from typing import TypeVar

from .store_requests import Patience

T = TypeVar("T")


def with_a_descriptor(opens: Callable[[], T]) -> T:
    """What it returns. It blocks for a second and a half at most, and then raises what it does."""
    for pause_s in Patience().pauses_s():
        try:
            return opens()
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE):
                raise
        time.sleep(pause_s)
    return opens()
