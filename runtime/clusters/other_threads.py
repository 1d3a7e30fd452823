"""The threads of this process, for who asks what may still run when the data of an operator has ended."""

from __future__ import annotations

import threading


def other_threads() -> list[threading.Thread]:
    """All that live, but for the one that calls."""
    return [each for each in threading.enumerate() if each is not threading.current_thread()]
